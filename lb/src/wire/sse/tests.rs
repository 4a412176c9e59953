//! The observer by example; the vectors of the standard and random streams are in the children.

mod properties;
mod vectors;

use super::*;

/// An event with its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    kind: Vec<u8>,
    data: Vec<u8>,
    id: Vec<u8>,
    opaque: bool,
}

impl From<Event<'_>> for Seen {
    fn from(event: Event<'_>) -> Self {
        let Event {
            kind,
            data,
            id,
            opaque,
            end: _,
        } = event;
        Self {
            kind: kind.into(),
            data: data.into(),
            id: id.into(),
            opaque,
        }
    }
}

/// Everything that `chunks` and then the end of the stream give; checks the cap after every chunk. [SSE-6]
fn observe<'c>(
    limit: usize,
    chunks: impl IntoIterator<Item = &'c [u8]>,
) -> (Vec<Seen>, Option<Seen>, Observer) {
    let mut observer = Observer::new(limit);
    let mut events = Vec::new();
    for chunk in chunks {
        observer.feed(chunk, |event| {
            assert!(
                event.end <= chunk.len(),
                "an event ends in the chunk that completes it"
            );
            events.push(event.into());
        });
        assert!(observer.buffered() <= limit);
    }
    let mut last = None;
    observer.finish(|event| last = Some(event.into()));
    (events, last, observer)
}

fn data_of(events: &[Seen]) -> Vec<&str> {
    events
        .iter()
        .map(|event| std::str::from_utf8(&event.data).unwrap())
        .collect()
}

const ROOMY: usize = 1 << 20;

/// Faults that other proxies were reported with.
// [SSE-1] [SSE-3] [SSE-6]
#[test]
fn the_streams_that_broke_others_are_read() {
    // Only `\n\n` was a boundary, and a line end cut in two was taken for one.
    let (events, ..) = observe(ROOMY, [b"data: x\r\n\r".as_slice(), b"\ndata: y\r\r"]);
    assert_eq!(data_of(&events), ["x", "y"]);
    // A character cut in two lost its chunk.
    let (events, ..) = observe(ROOMY, [b"data: \"\xe5\xa5".as_slice(), b"\xbd\"\n\n"]);
    assert_eq!(data_of(&events), ["\"\u{597d}\""]);
    // After an event above the cap nothing was seen any more.
    let long = format!("data: {}\n\ndata: [DONE]\n\n", "x".repeat(70 << 10));
    let (events, ..) = observe(64 << 10, long.as_bytes().chunks(1460));
    assert_eq!(
        events.iter().map(|event| event.opaque).collect::<Vec<_>>(),
        [true, false]
    );
    assert_eq!(events[1].data, b"[DONE]");
    // JSON over several lines was read line by line, and no space after the colon was not expected.
    let (events, ..) = observe(ROOMY, [b"data:{\ndata:}\n\n".as_slice()]);
    assert_eq!(data_of(&events), ["{\n}"]);
    // A sentinel without its field name is a line that means nothing.
    assert_eq!(observe(ROOMY, [b"[DONE]\n\n".as_slice()]).0, []);
}

// [SSE-2]
#[test]
fn an_event_ended_by_a_carriage_return_does_not_wait_for_what_follows() {
    let mut observer = Observer::new(ROOMY);
    let mut ends = Vec::new();
    observer.feed(b"data: x\r\n\r", |event| ends.push(event.end));
    assert_eq!(ends, [10]);
    assert!(observer.at_boundary());
    // The line feed belongs to the carriage return before it and ends nothing of its own.
    observer.feed(b"\ndata: y\r\n\r\n", |event| ends.push(event.end));
    assert_eq!(ends, [10, 12]);
}

// [SSE-2]
#[test]
fn an_empty_chunk_does_not_part_a_carriage_return_from_its_line_feed() {
    let (events, last, _) = observe(ROOMY, [b"data: x\r".as_slice(), b"", b"\ndata: y\r", b"", b"\r"]);
    assert_eq!(data_of(&events), ["x\ny"]);
    assert_eq!(last, None);
}

// [SSE-2]
#[test]
fn the_end_of_an_event_lies_after_its_whole_blank_line() {
    let stream = b"data: a\n\ndata: b\r\n\r\n: note\n\ndata: c\r\rdata: d";
    let mut ends = Vec::new();
    Observer::new(ROOMY).feed(stream, |event| ends.push(event.end));
    assert_eq!(ends, [9, 20, 37]);
}

// [SSE-4]
#[test]
fn comments_and_blank_lines_are_no_events() {
    let (events, last, _) = observe(
        ROOMY,
        [b": ping\n\n\n\r\n\r\r: \xff\n\nevent: ping\n\nid: 3\n\n".as_slice()],
    );
    assert_eq!((events, last), (vec![], None));
}

// [SSE-5]
#[test]
fn an_unterminated_event_without_data_is_not_reported_at_the_end() {
    for stream in [
        "event: error\n",
        "data:",
        "data: \n",
        ": x",
        "\u{feff}",
        "id: 4",
        "dat",
    ] {
        let (events, last, _) = observe(ROOMY, [stream.as_bytes()]);
        assert_eq!((events, last), (vec![], None), "{stream:?}");
    }
}

