//! Response heads: bytes in, one [`Head`] out.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use httparse::{Header, ParserConfig, Response, Status};

use super::framing::framing;
use super::hop::{is_always_hop_by_hop, nominated};
use super::names::Names;
use super::spare::take_fields;
use super::{Decoder, Malformed};

#[cfg(test)]
mod tests;

/// Bytes of one response head, interim ones each for themselves. Far above any server's default; it bounds what a
/// broken upstream can make us hold.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Fields of one response head or trailer section, as in hyper and nginx.
pub const MAX_HEADERS: usize = 100;

/// Interim responses (1xx) before the final one. Some servers send a 102 every few seconds while they work; more
/// than this without an answer is taken for a fault.
pub const MAX_INTERIM: u8 = 32;

/// A final response's head. Its fields are the ones to pass on: hop-by-hop fields are gone.
///
/// `content-length` stays in answers to HEAD, where it tells of a body that is not sent; elsewhere `body` says it.
#[derive(Debug)]
pub struct Head {
    /// 101 where an upgrade was asked for; else never below 200.
    pub status: StatusCode,
    /// End-to-end fields; each value is a slice of one copy of the head.
    pub headers: HeaderMap,
    /// How to read the body.
    pub body: Decoder,
    /// Whether the connection may carry another request after the body. Never for a body that ends with it.
    pub keep_alive: bool,
}

/// An interim response that may be passed on: any but 100, which is about the request's body on this hop, and 101. Its
/// fields are the ones to pass on.
#[derive(Debug)]
pub struct Interim {
    /// 102 to 199.
    pub status: StatusCode,
    /// End-to-end fields, without any that tell of a body.
    pub headers: HeaderMap,
}

/// Collects a response head from reads of any size. Interim responses (RFC 9110 15.2) are skipped, and kept for who
/// wants them.
///
/// A head that comes in one read, which is the rule, is parsed where it lies and nothing is held.
#[derive(Debug)]
pub struct HeadReader {
    /// What came of an unfinished head.
    held: Vec<u8>,
    interim: u8,
    /// Those that were not taken yet, where they are wanted.
    kept: Vec<Interim>,
    expected: Expected,
    started: bool,
    continued: bool,
}

/// What the request says about its answer.
#[derive(Clone, Copy, Debug)]
struct Expected {
    /// It was HEAD: its answer has no body whatever its head says.
    bodiless: bool,
    /// It asked to switch to another protocol, so that 101 is an answer.
    upgrade: bool,
    /// Interim responses are wanted.
    interim: bool,
}

/// Where a parse came to.
enum Parsed {
    Final(Head, usize),
    /// What is to be kept of it, whether it is 100, and its length.
    Interim(Option<Interim>, bool, usize),
    Partial,
}

impl HeadReader {
    /// For the answer to a request with this method.
    pub fn new(method: &Method) -> Self {
        Self {
            held: Vec::new(),
            interim: 0,
            kept: Vec::new(),
            expected: Expected {
                bodiless: *method == Method::HEAD,
                upgrade: false,
                interim: false,
            },
            started: false,
            continued: false,
        }
    }

    /// For the answer to a request that asks to switch to another protocol: 101 is a final response then, and all
    /// that follows its head is the other protocol's.
    #[must_use]
    pub fn allowing_upgrade(mut self, asked: bool) -> Self {
        self.expected.upgrade = asked;
        self
    }

    /// Keeps the interim responses that may be passed on, for [`Self::take_interims`].
    #[must_use]
    pub fn keeping_interims(mut self, wanted: bool) -> Self {
        self.expected.interim = wanted;
        self
    }

    /// Those that have come since the last call, in their order.
    pub fn take_interims(&mut self) -> Vec<Interim> {
        std::mem::take(&mut self.kept)
    }

    /// True once `100 Continue` has come: the upstream wants the body.
    pub fn is_continued(&self) -> bool {
        self.continued
    }

    /// True once a single byte has come.
    pub fn started(&self) -> bool {
        self.started
    }

    /// Takes the bytes of one read. With a head comes how many bytes of `raw` belong to it; what follows is body.
    pub fn feed(&mut self, raw: &[u8]) -> Result<Option<(Head, usize)>, Malformed> {
        self.started |= !raw.is_empty();
        if self.held.is_empty() {
            let (head, used) = self.scan(raw)?;
            if head.is_none() {
                self.held.extend_from_slice(&raw[used..]);
            }
            return self.within_limit(head.map(|head| (head, used)));
        }
        let before = self.held.len();
        self.held.extend_from_slice(raw);
        // A head ends with a line, and lines are few: dribbled bytes cannot make this quadratic.
        if memchr::memchr(b'\n', raw).is_none() {
            return self.within_limit(None);
        }
        let mut held = std::mem::take(&mut self.held);
        let (head, used) = self.scan(&held)?;
        if head.is_none() {
            held.drain(..used);
            self.held = held;
        }
        // What was held before was no whole head, so that one can only end behind it.
        self.within_limit(head.map(|head| (head, used - before)))
    }

