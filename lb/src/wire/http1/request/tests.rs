use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method};

use super::{RequestBody, RequestHead, write_chunk_line, write_last_chunk, write_request};

fn written(method: &Method, target: &str, headers: &HeaderMap, content_length: Option<u64>) -> String {
    let target = PathAndQuery::try_from(target).unwrap();
    let host = HeaderValue::from_static("api.example:8443");
    let mut out = b"before|".to_vec();
    write_request(
        &mut out,
        RequestHead {
            method,
            target: &target,
            host: &host,
            headers,
            body: content_length.map_or(RequestBody::None, RequestBody::length),
            takes_trailers: false,
            upgrade: None,
        },
    );
    String::from_utf8(out).unwrap()
}

#[test]
fn a_head_is_one_line_for_each_part() {
    let mut headers = HeaderMap::new();
    headers.insert("accept", HeaderValue::from_static("text/event-stream"));
    headers.append("x-a", HeaderValue::from_static("1"));
    headers.append("x-a", HeaderValue::from_static("2"));
    assert_eq!(
        written(&Method::POST, "/v1/chat?a=b", &headers, Some(1234)),
        "before|POST /v1/chat?a=b HTTP/1.1\r\nhost: api.example:8443\r\naccept: text/event-stream\r\n\
         x-a: 1\r\nx-a: 2\r\ncontent-length: 1234\r\n\r\n"
    );
}

#[test]
fn a_request_without_a_body_says_nothing_of_a_length() {
    let expected = "before|GET / HTTP/1.1\r\nhost: api.example:8443\r\n\r\n";
    assert_eq!(written(&Method::GET, "/", &HeaderMap::new(), None), expected);
    let expected = "before|POST / HTTP/1.1\r\nhost: api.example:8443\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(written(&Method::POST, "/", &HeaderMap::new(), Some(0)), expected);
}

// [NET-6]
#[test]
fn what_this_hop_says_itself_is_taken_from_nobody() {
    let mut headers = HeaderMap::new();
    for name in [
        "host",
        "content-length",
        "expect",
        "connection",
        "te",
        "transfer-encoding",
        "upgrade",
        "keep-alive",
    ] {
        headers.insert(name, HeaderValue::from_static("7"));
    }
    let expected = "before|POST / HTTP/1.1\r\nhost: api.example:8443\r\ncontent-length: 3\r\n\r\n";
    assert_eq!(written(&Method::POST, "/", &headers, Some(3)), expected);
}

#[test]
fn a_target_always_begins_with_a_slash_or_is_a_star() {
    for (target, line) in [
        ("?a=b", "GET /?a=b HTTP/1.1"),
        ("/", "GET / HTTP/1.1"),
        ("*", "GET * HTTP/1.1"),
    ] {
        let head = written(&Method::GET, target, &HeaderMap::new(), None);
        assert_eq!(head.lines().next().unwrap(), format!("before|{line}"));
    }
}

#[test]
fn no_part_can_hold_a_line_end() {
    assert!(PathAndQuery::try_from("/a\r\nx: y").is_err());
    assert!(PathAndQuery::try_from("/a b").is_err());
    assert!(HeaderValue::from_str("a\r\nx: y").is_err());
    assert!(Method::from_bytes(b"GET / HTTP/1.1\r\nx").is_err());
}

fn framed(body: RequestBody, upgrade: Option<&HeaderValue>) -> String {
    let (target, host) = (PathAndQuery::from_static("/"), HeaderValue::from_static("a"));
    let mut out = Vec::new();
    let headers = HeaderMap::from_iter([(http::header::EXPECT, HeaderValue::from_static("200-maybe"))]);
    write_request(
        &mut out,
        RequestHead {
            method: &Method::POST,
            target: &target,
            host: &host,
            headers: &headers,
            body,
            takes_trailers: true,
            upgrade,
        },
    );
    String::from_utf8(out).unwrap()
}

// [NET-25]
#[test]
fn a_body_that_comes_as_a_stream_is_framed_by_its_length_or_in_chunks() {
    let start = "POST / HTTP/1.1\r\nhost: a\r\n";
    for (body, lines) in [
        (
            RequestBody::Chunked { expect: false },
            "transfer-encoding: chunked\r\n",
        ),
        (
            RequestBody::Chunked { expect: true },
            "transfer-encoding: chunked\r\nexpect: 100-continue\r\n",
        ),
        (
            RequestBody::Length {
                bytes: 7,
                expect: true,
            },
            "content-length: 7\r\nexpect: 100-continue\r\n",
        ),
    ] {
        assert_eq!(
            framed(body, None),
            format!("{start}{lines}te: trailers\r\nconnection: te\r\n\r\n")
        );
    }
}

// [NET-27]
#[test]
fn an_upgrade_is_asked_for_by_this_hop() {
    let websocket = HeaderValue::from_static("websocket");
    assert_eq!(
        framed(RequestBody::None, Some(&websocket)),
        "POST / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    );
}

// [NET-25]
#[test]
fn chunks_have_a_size_line_and_the_last_one_the_trailers_that_may_be() {
    let mut out = Vec::new();
    write_chunk_line(&mut out, 0x1a2b);
    let mut trailers = HeaderMap::new();
    for name in ["x-sum", "content-length", "authorization", "connection"] {
        trailers.insert(name, HeaderValue::from_static("1"));
    }
    write_last_chunk(&mut out, &trailers);
    assert_eq!(out, b"1a2b\r\n0\r\nx-sum: 1\r\n\r\n");
}