// [SSE-5]
#[test]
fn a_finished_observer_may_read_another_stream() {
    let (_, last, mut observer) = observe(ROOMY, [b"event: a\ndata: 1\r".as_slice()]);
    assert_eq!(last.map(|event| event.kind), Some(b"a".to_vec()));
    assert!(observer.at_boundary());
    let mut seen = Vec::new();
    observer.feed(b"\ndata: 2\n\n", |event| seen.push(Seen::from(event)));
    assert_eq!(
        seen,
        [Seen {
            data: b"2".to_vec(),
            ..Seen::default()
        }]
    );
}

// [SSE-7]
#[test]
fn a_boundary_is_where_nothing_is_in_progress() {
    let stream = b"\xEF\xBB\xBFdata: x\n\n: note\nevent: e\n\nid: 5\n\n";
    let mut observer = Observer::new(ROOMY);
    let mut boundaries = vec![0];
    for (at, byte) in stream.iter().enumerate() {
        observer.feed(&[*byte], |_| {});
        if observer.at_boundary() {
            boundaries.push(at + 1);
        }
    }
    assert_eq!(boundaries, [0, 3, 12, 19, 29, 35, 36]);
}

// [SSE-1]
#[test]
fn an_event_in_one_chunk_is_not_copied() {
    let chunk = b"event: e\ndata: in place\n\n";
    let inside = chunk.as_ptr_range();
    Observer::new(ROOMY).feed(chunk, |event| {
        assert!(inside.contains(&event.data.as_ptr()));
        assert!(inside.contains(&event.kind.as_ptr()));
    });
}

// [SSE-6]
#[test]
fn an_event_without_an_end_is_kept_only_up_to_the_cap() {
    const CAP: usize = 1 << 20;
    let mut observer = Observer::new(CAP);
    observer.feed(b"event: big\ndata: head", |_| panic!("nothing has ended"));
    let chunk = vec![b'x'; 1 << 16];
    for _ in 0..1024 {
        observer.feed(&chunk, |_| panic!("nothing has ended"));
        assert!(observer.buffered() <= CAP);
        assert!(
            observer.draft.capacity() <= CAP + 64,
            "the spare room of the buffers counts too"
        );
    }
    assert_eq!(observer.buffered(), CAP);
    let mut seen = Vec::new();
    observer.feed(b"\nevent: late\ndata: more\n\ndata: small\n\n", |event| {
        seen.push(Seen::from(event));
    });
    let [big, small] = &seen[..] else {
        panic!("two events, not {}", seen.len())
    };
    assert_eq!(
        (big.kind.as_slice(), big.data.len(), big.opaque),
        (&b"big"[..], CAP - 3, true)
    );
    assert!(big.data.starts_with(b"headxxx"));
    assert_eq!(
        small,
        &Seen {
            data: b"small".to_vec(),
            ..Seen::default()
        }
    );
    assert_eq!(
        (observer.buffered(), observer.draft.capacity() < 1024),
        (0, true),
        "and given back after it"
    );
}

// [SSE-6]
#[test]
fn an_event_exactly_as_long_as_the_cap_is_not_opaque() {
    for (data, opaque) in [
        ("12345678", false),
        ("123456789", true),
        ("1234\ndata: 678", false),
        ("1234\ndata:6789", true),
    ] {
        let stream = format!("data:{data}\n\n");
        let (events, ..) = observe(8, [stream.as_bytes()]);
        assert_eq!(
            events
                .iter()
                .map(|event| (event.data.len(), event.opaque))
                .collect::<Vec<_>>(),
            [(8, opaque)]
        );
        let (bytewise, ..) = observe(8, stream.as_bytes().chunks(1));
        assert_eq!(events, bytewise, "{data:?}");
    }
}

// [SSE-6]
#[test]
fn a_long_line_that_is_no_data_costs_nothing_and_blinds_nothing() {
    for name in [": ", "event: ", "id: ", "retry: ", "<!doctype html>"] {
        let mut observer = Observer::new(ROOMY);
        observer.feed(name.as_bytes(), |_| {});
        for _ in 0..64 {
            observer.feed(&[b'7'; 1024], |_| {});
            assert!(observer.buffered() <= 1024, "{name}");
        }
        let mut seen = Vec::new();
        observer.feed(b"\ndata: x\n\n", |event| seen.push(Seen::from(event)));
        assert_eq!(
            seen,
            [Seen {
                data: b"x".to_vec(),
                ..Seen::default()
            }],
            "{name}"
        );
        assert_eq!(observer.retry(), None);
    }
    // In one piece it is the same.
    let stream = format!("event: {}\ndata: x\n\n", "e".repeat(1025));
    assert_eq!(
        observe(ROOMY, [stream.as_bytes()]).0,
        [Seen {
            data: b"x".to_vec(),
            ..Seen::default()
        }]
    );
}

// [SSE-3]
#[test]
fn a_reconnection_time_that_is_no_number_is_ignored() {
    for (line, expected) in [
        ("retry: 1500", Some(1500)),
        ("retry:0", Some(0)),
        ("retry: 15x", None),
        ("retry: -1", None),
        ("retry: +1", None),
        ("retry:", None),
        ("retry: 99999999999999999999", None),
    ] {
        let stream = format!("{line}\n");
        assert_eq!(observe(ROOMY, [stream.as_bytes()]).2.retry(), expected, "{line}");
        assert_eq!(
            observe(ROOMY, stream.as_bytes().chunks(1)).2.retry(),
            expected,
            "{line}"
        );
    }
}
