//! Random streams in random chunks, against a decoder too simple to be wrong.

use proptest::prelude::*;

use super::{ROOMY, Seen, observe};
use crate::wire::tests::seeded;

/// The standard, read aloud: all lines first, then the fields, with no thought of chunks, caps or cost.
pub(super) fn reference(stream: &[u8]) -> (Vec<Seen>, Option<Seen>) {
    let stream = stream.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(stream);
    let mut lines = vec![Vec::new()];
    for (at, byte) in stream.iter().enumerate() {
        match byte {
            b'\n' if at > 0 && stream[at - 1] == b'\r' => {}
            b'\n' | b'\r' => lines.push(Vec::new()),
            _ => lines.last_mut().unwrap().push(*byte),
        }
    }
    let unfinished = lines.pop().unwrap();
    let (mut events, mut event, mut data) = (Vec::new(), Seen::default(), None::<Vec<u8>>);
    for line in lines {
        if line.is_empty() {
            if let Some(data) = data.take() {
                events.push(Seen {
                    data,
                    ..event.clone()
                });
            }
            event.kind.clear();
        } else {
            field(&line, &mut event, &mut data);
        }
    }
    field(&unfinished, &mut event, &mut data);
    let last = data
        .filter(|data| !data.is_empty())
        .map(|data| Seen { data, ..event });
    (events, last)
}

fn field(line: &[u8], event: &mut Seen, data: &mut Option<Vec<u8>>) {
    let mut parts = line.splitn(2, |byte| *byte == b':');
    let name = parts.next().unwrap();
    let value = parts.next().unwrap_or_default();
    let value = value.strip_prefix(b" ").unwrap_or(value);
    match name {
        b"data" => match data {
            Some(data) => data.extend([b"\n", value].concat()),
            None => *data = Some(value.to_vec()),
        },
        b"event" => event.kind = value.to_vec(),
        b"id" if !value.contains(&0) => event.id = value.to_vec(),
        _ => {}
    }
}

/// Streams made of what matters to the framing, so that short ones reach deep.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec!["\n", "\r", "\r\n", "\n\n", "\r\r", "\r\n\r\n"]),
        6 => prop::sample::select(vec!["data", "data:", "data: ", "event: ", "id: ", "retry: ", ":", " ", "dat", "Data"]),
        3 => prop::sample::select(vec!["x", "[DONE]", "\u{feff}", "\0", "12", "\u{fffd}", "token token token"]),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat().into_bytes())
}

/// Cuts `stream` at these places, given as fractions of its length so that any list fits any stream.
fn cut<'s>(stream: &'s [u8], places: &[prop::sample::Index]) -> Vec<&'s [u8]> {
    let mut places: Vec<_> = places.iter().map(|place| place.index(stream.len() + 1)).collect();
    places.sort_unstable();
    let mut chunks = Vec::new();
    let mut from = 0;
    for place in places.into_iter().chain([stream.len()]) {
        chunks.push(&stream[from..place]);
        from = place;
    }
    chunks
}

proptest! {
    #![proptest_config(seeded(2000))]

    // [SSE-1] [SSE-2] [SSE-3] [SSE-4] [SSE-5]
    #[test]
    fn any_stream_in_any_chunks_gives_what_the_standard_says(
        stream in stream(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (events, last) = reference(&stream);
        let (seen, end, _) = observe(ROOMY, cut(&stream, &places));
        prop_assert_eq!(seen, events);
        prop_assert_eq!(end, last);
    }

    // [SSE-6]
    #[test]
    fn a_cap_cuts_the_same_events_in_any_chunks(
        stream in stream(),
        limit in 0usize..40,
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (whole, last, observer) = observe(limit, [&*stream]);
        let (cut, end, cut_observer) = observe(limit, cut(&stream, &places));
        prop_assert_eq!(&cut, &whole);
        prop_assert_eq!(end, last);
        prop_assert_eq!(cut_observer.retry(), observer.retry());
        // What is not opaque is as if there were no cap.
        if whole.iter().all(|event| !event.opaque) {
            let data = |events: Vec<Seen>| events.into_iter().map(|event| event.data).collect::<Vec<_>>();
            prop_assert_eq!(data(whole), data(observe(ROOMY, [&*stream]).0));
        }
    }

    // [SSE-2]
    #[test]
    fn the_bytes_up_to_the_end_of_an_event_hold_that_event_and_no_more(stream in stream()) {
        let mut ends = Vec::new();
        super::Observer::new(ROOMY).feed(&stream, |event| ends.push(event.end));
        for (nth, end) in ends.into_iter().enumerate() {
            let (events, last, _) = observe(ROOMY, [&stream[..end]]);
            prop_assert_eq!(events.len(), nth + 1);
            prop_assert_eq!(last, None);
        }
    }

    // [SSE-1]
    #[test]
    fn arbitrary_bytes_never_panic(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8),
        limit in 0usize..64,
    ) {
        let whole = chunks.concat();
        let (events, last, _) = observe(limit, chunks.iter().map(Vec::as_slice));
        prop_assert_eq!((events, last), { let (events, last, _) = observe(limit, [&*whole]); (events, last) });
    }
}
