//! What holds of the request parser and the body decoder whatever a client sends.

use http::{HeaderMap, Method, Uri, Version};
use lb::wire::http1::{BadRequest, Decoder, MAX_TARGET_BYTES, parse_request};

/// All that can be seen of one connection.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    requests: Vec<Request>,
    /// Whether the last body has come to its end.
    complete: bool,
    fault: Option<BadRequest>,
    broken: bool,
}

#[derive(Debug, PartialEq)]
struct Request {
    line: (Method, Uri, Version),
    fields: HeaderMap,
    keep_alive: bool,
    payload: Vec<u8>,
    trailers: Option<HeaderMap>,
}

/// The first byte says how large the reads are; the rest is what came.
pub(crate) fn check(input: &[u8]) {
    let [step, raw @ ..] = input else { return };
    let whole = see([raw]);
    agrees(&whole, raw);
    // Past the limits, the order of two faults may depend on how much came at once.
    if raw.len() < MAX_TARGET_BYTES {
        let pieces = see(raw.chunks(usize::from(*step) + 1));
        assert_eq!(pieces, whole, "in pieces of {step} + 1");
        assert_eq!(see(raw.chunks(1)), whole, "byte by byte");
    }
}

/// Relations within one result.
fn agrees(seen: &Seen, raw: &[u8]) {
    let payload: usize = seen.requests.iter().map(|request| request.payload.len()).sum();
    assert!(payload <= raw.len(), "more came out than went in");
    for (place, request) in seen.requests.iter().enumerate() {
        let fields = &request.fields;
        let last = place + 1 == seen.requests.len();
        assert!(last || request.keep_alive, "nothing is read behind the last");
        let codings = fields.get_all("transfer-encoding").iter().count();
        let lengths: Vec<_> = fields.get_all("content-length").iter().collect();
        assert!(
            codings == 0 || lengths.is_empty() || !request.keep_alive,
            "two framings are the last of a connection"
        );
        if codings == 0 && !lengths.is_empty() && (!last || seen.complete) {
            let length = lengths[0].to_str().unwrap().parse();
            assert_eq!(length, Ok(request.payload.len()), "the length is the payload's");
        }
        if codings == 0 && lengths.is_empty() {
            assert!(
                request.payload.is_empty(),
                "there is no body that nobody announced"
            );
        }
    }
}

fn see<'a>(reads: impl IntoIterator<Item = &'a [u8]>) -> Seen {
    let (mut held, mut body, mut seen) = (Vec::new(), None::<Decoder>, Seen::default());
    for read in reads {
        held.extend_from_slice(read);
        loop {
            let Some(decoder) = &mut body else {
                match parse_request(&held) {
                    Ok(None) => break,
                    Err(fault) => {
                        seen.fault = Some(fault);
                        return seen;
                    }
                    Ok(Some((head, length))) => {
                        assert!(length <= held.len(), "a head takes what came and no more");
                        held.drain(..length);
                        let request = &head.request;
                        seen.complete = false;
                        seen.requests.push(Request {
                            line: (request.method().clone(), request.uri().clone(), request.version()),
                            fields: request.headers().clone(),
                            keep_alive: head.keep_alive,
                            payload: Vec::new(),
                            trailers: None,
                        });
                        if head.body.is_none() {
                            assert!(!head.keep_alive, "what nobody can read ends the connection");
                            return seen;
                        }
                        body = head.body;
                    }
                }
                continue;
            };
            let request = seen.requests.last_mut().expect("a body has a head");
            let Ok(decoded) = decoder.decode(&mut held) else {
                seen.broken = true;
                return seen;
            };
            request.payload.extend_from_slice(&held[decoded.payload]);
            held.drain(..decoded.used);
            if decoder.fault().is_some() {
                seen.broken = true;
                return seen;
            }
            if !decoder.is_done() {
                break;
            }
            request.trailers = decoder.take_trailers();
            seen.complete = true;
            if !request.keep_alive {
                return seen;
            }
            body = None;
        }
    }
    seen
}
