//! The way out: a request's head as bytes.

use std::io::Write as _;

use http::Method;
use http::header::{self, HeaderName, HeaderValue};
use http::uri::PathAndQuery;

use super::hop::is_always_hop_by_hop;

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
    /// The length of the body that follows; `None`: no body, and no word of one.
    pub content_length: Option<u64>,
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
    if let Some(length) = head.content_length {
        write!(out, "content-length: {length}\r\n").expect("writing to a Vec cannot fail");
    }
    out.extend_from_slice(b"\r\n");
}

fn field(out: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// `expect` is one of them because the body is sent without waiting for a 100.
fn is_ours(name: &HeaderName) -> bool {
    *name == header::HOST
        || *name == header::CONTENT_LENGTH
        || *name == header::EXPECT
        || is_always_hop_by_hop(name.as_str())
}
