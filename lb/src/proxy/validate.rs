//! What is a request's head and is refused all the same.
//!
//! Whatever two parties could read differently is refused rather than repaired, since the next one behind may be the
//! one that reads it the other way. docs/HTTP.md lists all of it, with what is no head in the first place.

use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Uri, Version};

use super::error::Refusal;
use crate::wire::http1::{self, Present};

/// Checks the head, and settles in `host` whom the request is for: with an absolute target or over HTTP/2 the
/// authority stands elsewhere, and it is what counts (RFC 9112, 3.2.2; RFC 9113, 8.3.1).
pub(super) fn check<B>(request: &mut Request<B>, present: Present) -> Result<(), Refusal> {
    if matches!(*request.method(), Method::CONNECT | Method::TRACE) {
        return Err(Refusal::BadRequest("this method is not served here"));
    }
    let http2 = request.version() == Version::HTTP_2;
    if http2 {
        values(request.headers())?;
    } else {
        framing(request.headers(), present, request.version())?;
    }
    if present.any(Present::EXPECT) {
        expectation(request.headers())?;
    }
    target(request.uri(), request.method())?;
    host(request, http2)?;
    if http2 {
        join_cookies(request.headers_mut());
    }
    Ok(())
}

/// RFC 9113, 8.2.1: no space around a value. h2 refuses the other characters by itself.
fn values(headers: &HeaderMap) -> Result<(), Refusal> {
    let padded = |value: &HeaderValue| {
        let ends = [value.as_bytes().first(), value.as_bytes().last()];
        ends.into_iter()
            .flatten()
            .any(|byte| matches!(byte, b' ' | b'\t'))
    };
    if headers.values().any(padded) {
        return Err(Refusal::BadRequest("a header value begins or ends with a space"));
    }
    Ok(())
}

/// How the body is delimited: `chunked` once or a length, and nothing that asks for another protocol beside it.
/// [`http1::parse_request`] makes no body of anything else.
fn framing(headers: &HeaderMap, present: Present, version: Version) -> Result<(), Refusal> {
    let length = if present.any(Present::CONTENT_LENGTH) {
        length(headers)?
    } else {
        None
    };
    if !present.any(Present::TRANSFER_ENCODING) && !present.any(Present::UPGRADE) {
        return Ok(());
    }
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let coding = codings.next();
    if codings.next().is_some() {
        return Err(Refusal::BadRequest("there is more than one transfer-encoding"));
    }
    if coding.is_some() && version < Version::HTTP_11 {
        return Err(Refusal::BadRequest("HTTP/1.0 has no transfer-encoding"));
    }
    if let Some(coding) = coding
        && !coding.as_bytes().eq_ignore_ascii_case(b"chunked")
    {
        return Err(transfer_coding(coding));
    }
    let has_body = coding.is_some() || length.is_some_and(|length| length > 0);
    if has_body && present.any(Present::UPGRADE) {
        return Err(Refusal::BadRequest(
            "a request that asks for an upgrade has no body",
        ));
    }
    Ok(())
}

/// The same, as often as it is said.
fn length(headers: &HeaderMap) -> Result<Option<u64>, Refusal> {
    let mut length = None;
    for value in headers.get_all(header::CONTENT_LENGTH) {
        match http1::content_length(value.as_bytes()) {
            Ok(bytes) if length.is_none_or(|earlier| earlier == bytes) => length = Some(bytes),
            _ => {
                return Err(Refusal::BadRequest(
                    "the content-length is no number, or there are two",
                ));
            }
        }
    }
    Ok(length)
}

fn transfer_coding(coding: &HeaderValue) -> Refusal {
    let mut words = coding
        .as_bytes()
        .split(|byte| *byte == b',')
        .map(<[u8]>::trim_ascii);
    let is_chunked = |word: &[u8]| word.eq_ignore_ascii_case(b"chunked");
    let is_token = |word: &[u8]| {
        let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        !word.is_empty() && word.iter().all(token)
    };
    let last = words.next_back().is_some_and(is_chunked);
    if last && words.clone().count() > 0 && words.all(|word| is_token(word) && !is_chunked(word)) {
        Refusal::UnknownCoding
    } else {
        Refusal::BadRequest("the transfer-encoding is not `chunked`")
    }
}

/// What lb cannot meet must not be promised by silence (RFC 9110, 10.1.1).
fn expectation(headers: &HeaderMap) -> Result<(), Refusal> {
    let met = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if headers.get_all(header::EXPECT).iter().all(met) {
        Ok(())
    } else {
        Err(Refusal::Expectation)
    }
}