    /// Parses heads up to the final one, or as far as `buf` goes; the number says how much of it is done with.
    fn scan(&mut self, buf: &[u8]) -> Result<(Option<Head>, usize), Malformed> {
        let mut used = 0;
        loop {
            match parse(&buf[used..], self.expected)? {
                Parsed::Final(head, length) => return Ok((Some(head), used + length)),
                Parsed::Interim(interim, continued, length) => {
                    used += length;
                    self.continued |= continued;
                    self.kept.extend(interim);
                }
                Parsed::Partial => return Ok((None, used)),
            }
            self.interim += 1;
            if self.interim > MAX_INTERIM {
                return Err(Malformed::Interim);
            }
        }
    }

    fn within_limit(&self, found: Option<(Head, usize)>) -> Result<Option<(Head, usize)>, Malformed> {
        if found.is_none() && self.held.len() >= MAX_HEAD_BYTES {
            return Err(Malformed::HeadTooLarge);
        }
        Ok(found)
    }
}

/// Parses one head at the start of `buf`.
fn parse(buf: &[u8], expected: Expected) -> Result<Parsed, Malformed> {
    if buf.is_empty() {
        return Ok(Parsed::Partial);
    }
    let mut fields = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_HEADERS];
    let mut response = Response::new(&mut []);
    let parsed = ParserConfig::default().parse_response_with_uninit_headers(&mut response, buf, &mut fields);
    let length = match parsed {
        Ok(Status::Complete(length)) if length <= MAX_HEAD_BYTES => length,
        Ok(Status::Partial) => return Ok(Parsed::Partial),
        Ok(Status::Complete(_)) | Err(httparse::Error::TooManyHeaders) => {
            return Err(Malformed::HeadTooLarge);
        }
        Err(_) => return Err(Malformed::Head),
    };
    let code = response.code.ok_or(Malformed::Head)?;
    match code {
        101 if expected.upgrade => return switched(&buf[..length], response.headers),
        101 => return Err(Malformed::Upgrade),
        102..200 if expected.interim => {
            let interim = interim(code, &buf[..length], response.headers)?;
            return Ok(Parsed::Interim(Some(interim), false, length));
        }
        100..200 => return Ok(Parsed::Interim(None, code == 100, length)),
        _ => {}
    }
    let status = StatusCode::from_u16(code).map_err(|_invalid| Malformed::Head)?;
    let framing = framing(response.headers, response.version == Some(1))?;
    let bodiless = expected.bodiless || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let (body, keep_alive) = match framing.decoder {
        _ if bodiless => (Decoder::Length(0), framing.keep_alive),
        Some(decoder) => (decoder, framing.keep_alive),
        None => (Decoder::UntilClose, false),
    };
    // With 204 it must not be there (RFC 9110 8.6), and a client might wait for what it promises.
    let lengths = expected.bodiless && status != StatusCode::NO_CONTENT;
    let headers = fields_to_pass(&buf[..length], response.headers, lengths)?;
    Ok(Parsed::Final(
        Head {
            status,
            headers,
            body,
            keep_alive,
        },
        length,
    ))
}

fn interim(code: u16, head: &[u8], fields: &[Header<'_>]) -> Result<Interim, Malformed> {
    // There is no body to tell of (RFC 9110 8.6).
    let mut headers = fields_to_pass(head, fields, false)?;
    headers.remove(header::TRAILER);
    let status = StatusCode::from_u16(code).map_err(|_invalid| Malformed::Head)?;
    Ok(Interim { status, headers })
}

/// The head of a 101 (RFC 9110 7.8). The connection is not this protocol's any more, so it has no body of a length and
/// carries no other request; `upgrade` stays, since it says what the connection is now.
fn switched(head: &[u8], fields: &[Header<'_>]) -> Result<Parsed, Malformed> {
    let mut headers = fields_to_pass(head, fields, false)?;
    let mut named = fields
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case("upgrade"));
    let protocol = named.next().ok_or(Malformed::Upgrade)?;
    let protocol = HeaderValue::from_bytes(protocol.value).map_err(|_invalid| Malformed::Head)?;
    headers.insert(header::UPGRADE, protocol);
    let length = head.len();
    Ok(Parsed::Final(
        Head {
            status: StatusCode::SWITCHING_PROTOCOLS,
            headers,
            body: Decoder::UntilClose,
            keep_alive: false,
        },
        length,
    ))
}

/// Copies the head once; the values are slices of the copy. `fields` lie in `head`, and `content-length` is one of them
/// only where `lengths` are to pass.
fn fields_to_pass(head: &[u8], fields: &[Header<'_>], lengths: bool) -> Result<HeaderMap, Malformed> {
    let copy = Bytes::copy_from_slice(head);
    let mut headers = take_fields(fields.len());
    Names::with(|names| {
        for field in fields.iter().filter(|field| !is_always_hop_by_hop(field.name)) {
            let name = names.get(field.name.as_bytes()).ok_or(Malformed::Head)?;
            let is_length = name == header::CONTENT_LENGTH;
            if is_length && !lengths {
                continue;
            }
            let at = field.value.as_ptr().addr() - head.as_ptr().addr();
            let value = copy.slice(at..at + field.value.len());
            let value = HeaderValue::from_maybe_shared(value).map_err(|_invalid| Malformed::Head)?;
            // The same length twice is one length; the framing has compared them.
            if is_length {
                headers.insert(name, value);
            } else {
                headers.append(name, value);
            }
        }
        Ok(())
    })?;
    for field in fields
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case("connection"))
    {
        for name in nominated(field.value) {
            headers.remove(name);
        }
    }
    Ok(headers)
}
