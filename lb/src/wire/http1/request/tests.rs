use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method};

use super::{RequestHead, write_request};

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
            content_length,
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
