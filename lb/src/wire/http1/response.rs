//! The way back: a response's head as bytes.

use http::header::{self, HeaderMap, HeaderName};
use http::{StatusCode, Version};

use super::hop::options;
use super::request::field;

#[cfg(test)]
mod tests;

/// What stands in a response's head.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// The request's: a client of HTTP/1.0 is answered in its own version.
    pub version: Version,
    /// Any.
    pub status: StatusCode,
    /// `content-length`, `transfer-encoding` and `connection` among them are left out where `body` and `connection`
    /// say them.
    pub headers: &'a HeaderMap,
    /// What follows it.
    pub body: ResponseBody,
    /// What becomes of the connection, where that is to be said.
    pub connection: Option<&'static str>,
    /// The time of day, as `date` says it; left out where the headers have one.
    pub date: &'a str,
}

/// How the body of a response is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseBody {
    /// In chunks.
    Chunked,
    /// So many bytes.
    Length(u64),
    /// None, and the headers say what there is to say of it.
    None,
    /// All until the connection ends.
    UntilClose,
}

/// Appends the head to `out`, blank line included.
pub fn write_response(out: &mut Vec<u8>, head: &ResponseHead<'_>) {
    status_line(out, head.version, head.status);
    let mut dated = false;
    for (name, value) in head.headers {
        let said_here = match name.as_str().len() {
            4 => {
                dated |= *name == header::DATE;
                false
            }
            10 => head.connection.is_some() && *name == header::CONNECTION,
            14 => head.body != ResponseBody::None && *name == header::CONTENT_LENGTH,
            17 => *name == header::TRANSFER_ENCODING,
            _ => false,
        };
        if !said_here {
            field(out, name, value.as_bytes());
        }
    }
    match head.body {
        ResponseBody::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        ResponseBody::Length(bytes) => {
            out.extend_from_slice(b"content-length: ");
            out.extend_from_slice(itoa::Buffer::new().format(bytes).as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        ResponseBody::None | ResponseBody::UntilClose => {}
    }
    if let Some(connection) = head.connection {
        out.extend_from_slice(b"connection: ");
        out.extend_from_slice(connection.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if !dated {
        out.extend_from_slice(b"date: ");
        out.extend_from_slice(head.date.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends an interim response to `out`, blank line included.
pub fn write_interim(out: &mut Vec<u8>, status: StatusCode, headers: &HeaderMap) {
    status_line(out, Version::HTTP_11, status);
    for (name, value) in headers {
        field(out, name, value.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

fn status_line(out: &mut Vec<u8>, version: Version, status: StatusCode) {
    let version: &[u8] = if version == Version::HTTP_10 {
        b"HTTP/1.0 "
    } else {
        b"HTTP/1.1 "
    };
    out.extend_from_slice(version);
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Those of `trailers` that may be sent: the ones that the response's own fields announced (RFC 9110, 6.6.2).
pub fn keep_announced(trailers: &HeaderMap, announced: &[HeaderName]) -> HeaderMap {
    let kept = trailers.iter().filter(|(name, _)| announced.contains(name));
    let mut out = HeaderMap::new();
    for (name, value) in kept {
        out.append(name.clone(), value.clone());
    }
    out
}

/// The names of the trailers that these fields announce.
pub fn announced_trailers(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(header::TRAILER).iter();
    let names = values.flat_map(|value| options(value.as_bytes()));
    names
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        .collect()
}
