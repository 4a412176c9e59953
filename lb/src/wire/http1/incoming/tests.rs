use http::{Method, Version};
use proptest::prelude::*;

use super::{BadRequest, Incoming, MAX_REQUEST_HEAD_BYTES, MAX_TARGET_BYTES, parse_request};
use crate::wire::http1::{Decoder, MAX_HEADERS};

fn parse(raw: &str) -> Result<Option<(Incoming, usize)>, BadRequest> {
    parse_request(raw.as_bytes())
}

/// A request with these fields, each with its line end.
fn with(version: &str, fields: &str) -> Incoming {
    let found = parse(&format!("POST /v1 HTTP/{version}\r\n{fields}\r\n"));
    found.expect("a head").expect("a whole one").0
}

fn body_of(incoming: &Incoming) -> String {
    match &incoming.body {
        Some(Decoder::Chunked(_)) => "chunked".to_owned(),
        Some(Decoder::Length(length)) => length.to_string(),
        Some(Decoder::UntilClose) => "until close".to_owned(),
        None => "unknown".to_owned(),
    }
}

#[test]
fn a_head_is_read_and_what_follows_it_is_left() {
    let raw = "\r\nPATCH /a?b=c HTTP/1.0\r\nHost: h\r\nX-A:  b \r\nx-a: c\r\n\r\nrest";
    let (incoming, length) = parse(raw).unwrap().unwrap();
    assert_eq!(&raw[length..], "rest");
    let request = &incoming.request;
    assert_eq!(
        (request.method(), request.uri().to_string(), request.version()),
        (&Method::PATCH, "/a?b=c".to_owned(), Version::HTTP_10)
    );
    let values: Vec<_> = request.headers().get_all("x-a").iter().collect();
    assert_eq!(values, ["b", "c"]);
    assert_eq!(request.headers()["host"], "h");
}

// [HTTP-33] [HTTP-48]
#[test]
fn the_body_is_chunks_or_a_length_or_nothing_that_anybody_reads() {
    for (version, fields, body, keep_alive) in [
        ("1.1", "", "0", true),
        ("1.1", "Content-Length: 12\r\n", "12", true),
        ("1.1", "content-length: 12\r\ncontent-length: 012\r\n", "12", true),
        (
            "1.1",
            "content-length: 12\r\ncontent-length: 13\r\n",
            "unknown",
            false,
        ),
        ("1.1", "content-length: 12, 12\r\n", "unknown", false),
        ("1.1", "content-length: +1\r\n", "unknown", false),
        (
            "1.1",
            "content-length: 18446744073709551616\r\n",
            "unknown",
            false,
        ),
        ("1.1", "Transfer-Encoding: Chunked\r\n", "chunked", true),
        // The chunks count, and nothing may follow on a connection where another reader could count otherwise.
        (
            "1.1",
            "transfer-encoding: chunked\r\ncontent-length: 3\r\n",
            "chunked",
            false,
        ),
        (
            "1.1",
            "transfer-encoding: chunked\r\ncontent-length: x\r\n",
            "unknown",
            false,
        ),
        ("1.1", "transfer-encoding: gzip, chunked\r\n", "unknown", false),
        ("1.1", "transfer-encoding: chunked, chunked\r\n", "unknown", false),
        (
            "1.1",
            "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
            "unknown",
            false,
        ),
        ("1.0", "transfer-encoding: chunked\r\n", "unknown", false),
        (
            "1.0",
            "content-length: 2\r\nconnection: keep-alive\r\n",
            "2",
            true,
        ),
    ] {
        let incoming = with(version, fields);
        assert_eq!(
            (body_of(&incoming).as_str(), incoming.keep_alive),
            (body, keep_alive),
            "{version} {fields}"
        );
        assert_eq!(incoming.chunked, body == "chunked", "{version} {fields}");
    }
}