fn target(uri: &Uri, method: &Method) -> Result<(), Refusal> {
    if uri
        .scheme_str()
        .is_some_and(|scheme| !matches!(scheme, "http" | "https"))
    {
        return Err(Refusal::BadRequest("the target's scheme is not http or https"));
    }
    // RFC 3986 has nothing else, and what others make of it cannot be known.
    if !uri
        .path_and_query()
        .is_none_or(|target| target.as_str().is_ascii())
    {
        return Err(Refusal::BadRequest(
            "the target holds a character that must be percent-encoded",
        ));
    }
    match uri.path() {
        "*" if *method == Method::OPTIONS => Ok(()),
        path if is_ambiguous(path) => Err(Refusal::BadRequest(
            "the path holds a segment `..` or a backslash",
        )),
        path if path.starts_with('/') => Ok(()),
        _ => Err(Refusal::BadRequest("the target does not begin with a slash")),
    }
}

/// Whether a segment of the path is `..` or stands for it, or may be one to others: whether the next one behind takes it
/// for a step up, and out of what a route allows, nobody knows here. To some an encoded slash or a backslash ends a
/// segment, to others a semicolon.
fn is_ambiguous(path: &str) -> bool {
    // Most paths have none of them.
    if memchr::memchr3(b'.', b'%', b'\\', path.as_bytes()).is_none() {
        return false;
    }
    let plain = path.to_ascii_lowercase().replace("%2e", ".").replace("%3b", ";");
    let plain = plain.replace("%2f", "/").replace("%5c", "/");
    let is_dots = |segment: &str| segment == ".." || segment.starts_with("..;");
    path.contains('\\') || plain.split('/').any(is_dots)
}

fn host<B>(request: &mut Request<B>, http2: bool) -> Result<(), Refusal> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, further) = (hosts.next(), hosts.next());
    if further.is_some() {
        return Err(Refusal::BadRequest("there is more than one host header"));
    }
    if host.is_some_and(|host| !is_host(host.as_bytes())) {
        return Err(Refusal::BadRequest("the host header is no host"));
    }
    match (request.uri().authority(), host) {
        (Some(authority), host) => {
            let authority = authority.as_str();
            // Every other character of a user's name and password is refused with it.
            if !is_host(authority.as_bytes()) {
                return Err(Refusal::BadRequest("the target's authority is no host"));
            }
            let same = host.is_none_or(|host| host.as_bytes().eq_ignore_ascii_case(authority.as_bytes()));
            if http2 && !same {
                return Err(Refusal::BadRequest("host and :authority differ"));
            }
            if !http2 && host.is_none() && request.version() == Version::HTTP_11 {
                return Err(Refusal::BadRequest("the host header is missing"));
            }
            if !same || host.is_none() {
                let settled = HeaderValue::from_str(authority);
                let settled = settled.expect("a host's characters are those of a header value");
                request.headers_mut().insert(header::HOST, settled);
            }
            Ok(())
        }
        (None, Some(_)) => Ok(()),
        (None, None) if request.version() < Version::HTTP_11 => Ok(()),
        (None, None) => Err(Refusal::BadRequest("the host header is missing")),
    }
}

/// Whether this is a name or an address, with a port or without. No user, no list, no path, nothing empty.
fn is_host(text: &[u8]) -> bool {
    let (name, port) = match text {
        [b'[', rest @ ..] => {
            let Some(end) = rest.iter().position(|byte| *byte == b']') else {
                return false;
            };
            let (address, rest) = rest.split_at(end);
            let Ok(Ok(_)) = std::str::from_utf8(address).map(str::parse::<std::net::Ipv6Addr>) else {
                return false;
            };
            match &rest[1..] {
                [] => return true,
                [b':', port @ ..] => return is_port(port),
                _ => return false,
            }
        }
        _ => match text.iter().position(|byte| *byte == b':') {
            Some(colon) => (&text[..colon], Some(&text[colon + 1..])),
            None => (text, None),
        },
    };
    let allowed = |byte: &u8| IN_NAMES[usize::from(*byte)];
    !name.is_empty() && name.iter().all(allowed) && port.is_none_or(is_port)
}

/// Which bytes a host's name may hold.
const IN_NAMES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        byte += 1;
    }
    table
};

/// A port may be empty (RFC 3986, 3.2.3).
fn is_port(text: &[u8]) -> bool {
    text.is_empty()
        || text.iter().all(u8::is_ascii_digit)
            && std::str::from_utf8(text).is_ok_and(|port| port.parse::<u16>().is_ok())
}

/// HTTP/2 may send a cookie in crumbs; HTTP/1 has one line (RFC 9113, 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let mut crumbs = headers.get_all(header::COOKIE).iter();
    let (Some(first), Some(second)) = (crumbs.next(), crumbs.next()) else {
        return;
    };
    let crumbs = [first, second].into_iter().chain(crumbs);
    let joined = crumbs
        .map(HeaderValue::as_bytes)
        .collect::<Vec<_>>()
        .join(&b"; "[..]);
    if let Ok(value) = HeaderValue::from_bytes(&joined) {
        headers.insert(header::COOKIE, value);
    }
}

#[cfg(test)]
mod tests;
