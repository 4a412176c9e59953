use http::{HeaderMap, Method, StatusCode};

use super::{Head, HeadReader, MAX_HEAD_BYTES, MAX_HEADERS, MAX_INTERIM};
use crate::wire::http1::{Decoder, Malformed};

fn read_as(method: &Method, raw: &str) -> Result<Option<(Head, usize)>, Malformed> {
    HeadReader::new(method).feed(raw.as_bytes())
}

fn read(raw: &str) -> Result<Option<(Head, usize)>, Malformed> {
    read_as(&Method::GET, raw)
}

/// A response with these fields, each with its line end.
fn with(fields: &str) -> Result<Head, Malformed> {
    let found = read(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"))?;
    Ok(found.expect("the head is complete").0)
}

fn body_of(head: &Head) -> String {
    match &head.body {
        Decoder::Chunked(_) => "chunked".to_owned(),
        Decoder::Length(length) => format!("{length} bytes"),
        Decoder::UntilClose => "until close".to_owned(),
    }
}

fn listed(headers: &HeaderMap) -> Vec<(&str, &str)> {
    headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect()
}

#[test]
fn a_head_is_read_and_what_follows_it_is_left() {
    let (head, used) = read("HTTP/1.1 404 Nope\r\nContent-Length: 2\r\nX-A: b\r\n\r\nhi")
        .unwrap()
        .unwrap();
    assert_eq!(head.status, StatusCode::NOT_FOUND);
    assert_eq!(listed(&head.headers), [("x-a", "b")]);
    assert_eq!(used, 48);
    assert_eq!(body_of(&head), "2 bytes");
    assert!(head.keep_alive);
}

// [NET-1]
#[test]
fn the_body_is_framed_by_status_then_coding_then_length_then_close() {
    for (fields, body) in [
        ("Content-Length: 0\r\n", "0 bytes"),
        (
            "Content-Length: 18446744073709551615\r\n",
            "18446744073709551615 bytes",
        ),
        ("content-length: 0007\r\n", "7 bytes"),
        ("Transfer-Encoding: chunked\r\n", "chunked"),
        ("TRANSFER-ENCODING: CHUNKED\r\n", "chunked"),
        ("X-A: b\r\n", "until close"),
    ] {
        assert_eq!(body_of(&with(fields).unwrap()), body, "{fields:?}");
    }
}

// [NET-1]
#[test]
fn answers_without_a_body_have_none_whatever_their_head_says() {
    for status in ["204 No Content", "304 Not Modified"] {
        for fields in ["", "Content-Length: 9\r\n", "Transfer-Encoding: chunked\r\n"] {
            let (head, _) = read(&format!("HTTP/1.1 {status}\r\n{fields}\r\n"))
                .unwrap()
                .unwrap();
            assert_eq!(body_of(&head), "0 bytes", "{status} {fields:?}");
            assert!(head.keep_alive);
        }
    }
    let (head, _) = read_as(&Method::HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
        .unwrap()
        .unwrap();
    assert_eq!(body_of(&head), "0 bytes");
    assert_eq!(
        listed(&head.headers),
        [("content-length", "9")],
        "it tells of the body that GET would have"
    );
}

#[test]
fn a_length_on_204_is_dropped() {
    let (head, _) = read("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nX-A: b\r\n\r\n")
        .unwrap()
        .unwrap();
    assert_eq!(listed(&head.headers), [("x-a", "b")]);
}

// [NET-2]
#[test]
fn framing_that_two_readers_could_take_differently_is_refused() {
    use Malformed::{Ambiguous, ContentLength, TransferEncoding};
    for (fields, fault) in [
        ("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", Ambiguous),
        ("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", Ambiguous),
        ("Content-Length:\r\n", ContentLength),
        ("Content-Length: +3\r\n", ContentLength),
        ("Content-Length: -3\r\n", ContentLength),
        ("Content-Length: 0x3\r\n", ContentLength),
        ("Content-Length: 3 3\r\n", ContentLength),
        ("Content-Length: 3_3\r\n", ContentLength),
        ("Content-Length: 3, 3\r\n", ContentLength),
        ("Content-Length: 3\r\nContent-Length: 4\r\n", ContentLength),
        ("Content-Length: 18446744073709551616\r\n", ContentLength),
        ("Transfer-Encoding: identity\r\n", TransferEncoding),
        ("Transfer-Encoding: gzip, chunked\r\n", TransferEncoding),
        ("Transfer-Encoding: chunked, chunked\r\n", TransferEncoding),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            TransferEncoding,
        ),
        ("Transfer-Encoding: xchunked\r\n", TransferEncoding),
        ("Transfer-Encoding: \"chunked\"\r\n", TransferEncoding),
        ("Transfer-Encoding: ,chunked\r\n", TransferEncoding),
        ("Transfer-Encoding: chunked;q=1\r\n", TransferEncoding),
        ("Transfer-Encoding:\r\n", TransferEncoding),
    ] {
        assert_eq!(with(fields).unwrap_err(), fault, "{fields:?}");
    }
    let old = read("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_eq!(old.unwrap_err(), Ambiguous);
}

#[test]
fn the_same_length_twice_is_one_length() {
    let fields = "Content-Length: 3\r\nX-A: b\r\nContent-Length: 3\r\n";
    let head = with(fields).unwrap();
    assert_eq!(body_of(&head), "3 bytes");
    assert_eq!(listed(&head.headers), [("x-a", "b")]);
    let (head, _) = read_as(&Method::HEAD, &format!("HTTP/1.1 200 OK\r\n{fields}\r\n"))
        .unwrap()
        .unwrap();
    assert_eq!(listed(&head.headers), [("content-length", "3"), ("x-a", "b")]);
}

// [NET-10]
#[test]
fn a_connection_is_kept_by_version_and_connection_options() {
    for (head, keep) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x , Close\r\n\r\n",
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close, keep-alive\r\n\r\n",
            false,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: a\r\nConnection: close\r\n\r\n",
            false,
        ),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n",
            true,
        ),
        ("HTTP/1.1 200 OK\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n", false),
    ] {
        assert_eq!(read(head).unwrap().unwrap().0.keep_alive, keep, "{head:?}");
    }
}

