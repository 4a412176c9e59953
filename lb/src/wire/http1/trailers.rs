//! The trailer section behind the last chunk.

use http::HeaderMap;
use http::header::{self, HeaderName, HeaderValue};

use super::head::MAX_HEADERS;
use super::hop::{is_always_hop_by_hop, options};
use super::{MAX_HEAD_BYTES, Malformed};

#[cfg(test)]
mod tests;

/// Whether the section has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Ended,
    More,
}

/// Collects the section, from its first byte.
#[derive(Debug, Default)]
pub(super) struct Section {
    raw: Vec<u8>,
    /// A CR at the start of a line has come: the section ends with the LF that must follow.
    ending: bool,
    fields: HeaderMap,
}

impl Section {
    /// Takes the next byte. Lines end with CR LF here and nothing else.
    pub(super) fn push(&mut self, byte: u8) -> Result<Progress, Malformed> {
        if self.ending {
            if byte != b'\n' {
                return Err(Malformed::Trailers);
            }
            self.parse()?;
            return Ok(Progress::Ended);
        }
        match (self.raw.last(), byte) {
            (None | Some(b'\n'), b'\r') => self.ending = true,
            (last, b'\n') if last != Some(&b'\r') => return Err(Malformed::Trailers),
            (Some(b'\r'), other) if other != b'\n' => return Err(Malformed::Trailers),
            _ if self.raw.len() == MAX_HEAD_BYTES => return Err(Malformed::Trailers),
            _ => self.raw.push(byte),
        }
        Ok(Progress::More)
    }

    pub(super) fn has_fields(&self) -> bool {
        !self.fields.is_empty()
    }

    /// The fields that may be passed on, if there are any.
    pub(super) fn into_fields(self) -> Option<HeaderMap> {
        (!self.fields.is_empty()).then_some(self.fields)
    }

    fn parse(&mut self) -> Result<(), Malformed> {
        let mut raw = std::mem::take(&mut self.raw);
        raw.extend_from_slice(b"\r\n");
        let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let Ok(httparse::Status::Complete((length, fields))) = httparse::parse_headers(&raw, &mut fields)
        else {
            return Err(Malformed::Trailers);
        };
        // No line in here is empty, so httparse cannot have stopped at an earlier one.
        debug_assert_eq!(length, raw.len(), "the section ends at its only empty line");
        for field in fields {
            let name =
                HeaderName::from_bytes(field.name.as_bytes()).map_err(|_invalid| Malformed::Trailers)?;
            let value = HeaderValue::from_bytes(field.value).map_err(|_invalid| Malformed::Trailers)?;
            if !is_forbidden(name.as_str()) {
                self.fields.append(name, value);
            }
        }
        Ok(())
    }
}

/// Whether who sent these fields takes trailers (`te: trailers`, RFC 9110 10.1.4).
pub fn takes_trailers(headers: &HeaderMap) -> bool {
    let says = |value: &HeaderValue| {
        options(value.as_bytes()).any(|coding| coding.eq_ignore_ascii_case(b"trailers"))
    };
    headers.get_all(header::TE).iter().any(says)
}

/// Removes what no trailer section may hold, for those that came by another framing than this module's.
pub fn strip_forbidden_trailers(fields: &mut HeaderMap) {
    let forbidden: Vec<HeaderName> = fields
        .keys()
        .filter(|name| is_forbidden(name.as_str()))
        .cloned()
        .collect();
    for name in forbidden {
        fields.remove(name);
    }
}

/// What has no meaning, or a dangerous one, behind a body (RFC 9110 6.5.1): framing, routing, credentials, controls
/// and what says how to read the body. `name` is in lower case.
pub(super) fn is_forbidden(name: &str) -> bool {
    let is_ours = name.starts_with("x-lb-") || name.starts_with("x-forwarded-");
    is_ours || is_always_hop_by_hop(name) || FORBIDDEN.contains(&name)
}

const FORBIDDEN: [&str; 31] = [
    "age",
    "api-key",
    "authorization",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "expect",
    "expires",
    "forwarded",
    "host",
    "location",
    "max-forwards",
    "openai-organization",
    "openai-project",
    "pragma",
    "range",
    "retry-after",
    "set-cookie",
    "traceparent",
    "tracestate",
    "trailer",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "x-api-key",
    "x-request-id",
];
