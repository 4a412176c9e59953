//! Whole responses, in every split.

use http::{HeaderMap, Method, StatusCode};
use proptest::prelude::*;

use super::{Decoder, HeadReader, Malformed};

/// All that can be seen of a response that came in reads.
#[derive(Debug, PartialEq)]
struct Seen {
    head: Option<(StatusCode, HeaderMap, bool)>,
    payload: Vec<u8>,
    trailers: Option<HeaderMap>,
    /// Raw bytes behind the response's end.
    excess: usize,
    /// Whether the response is complete, or would be if the connection ended here.
    complete: bool,
    fault: Option<Malformed>,
}

/// Reads a response to a GET that comes in these reads.
fn see<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let mut reader = HeadReader::new(&Method::GET);
    let mut body: Option<Decoder> = None;
    let mut seen = Seen {
        head: None,
        payload: Vec::new(),
        trailers: None,
        excess: 0,
        complete: false,
        fault: None,
    };
    for read in reads {
        let mut raw = read.to_vec();
        let mut at = 0;
        if body.is_none() {
            match reader.feed(&raw) {
                Err(fault) => {
                    return Seen {
                        fault: Some(fault),
                        ..seen
                    };
                }
                Ok(None) => continue,
                Ok(Some((head, used))) => {
                    seen.head = Some((head.status, head.headers, head.keep_alive));
                    (body, at) = (Some(head.body), used);
                }
            }
        }
        let decoder = body.as_mut().expect("set above");
        let rest = &mut raw[at..];
        let Ok(decoded) = decoder.decode(rest) else { break };
        seen.payload.extend_from_slice(&rest[decoded.payload]);
        if decoder.fault().is_some() {
            break;
        }
        seen.excess += rest.len() - decoded.used;
    }
    if let Some(mut decoder) = body {
        seen.complete = decoder.may_end();
        seen.fault = decoder.fault();
        seen.trailers = decoder.take_trailers();
        assert!(
            !(seen.complete && seen.fault.is_some()),
            "a broken body is never complete"
        );
    }
    seen
}

fn cut<'a>(raw: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(raw.len() + 1)).collect();
    at.sort_unstable();
    let ends = at.iter().copied().chain([raw.len()]);
    let starts = [0].into_iter().chain(at.iter().copied());
    starts
        .zip(ends)
        .filter(|(start, end)| start < end)
        .map(|(start, end)| &raw[start..end])
        .collect()
}

const RESPONSES: [&str; 9] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhelloEXTRA",
    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0002\r\nde\r\n0\r\nx-t: 1\r\n\r\nE",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nxyz\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: a\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 1\r\n\r\nx",
    "HTTP/1.1 204 No Content\r\n\r\nEXTRA",
    "HTTP/1.0 200 OK\r\nConnection: x-a\r\nX-A: 1\r\n\r\nuntil close",
    "\r\nHTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
];

// [NET-8]
#[test]
fn a_response_is_the_same_when_cut_in_two_anywhere() {
    for raw in RESPONSES.map(str::as_bytes) {
        let whole = see([raw]);
        for at in 1..raw.len() {
            assert_eq!(
                see([&raw[..at], &raw[at..]]),
                whole,
                "{:?} | {:?}",
                &raw[..at],
                &raw[at..]
            );
        }
        assert_eq!(see(raw.chunks(1)), whole, "byte by byte");
    }
}

#[test]
fn the_sample_responses_are_read_as_meant() {
    let seen = RESPONSES.map(|raw| see([raw.as_bytes()]));
    let payloads = seen
        .each_ref()
        .map(|seen| std::str::from_utf8(&seen.payload).unwrap());
    assert_eq!(
        payloads,
        ["hello", "short", "abcde", "abc", "x", "", "until close", "ok", ""]
    );
    assert_eq!(
        seen.each_ref().map(|seen| seen.excess),
        [5, 0, 1, 0, 0, 5, 0, 0, 0]
    );
    let complete = seen.each_ref().map(|seen| seen.complete);
    assert_eq!(
        complete,
        [true, false, true, false, true, true, true, true, false]
    );
    assert_eq!(seen[3].fault, Some(Malformed::ChunkSize));
    assert_eq!(seen[8].fault, Some(Malformed::ContentLength));
}

#[test]
fn what_is_left_of_a_body_is_known_where_it_can_be() {
    assert_eq!(Decoder::Length(7).remaining(), Some(7));
    assert_eq!(Decoder::chunked().remaining(), None);
    assert_eq!(Decoder::UntilClose.remaining(), None);
    assert!(!Decoder::UntilClose.has_trailers());
    assert_eq!(Decoder::UntilClose.take_trailers(), None);
    assert_eq!(Decoder::UntilClose.fault(), None);
}

#[test]
fn every_fault_says_what_it_is_in_words() {
    for fault in [
        Malformed::Ambiguous,
        Malformed::ChunkEnd,
        Malformed::ChunkExtension,
        Malformed::ChunkSize,
        Malformed::ContentLength,
        Malformed::Head,
        Malformed::HeadCut,
        Malformed::HeadTooLarge,
        Malformed::Http2,
        Malformed::Interim,
        Malformed::Trailers,
        Malformed::TransferEncoding,
        Malformed::Upgrade,
    ] {
        assert!(fault.to_string().contains(' '), "{fault:?}: {fault}");
    }
}

fn chunked_body() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let chunk = (
        prop::collection::vec(any::<u8>(), 1..40),
        prop::sample::select(vec!["", ";a", " ;b=\"c\""]),
    );
    (
        prop::collection::vec(chunk, 0..8),
        prop::sample::select(vec!["", "x-t: 1\r\n", "x-t: 1\r\nx-u: 2\r\n"]),
    )
        .prop_map(|(chunks, trailers)| {
            let (mut payload, mut raw) = (Vec::new(), Vec::new());
            for (data, extension) in chunks {
                payload.extend_from_slice(&data);
                raw.extend_from_slice(format!("{:x}{extension}\r\n", data.len()).as_bytes());
                raw.extend_from_slice(&data);
                raw.extend_from_slice(b"\r\n");
            }
            raw.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
            (payload, raw)
        })
}

proptest! {
    // [NET-8]
    #[test]
    fn chunks_of_any_data_come_out_whole_in_any_split(
        (payload, body) in chunked_body(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let raw = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &body[..]].concat();
        let seen = see(cut(&raw, &cuts));
        prop_assert_eq!(&seen.payload, &payload);
        prop_assert_eq!((seen.complete, seen.excess, seen.fault), (true, 0, None));
        prop_assert_eq!(seen.trailers, see([&raw[..]]).trailers);
    }

    // [NET-8]
    #[test]
    fn a_counted_body_comes_out_whole_in_any_split(
        payload in prop::collection::vec(any::<u8>(), 0..200),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", payload.len());
        let raw = [head.as_bytes(), &payload, b"??"].concat();
        let seen = see(cut(&raw, &cuts));
        prop_assert_eq!(&seen.payload, &payload);
        prop_assert_eq!((seen.complete, seen.excess, seen.fault), (true, 2, None));
    }

    // [NET-8]
    #[test]
    fn a_damaged_response_is_the_same_in_any_split(
        which in 0..RESPONSES.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"\r\n;: 0Aax,".to_vec())), 1..4),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut raw = RESPONSES[which].as_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(raw.len());
            raw[at] = byte;
        }
        // A fault is told when its line ends; until then one reader may know and another wait.
        raw.extend_from_slice(b"\n\n");
        prop_assert_eq!(see(cut(&raw, &cuts)), see([&raw[..]]));
    }
}
