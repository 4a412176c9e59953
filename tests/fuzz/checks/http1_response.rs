//! What holds of the response parser and the body decoder whatever an upstream sends.

use http::{HeaderMap, Method, StatusCode};
use lb::wire::http1::{Decoder, HeadReader, MAX_HEAD_BYTES, Malformed};

/// All that can be seen of one response.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    head: Option<(StatusCode, HeaderMap, bool)>,
    payload: Vec<u8>,
    trailers: Option<HeaderMap>,
    excess: usize,
    complete: bool,
    fault: Option<Malformed>,
}

/// The first byte says whether the request was HEAD (odd), the second how large the reads are; the rest is what came.
pub(crate) fn check(input: &[u8]) {
    let [head, step, raw @ ..] = input else { return };
    let method = if head % 2 == 1 { Method::HEAD } else { Method::GET };
    // A fault is told when its line ends: behind these, every reader has told it.
    let raw = [raw, b"\n\n"].concat();
    let whole = see(&method, [&raw[..]]);
    agrees(&whole, &raw);
    // Past the limit, the order of two faults may depend on how much came at once.
    if raw.len() < MAX_HEAD_BYTES {
        assert_eq!(
            see(&method, raw.chunks(usize::from(*step) + 1)),
            whole,
            "in pieces of {step} + 1"
        );
        assert_eq!(see(&method, raw.chunks(1)), whole, "byte by byte");
    }
}

/// Relations within one result.
fn agrees(seen: &Seen, raw: &[u8]) {
    assert!(
        seen.payload.len() + seen.excess <= raw.len(),
        "more came out than went in"
    );
    assert!(
        !(seen.complete && seen.fault.is_some()),
        "a broken body is never complete"
    );
    assert!(
        seen.trailers.is_none() || seen.complete,
        "trailers come behind a complete body"
    );
    let Some((status, headers, keep_alive)) = &seen.head else {
        assert!(
            !seen.complete && seen.payload.is_empty(),
            "there is no body without a head"
        );
        return;
    };
    assert!(status.as_u16() >= 200, "interim responses are skipped");
    for gone in [
        "connection",
        "keep-alive",
        "te",
        "transfer-encoding",
        "upgrade",
        "proxy-connection",
    ] {
        assert!(!headers.contains_key(gone), "{gone} ends here");
    }
    let lengths: Vec<_> = headers.get_all("content-length").iter().collect();
    assert!(lengths.len() <= 1, "there is one length at most");
    if *keep_alive && seen.complete && !seen.payload.is_empty() && !lengths.is_empty() {
        assert_eq!(
            lengths[0].to_str().unwrap().parse(),
            Ok(seen.payload.len()),
            "the length is the payload's"
        );
    }
}

fn see<'a>(method: &Method, reads: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let (mut reader, mut body, mut seen) = (HeadReader::new(method), None::<Decoder>, Seen::default());
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
                    assert!(used <= raw.len(), "a head takes what came and no more");
                    seen.head = Some((head.status, head.headers, head.keep_alive));
                    (body, at) = (Some(head.body), used);
                }
            }
        }
        let decoder = body.as_mut().expect("set above");
        let rest = &mut raw[at..];
        let Ok(decoded) = decoder.decode(rest) else { break };
        assert!(
            decoded.payload.end <= decoded.used && decoded.used <= rest.len(),
            "{decoded:?}"
        );
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
    }
    seen
}
