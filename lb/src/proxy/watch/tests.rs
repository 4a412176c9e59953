use super::*;

const TOKEN: &[u8] = b"data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n";
const ROLE: &[u8] = b"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
const CREATED: &[u8] = b"event: response.created\ndata: {\"type\":\"response.created\"}\n\n";
const OVERLOADED: &[u8] = b"event: error\ndata: {\"error\":{\"type\":\"overloaded_error\"}}\n\n";
const DONE: &[u8] = b"data: [DONE]\n\n";

fn watch(content: bool, peeked: bool) -> Watch {
    let rules = Rules {
        content,
        past_preamble: true,
    };
    Watch {
        observer: Observer::new(1024),
        rules,
        seen: Seen {
            committed: !peeked,
            ..Seen::default()
        },
        usage: None,
    }
}

// [WATCH-1]
#[test]
fn the_first_data_frame_commits_and_is_told_once() {
    let mut watch = watch(false, true);
    assert!(!watch.feed(b": keep-alive\n\n"));
    assert_eq!(watch.take_decision(), None);
    assert!(watch.feed(TOKEN));
    assert_eq!(watch.take_decision(), Some(Decision::Commit));
    assert!(!watch.feed(TOKEN));
    assert_eq!(watch.take_decision(), None);
}

// [WATCH-2]
#[test]
fn a_preamble_is_a_first_frame_but_decides_nothing() {
    let mut watch = watch(false, true);
    assert!(watch.feed(CREATED));
    assert!(watch.saw_preamble());
    assert_eq!(watch.take_decision(), None);
    watch.feed(OVERLOADED);
    assert!(matches!(
        watch.take_decision(),
        Some(Decision::Error { status: 529, .. })
    ));
}

// [WATCH-3]
#[test]
fn with_content_wanted_a_role_is_no_first_frame() {
    let mut watch = watch(true, true);
    assert!(!watch.feed(ROLE));
    assert_eq!(watch.take_decision(), None);
    assert!(watch.feed(TOKEN));
    assert_eq!(watch.take_decision(), Some(Decision::Commit));
}

// [WATCH-4]
#[test]
fn what_follows_the_commit_in_one_chunk_is_after_it() {
    let mut watch = watch(false, true);
    assert!(watch.feed(&[TOKEN, OVERLOADED].concat()));
    assert_eq!(watch.take_decision(), Some(Decision::Commit));
    assert_eq!(watch.take_late_error(), Some(529));
    assert_eq!(watch.take_late_error(), None);
}

// [WATCH-5]
#[test]
fn done_alone_commits_without_a_first_frame_and_finishes() {
    let mut watch = watch(false, true);
    assert!(!watch.feed(DONE));
    assert_eq!(watch.take_decision(), Some(Decision::Commit));
    assert!(watch.is_finished());
}

// [WATCH-6]
#[test]
fn a_last_event_without_its_blank_line_counts_at_the_end() {
    let mut watch = watch(false, true);
    assert!(!watch.feed(&TOKEN[..TOKEN.len() - 2]));
    assert!(watch.finish());
    assert_eq!(watch.take_decision(), Some(Decision::Commit));
    assert!(!watch.is_finished());
}

#[test]
fn without_a_peek_an_error_is_late_from_the_start() {
    let mut watch = watch(false, false);
    watch.feed(OVERLOADED);
    assert_eq!(watch.take_decision(), None);
}