// [NET-6]
#[test]
fn hop_by_hop_fields_of_a_response_are_gone() {
    let head = with(
        "Connection: X-Private, set-cookie\r\nKeep-Alive: timeout=5\r\nTransfer-Encoding: chunked\r\n\
         x-private: 1\r\nSet-Cookie: a=b\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\nTrailer: x-t\r\n\
         Set-Cookie: c=d\r\n",
    )
    .unwrap();
    let mut passed = listed(&head.headers);
    passed.sort_unstable();
    assert_eq!(
        passed,
        [("set-cookie", "a=b"), ("set-cookie", "c=d"), ("trailer", "x-t")]
    );
}

// [NET-5]
#[test]
fn interim_responses_are_skipped() {
    let raw = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 4\r\n\r\n\
               HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n";
    let (head, used) = read(raw).unwrap().unwrap();
    assert_eq!((head.status, used), (StatusCode::OK, raw.len()));
    assert_eq!(listed(&head.headers), [("x-a", "b")]);
}

// [NET-5]
#[test]
fn interim_responses_that_may_be_passed_on_are_kept_for_who_wants_them() {
    let raw = "HTTP/1.1 100 Continue\r\nx-a: b\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nlink: </b>\r\n\
               Content-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: x-hop\r\nx-hop: 1\r\nTrailer: x\r\n\r\n\
               HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    for size in 1..=raw.len() {
        let mut reader = HeadReader::new(&Method::GET).keeping_interims(true);
        let mut seen = Vec::new();
        for piece in raw.as_bytes().chunks(size) {
            drop(reader.feed(piece).unwrap());
            let interims = reader.take_interims().into_iter();
            seen.extend(interims.map(|interim| {
                let fields = listed(&interim.headers).into_iter();
                let fields: Vec<_> = fields.map(|(name, value)| format!("{name}: {value}")).collect();
                (interim.status.as_u16(), fields.join(", "))
            }));
        }
        let expected = [(103, "link: </a>, link: </b>".to_owned()), (102, String::new())];
        assert_eq!(seen, expected, "in pieces of {size}");
    }
    let mut reader = HeadReader::new(&Method::GET);
    drop(reader.feed(raw.as_bytes()).unwrap());
    assert!(reader.take_interims().is_empty(), "nobody wants them");
}

