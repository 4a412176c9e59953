use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{StatusCode, Version};

use super::{ResponseBody, ResponseHead, announced_trailers, keep_announced, write_interim, write_response};

fn fields(list: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for (name, value) in list {
        fields.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    fields
}

fn written(headers: &HeaderMap, change: impl FnOnce(&mut ResponseHead<'_>)) -> String {
    let mut head = ResponseHead {
        version: Version::HTTP_11,
        status: StatusCode::OK,
        headers,
        body: ResponseBody::None,
        connection: None,
        date: "now",
    };
    change(&mut head);
    let mut out = b"before ".to_vec();
    write_response(&mut out, &head);
    String::from_utf8(out).unwrap()
}

#[test]
fn an_interim_response_is_its_status_and_its_fields() {
    let mut out = b"before ".to_vec();
    write_interim(
        &mut out,
        StatusCode::PROCESSING,
        &fields(&[("link", "</a>"), ("link", "</b>")]),
    );
    write_interim(&mut out, StatusCode::from_u16(199).unwrap(), &HeaderMap::new());
    let expected = "before HTTP/1.1 102 Processing\r\nlink: </a>\r\nlink: </b>\r\n\r\nHTTP/1.1 199 \r\n\r\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn a_head_is_written_behind_what_is_there() {
    let headers = fields(&[("x-a", "b"), ("x-a", "c")]);
    assert_eq!(
        written(&headers, |_| {}),
        "before HTTP/1.1 200 OK\r\nx-a: b\r\nx-a: c\r\ndate: now\r\n\r\n"
    );
    let old = |head: &mut ResponseHead<'_>| {
        head.version = Version::HTTP_10;
        head.status = StatusCode::from_u16(599).unwrap();
        head.connection = Some("keep-alive");
    };
    assert_eq!(
        written(&HeaderMap::new(), old),
        "before HTTP/1.0 599 \r\nconnection: keep-alive\r\ndate: now\r\n\r\n"
    );
}

#[test]
fn the_framing_is_said_once_and_by_us() {
    let headers = fields(&[
        ("content-length", "7"),
        ("transfer-encoding", "gzip"),
        ("connection", "upgrade"),
        ("date", "then"),
    ]);
    for (body, connection, expected) in [
        (
            ResponseBody::Length(30),
            Some("close"),
            "date: then\r\ncontent-length: 30\r\nconnection: close\r\n",
        ),
        (
            ResponseBody::Chunked,
            None,
            "connection: upgrade\r\ndate: then\r\ntransfer-encoding: chunked\r\n",
        ),
        (
            ResponseBody::UntilClose,
            Some("close"),
            "date: then\r\nconnection: close\r\n",
        ),
        // Of a body that is not sent the fields may tell.
        (
            ResponseBody::None,
            None,
            "content-length: 7\r\nconnection: upgrade\r\ndate: then\r\n",
        ),
    ] {
        let text = written(&headers, |head| (head.body, head.connection) = (body, connection));
        assert_eq!(
            text,
            format!("before HTTP/1.1 200 OK\r\n{expected}\r\n"),
            "{body:?}"
        );
    }
}

#[test]
fn trailers_are_those_that_were_announced() {
    let headers = fields(&[("trailer", "x-a, X-B"), ("trailer", "no token,x-c")]);
    let announced = announced_trailers(&headers);
    assert_eq!(announced, ["x-a", "x-b", "x-c"]);
    let trailers = fields(&[("x-b", "1"), ("x-d", "2"), ("x-b", "3")]);
    assert_eq!(
        keep_announced(&trailers, &announced),
        fields(&[("x-b", "1"), ("x-b", "3")])
    );
    assert!(keep_announced(&trailers, &[]).is_empty());
}