#[test]
fn a_connection_goes_on_as_its_version_and_its_options_say() {
    for (version, fields, keep_alive) in [
        ("1.1", "connection: close\r\n", false),
        ("1.1", "connection: x, CLOSE\r\n", false),
        ("1.1", "connection: keep-alive\r\nconnection: close\r\n", false),
        ("1.1", "connection: upgrade\r\n", true),
        ("1.0", "", false),
        ("1.0", "connection: upgrade\r\n", false),
        ("1.0", "connection: Keep-Alive\r\n", true),
    ] {
        assert_eq!(with(version, fields).keep_alive, keep_alive, "{version} {fields}");
    }
}

#[test]
fn only_a_client_of_http11_that_says_so_waits_for_a_word() {
    assert!(with("1.1", "expect: 100-Continue\r\n").expects_continue);
    assert!(!with("1.0", "expect: 100-continue\r\n").expects_continue);
    assert!(!with("1.1", "expect: more\r\n").expects_continue);
    assert!(!with("1.1", "").expects_continue);
}

// [HTTP-49]
#[test]
fn what_is_no_head_is_refused_and_a_part_of_one_is_not() {
    for raw in [
        "GET  / HTTP/1.1\r\n\r\n",
        "GET / HTTP/2.0\r\n\r\n",
        "GET / HTTP/1.1\r\n x: y\r\n\r\n",
        "GET / HTTP/1.1\r\nx : y\r\n\r\n",
        "GET / HTTP/1.1\r\nx: a\0b\r\n\r\n",
        "G\u{7f}T / HTTP/1.1\r\n\r\n",
        "GET /\u{1} HTTP/1.1\r\n\r\n",
        "GET http:// HTTP/1.1\r\n\r\n",
    ] {
        assert_eq!(parse(raw).err(), Some(BadRequest::Malformed), "{raw:?}");
    }
    for raw in ["", "\r\n", "GE", "GET /x", "GET / HTTP/1.1\r\nhost: h\r\n"] {
        assert!(matches!(parse(raw), Ok(None)), "{raw:?}");
    }
}

// [HTTP-49]
#[test]
fn a_head_has_limits_whether_it_is_whole_or_not() {
    let fields = |count: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(count));
    assert!(parse(&fields(MAX_HEADERS)).is_ok_and(|found| found.is_some()));
    assert_eq!(parse(&fields(MAX_HEADERS + 1)).err(), Some(BadRequest::TooLarge));
    let target = |length: usize| format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(length - 1));
    assert!(parse(&target(MAX_TARGET_BYTES)).is_ok_and(|found| found.is_some()));
    assert_eq!(
        parse(&target(MAX_TARGET_BYTES + 1)).err(),
        Some(BadRequest::TargetTooLong)
    );
    let long = "x".repeat(MAX_REQUEST_HEAD_BYTES);
    assert_eq!(
        parse(&format!("GET /{long}")).err(),
        Some(BadRequest::TargetTooLong)
    );
    let value = |end: &str| format!("GET / HTTP/1.1\r\nx: {long}{end}");
    assert_eq!(parse(&value("")).err(), Some(BadRequest::TooLarge));
    assert_eq!(parse(&value("\r\n\r\n")).err(), Some(BadRequest::TooLarge));
}

proptest! {
    /// Whatever is parsed was whole, and no shorter part of it was.
    #[test]
    fn nothing_is_taken_before_its_end(fields in "([a-z]{1,8}: [ -~]{0,12}\r\n){0,6}", rest in "[ -~]{0,8}") {
        let head = format!("POST /x HTTP/1.1\r\n{fields}\r\n");
        let whole = format!("{head}{rest}");
        let (_, length) = parse(&whole).unwrap().expect("a whole head");
        prop_assert_eq!(length, head.len());
        for end in 0..head.len() {
            prop_assert!(matches!(parse(&whole[..end]), Ok(None)), "{}", end);
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm(raw in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Some((_, length))) = parse_request(&raw) {
            prop_assert!(length <= raw.len());
        }
    }
}