// [NET-4] [NET-5]
#[test]
fn more_interim_responses_than_the_limit_are_refused() {
    let interim = "HTTP/1.1 102 Processing\r\n\r\n".repeat(usize::from(MAX_INTERIM));
    assert!(
        read(&format!("{interim}HTTP/1.1 200 OK\r\n\r\n"))
            .unwrap()
            .is_some()
    );
    assert_eq!(
        read(&format!("{interim}HTTP/1.1 102 Processing\r\n\r\n")).unwrap_err(),
        Malformed::Interim
    );
}

// [NET-5]
#[test]
fn an_upgrade_that_nobody_asked_for_is_refused() {
    let raw = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n";
    assert_eq!(read(raw).unwrap_err(), Malformed::Upgrade);
}

// [NET-27]
#[test]
fn an_upgrade_that_was_asked_for_is_an_answer() {
    let raw = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
               Content-Length: 3\r\nSec-WebSocket-Accept: x\r\n\r\n";
    let mut reader = HeadReader::new(&Method::GET).allowing_upgrade(true);
    let (head, used) = reader.feed(format!("{raw}frame").as_bytes()).unwrap().unwrap();
    assert_eq!((head.status, used), (StatusCode::SWITCHING_PROTOCOLS, raw.len()));
    assert!(!head.keep_alive && matches!(head.body, Decoder::UntilClose));
    let mut fields = listed(&head.headers);
    fields.sort_unstable();
    assert_eq!(fields, [("sec-websocket-accept", "x"), ("upgrade", "websocket")]);
    let mut reader = HeadReader::new(&Method::GET).allowing_upgrade(true);
    let unnamed = reader.feed(b"HTTP/1.1 101 Switching Protocols\r\n\r\n");
    assert_eq!(unnamed.unwrap_err(), Malformed::Upgrade, "to what, it must say");
}

// [NET-26]
#[test]
fn a_reader_knows_whether_the_body_is_wanted() {
    let mut reader = HeadReader::new(&Method::POST);
    reader
        .feed(b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Con")
        .unwrap();
    assert!(!reader.is_continued());
    reader.feed(b"tinue\r\n\r\n").unwrap();
    assert!(reader.is_continued());
}

#[test]
fn what_is_not_a_response_head_is_refused_as_soon_as_it_shows() {
    for raw in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A: b\r\n folded\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A: a\0b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A: a\rb\r\n\r\n",
    ] {
        assert_eq!(read(raw).unwrap_err(), Malformed::Head, "{raw:?}");
    }
}

// [NET-4]
#[test]
fn a_head_over_the_limit_is_refused_however_it_comes() {
    let start = "HTTP/1.1 200 OK\r\nX-A: ";
    let fits = format!("{start}{}\r\n\r\n", "a".repeat(MAX_HEAD_BYTES - start.len() - 4));
    let large = format!("{start}{}\r\n\r\n", "a".repeat(MAX_HEAD_BYTES - start.len() - 3));
    for piece in [usize::MAX, 4096, 16_384] {
        let read = |raw: &str| {
            let mut reader = HeadReader::new(&Method::GET);
            raw.as_bytes()
                .chunks(piece)
                .map(|bytes| reader.feed(bytes))
                .find(|read| !matches!(read, Ok(None)))
        };
        assert!(matches!(read(&fits), Some(Ok(Some(_)))), "in pieces of {piece}");
        assert!(
            matches!(read(&large), Some(Err(Malformed::HeadTooLarge))),
            "in pieces of {piece}"
        );
    }
}

// [NET-4]
#[test]
fn more_fields_than_the_limit_are_refused() {
    let fields = "X-A: b\r\n".repeat(MAX_HEADERS);
    assert_eq!(with(&fields).unwrap().headers.len(), MAX_HEADERS);
    assert_eq!(
        with(&format!("{fields}X-A: b\r\n")).unwrap_err(),
        Malformed::HeadTooLarge
    );
}

#[test]
fn a_reader_knows_whether_anything_has_come() {
    let mut reader = HeadReader::new(&Method::GET);
    assert!(!reader.started());
    assert!(reader.feed(b"").unwrap().is_none());
    assert!(!reader.started());
    assert!(reader.feed(b"H").unwrap().is_none());
    assert!(reader.started());
}
