//! The way out: a request's head as bytes.

use std::io::Write as _;

use http::Method;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;

use super::hop::is_always_hop_by_hop;
use super::trailers::is_forbidden as is_forbidden_trailer;

#[cfg(test)]
mod tests;

/// What stands in a request's head. The types of `http` cannot hold a line end, so no value can add a line.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a, H> {
    /// Any method but CONNECT.
    pub method: &'a Method,
    /// In origin form, or `*`.
    pub target: &'a PathAndQuery,
    /// The value of `host`.
    pub host: &'a HeaderValue,
    /// End-to-end fields. `host`, `content-length`, `expect` and hop-by-hop fields among them are left out: they are
    /// this hop's to say.
    pub headers: H,
    /// What follows it.
    pub body: RequestBody,
    /// Whether trailers are taken behind the response. An upgrade has none.
    pub takes_trailers: bool,
    /// The protocol that the connection is to be switched to, as `upgrade` names it.
    pub upgrade: Option<&'a HeaderValue>,
}

/// How the body of a request is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// In chunks, behind each other until the last one.
    Chunked {
        /// Whether it waits for `100 Continue`.
        expect: bool,
    },
    /// So many bytes.
    Length {
        /// How many.
        bytes: u64,
        /// Whether they wait for `100 Continue`.
        expect: bool,
    },
    /// None, and no word of one.
    None,
}

impl RequestBody {
    /// So many bytes, sent without waiting.
    pub fn length(bytes: u64) -> Self {
        Self::Length { bytes, expect: false }
    }
}

/// Appends the head to `out`, blank line included.
pub fn write_request<'a, H>(out: &mut Vec<u8>, head: RequestHead<'a, H>)
where
    H: IntoIterator<Item = (&'a HeaderName, &'a HeaderValue)>,
{
    out.extend_from_slice(head.method.as_str().as_bytes());
    out.push(b' ');
    let target = head.target.as_str();
    if !target.starts_with('/') && target != "*" {
        out.push(b'/');
    }
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    field(out, &header::HOST, head.host.as_bytes());
    for (name, value) in head.headers {
        if !is_ours(name) {
            field(out, name, value.as_bytes());
        }
    }
    let expect = match head.body {
        RequestBody::Chunked { expect } => {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
            expect
        }
        RequestBody::Length { bytes, expect } => {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(itoa::Buffer::new().format(bytes).as_bytes());
            out.extend_from_slice(b"\r\n");
            expect
        }
        RequestBody::None => false,
    };
    if expect {
        out.extend_from_slice(b"expect: 100-continue\r\n");
    }
    if let Some(protocol) = head.upgrade {
        out.extend_from_slice(b"connection: upgrade\r\n");
        field(out, &header::UPGRADE, protocol.as_bytes());
    } else if head.takes_trailers {
        out.extend_from_slice(b"te: trailers\r\nconnection: te\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the line before a chunk of so many bytes, which must not be 0: that is the last one's.
pub fn write_chunk_line(out: &mut Vec<u8>, bytes: u64) {
    debug_assert!(bytes > 0, "an empty chunk ends the body");
    write!(out, "{bytes:x}\r\n").expect("writing to a Vec cannot fail");
}

/// Appends the last chunk, with the trailers that may stand behind a body.
pub fn write_last_chunk(out: &mut Vec<u8>, trailers: &HeaderMap) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers {
        if !is_forbidden_trailer(name.as_str()) {
            field(out, name, value.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends one field.
pub(super) fn field(out: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    let name = name.as_str().as_bytes();
    out.reserve(name.len() + value.len() + b": \r\n".len());
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// `expect` is one of them because whether to wait for a 100 is between this hop and the next.
fn is_ours(name: &HeaderName) -> bool {
    let text = name.as_str();
    match text.len() {
        4 => text == "host",
        6 => text == "expect",
        14 if text == "content-length" => true,
        _ => is_always_hop_by_hop(text),
    }
}
