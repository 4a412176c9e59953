use super::*;

fn of_events(events: &[&str]) -> (u64, u64) {
    let mut usage = Usage::default();
    for data in events {
        usage.event(data.as_bytes());
    }
    (usage.prompt, usage.completion)
}

fn of_tail(end: &str) -> (u64, u64) {
    let mut usage = Usage::default();
    usage.tail(end.as_bytes());
    (usage.prompt, usage.completion)
}

// [USAGE-1]
#[test]
fn a_chat_stream_tells_it_in_its_last_chunk() {
    let events = [
        r#"{"choices":[{"delta":{"content":"a"}}],"usage":null}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46}}"#,
        "[DONE]",
    ];
    assert_eq!(of_events(&events), (12, 34));
}

// [USAGE-1]
#[test]
fn a_count_that_grows_is_taken_as_it_stood_last() {
    let messages = [
        r#"{"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}"#,
        r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":7}}"#,
        r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":15}}"#,
    ];
    assert_eq!(of_events(&messages), (25, 15));
    let responses = [
        r#"{"type":"response.created","response":{"usage":null}}"#,
        r#"{"type":"response.completed","response":{"usage":{"input_tokens":3,"output_tokens":4}}}"#,
    ];
    assert_eq!(of_events(&responses), (3, 4));
}

// [USAGE-1]
#[test]
fn what_only_looks_like_it_is_passed_over() {
    let events = [
        r#"{"choices":[{"delta":{"content":"say \"usage\": {\"prompt_tokens\": 9}"}}]}"#,
        r#"{"usage":"all of it"}"#,
        r#"{"usage":{"prompt_tokens":-1}}"#,
        r#"{"usage":{"prompt_tokens":"#,
        r#""usage""#,
    ];
    assert_eq!(of_events(&events), (0, 0));
}

// [USAGE-2]
#[test]
fn a_json_answer_tells_it_near_its_end() {
    assert_eq!(
        of_tail(r#"..."usage": {"prompt_tokens": 5, "completion_tokens": 6}}"#),
        (5, 6)
    );
    assert_eq!(
        of_tail(r#"],"usage":{"prompt_tokens":8},"user":"x","metadata":{}}"#),
        (8, 0)
    );
    assert_eq!(
        of_tail(r#"{"content":"\"usage\":{\"prompt_tokens\":9}"}"#),
        (0, 0),
        "a text is none"
    );
    for broken in [
        "",
        "\"usage\"",
        "\"usage\":",
        "\"usage\":null}",
        "\"usage\":{\"prompt_tokens\":",
    ] {
        assert_eq!(of_tail(broken), (0, 0), "{broken}");
    }
}
