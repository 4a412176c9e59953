//! Request heads as clients send them: bytes in, one [`Incoming`] out.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Uri, Version};
use httparse::{Header, ParserConfig, Status};

use super::framing::content_length;
use super::hop::options;
use super::names::Names;
use super::spare::take_fields;
use super::{Decoder, MAX_HEADERS, Present};

#[cfg(test)]
mod tests;

/// Bytes of one request head.
pub const MAX_REQUEST_HEAD_BYTES: usize = 128 * 1024;

/// Bytes of its target, which is what `http` can hold.
pub const MAX_TARGET_BYTES: usize = u16::MAX as usize - 1;

/// Why a head cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadRequest {
    /// It is none of HTTP/1.0 or HTTP/1.1.
    Malformed,
    /// It is longer than [`MAX_REQUEST_HEAD_BYTES`] or has more than [`MAX_HEADERS`] fields.
    TooLarge,
    /// Its target is longer than [`MAX_TARGET_BYTES`].
    TargetTooLong,
}

/// A request's head.
#[derive(Debug)]
pub struct Incoming {
    /// All of its fields, in one copy of the head.
    pub request: Request<()>,
    /// Which of them are there.
    pub present: Present,
    /// How to read the body; `None` where two readers could read it differently, so that nobody may.
    pub body: Option<Decoder>,
    /// Whether it comes in chunks.
    pub chunked: bool,
    /// Whether the connection may carry another request after the answer.
    pub keep_alive: bool,
    /// Whether its client waits to be told that the body is wanted.
    pub expects_continue: bool,
}

/// Parses the head at the start of `buf`, all of which has been read. With it comes its length; `None` where it has
/// not come to its end. Empty lines before it are skipped (RFC 9112, 2.2).
///
/// What a reader could take for something else is refused, but for what the fields say of the body: that is left to
/// the caller, who sees it in [`Incoming::body`] and can tell the client.
pub fn parse_request(buf: &[u8]) -> Result<Option<(Incoming, usize)>, BadRequest> {
    let mut fields = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut []);
    let status = ParserConfig::default().parse_request_with_uninit_headers(&mut parsed, buf, &mut fields);
    let target_length = parsed.path.map_or(0, str::len);
    let length = match status {
        _ if target_length > MAX_TARGET_BYTES => return Err(BadRequest::TargetTooLong),
        Ok(Status::Complete(length)) if length <= MAX_REQUEST_HEAD_BYTES => length,
        Ok(Status::Partial) if buf.len() < MAX_REQUEST_HEAD_BYTES => return Ok(None),
        // It is still being read.
        Ok(Status::Partial) if parsed.method.is_some() && parsed.path.is_none() => {
            return Err(BadRequest::TargetTooLong);
        }
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(BadRequest::TooLarge),
        Err(_) => return Err(BadRequest::Malformed),
    };
    let incoming = incoming(&parsed, &buf[..length]).ok_or(BadRequest::Malformed)?;
    Ok(Some((incoming, length)))
}

/// Copies the head once; the target and the values are slices of the copy. `parsed` lies in `head`.
fn incoming(parsed: &httparse::Request<'_, '_>, head: &[u8]) -> Option<Incoming> {
    let copy = Bytes::copy_from_slice(head);
    let slice = |part: &[u8]| {
        let at = part.as_ptr().addr() - head.as_ptr().addr();
        copy.slice(at..at + part.len())
    };
    let mut headers = take_fields(parsed.headers.len());
    Names::with(|names| {
        for field in parsed.headers.iter() {
            let name = names.get(field.name.as_bytes())?;
            let value = HeaderValue::from_maybe_shared(slice(field.value)).ok()?;
            headers.append(name, value);
        }
        Some(())
    })?;
    let http11 = parsed.version? == 1;
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(parsed.method?.as_bytes()).ok()?;
    *request.uri_mut() = Uri::from_maybe_shared(slice(parsed.path?.as_bytes())).ok()?;
    *request.version_mut() = if http11 {
        Version::HTTP_11
    } else {
        Version::HTTP_10
    };
    let present = Present::among(&headers);
    let (body, both) = body(&headers, present, http11);
    let expects_continue = http11
        && present.any(Present::EXPECT)
        && headers[header::EXPECT]
            .as_bytes()
            .eq_ignore_ascii_case(b"100-continue");
    let keep_alive = is_kept(&headers, present, http11) && !both && body.is_some();
    *request.headers_mut() = headers;
    Some(Incoming {
        request,
        present,
        chunked: matches!(body, Some(Decoder::Chunked(_))),
        body,
        keep_alive,
        expects_continue,
    })
}

/// How the body is read, and whether two framings are given, of which the chunks count (RFC 9112, 6.3).
fn body(headers: &HeaderMap, present: Present, http11: bool) -> (Option<Decoder>, bool) {
    let mut length = None;
    if present.any(Present::CONTENT_LENGTH) {
        for value in headers.get_all(header::CONTENT_LENGTH) {
            match content_length(value.as_bytes()) {
                Ok(bytes) if length.is_none_or(|earlier| earlier == bytes) => length = Some(bytes),
                _ => return (None, false),
            }
        }
    }
    if !present.any(Present::TRANSFER_ENCODING) {
        return (Some(Decoder::Length(length.unwrap_or(0))), false);
    }
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_chunked = codings
        .next()
        .is_some_and(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    let plain = http11 && is_chunked && codings.next().is_none();
    (plain.then(Decoder::chunked), length.is_some())
}

/// RFC 9112, 9.3.
fn is_kept(headers: &HeaderMap, present: Present, http11: bool) -> bool {
    if !present.any(Present::CONNECTION) {
        return http11;
    }
    let values = headers.get_all(header::CONNECTION).iter();
    let (mut close, mut keep_alive) = (false, http11);
    for option in values.flat_map(|value| options(value.as_bytes())) {
        close |= option.eq_ignore_ascii_case(b"close");
        keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
    }
    keep_alive && !close
}
