//! What has been read of a client's connection, and where in its requests that is.

use bytes::Bytes;
use http::HeaderMap;

use crate::proxy::incoming::BrokenBody;
use crate::wire::http1::{BadRequest, Decoder, Incoming, MAX_REQUEST_HEAD_BYTES, parse_request};

/// A request's head, with what came of its body in the same read.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) head: Incoming,
    pub(super) first: Bytes,
    /// Whether more of the body is still to be read, if only its trailers.
    pub(super) more: bool,
}

/// The state of one connection's reading. A head that comes in one read, which is the rule, is parsed where it lies, and
/// nothing is held between requests.
#[derive(Debug)]
pub(super) struct Reading {
    /// What came of the next request, while the present one's body is done.
    ahead: Vec<u8>,
    /// Whether a head may be complete in it.
    untried: bool,
    /// The present request's body; `None` where nobody can tell what it is.
    body: Option<Decoder>,
    /// What the client waits for before it sends the body.
    owed: &'static [u8],
    /// Interim responses that the client has not taken.
    interim: Vec<u8>,
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl Default for Reading {
    fn default() -> Self {
        Self {
            ahead: Vec::new(),
            untried: false,
            body: Some(Decoder::Length(0)),
            owed: b"",
            interim: Vec::new(),
        }
    }
}

impl Reading {
    /// The next head, if it came with what came before.
    pub(super) fn head_ahead(&mut self) -> Option<Result<Box<Received>, BadRequest>> {
        if !std::mem::take(&mut self.untried) {
            return None;
        }
        let ahead = std::mem::take(&mut self.ahead);
        self.parse(ahead)
    }

    /// Takes the bytes of one read, and gives the head if it ends with them.
    pub(super) fn head(&mut self, raw: &mut [u8]) -> Option<Result<Box<Received>, BadRequest>> {
        if !self.ahead.is_empty() {
            let mut all = std::mem::take(&mut self.ahead);
            all.extend_from_slice(raw);
            // A head ends with a line, and lines are few: dribbled bytes cannot make this quadratic.
            if memchr::memchr(b'\n', raw).is_none() && all.len() < MAX_REQUEST_HEAD_BYTES {
                self.ahead = all;
                return None;
            }
            return self.parse(all);
        }
        match parse_request(raw) {
            Ok(Some((head, length))) => Some(Ok(self.begin(head, &mut raw[length..]))),
            Ok(None) => {
                self.ahead.extend_from_slice(raw);
                None
            }
            Err(fault) => Some(Err(fault)),
        }
    }

    fn parse(&mut self, mut bytes: Vec<u8>) -> Option<Result<Box<Received>, BadRequest>> {
        match parse_request(&bytes) {
            Ok(Some((head, length))) => Some(Ok(self.begin(head, &mut bytes[length..]))),
            Ok(None) => {
                self.ahead = bytes;
                None
            }
            Err(fault) => Some(Err(fault)),
        }
    }

    /// Boxed, since it goes through many hands before it is taken apart.
    fn begin(&mut self, mut head: Incoming, rest: &mut [u8]) -> Box<Received> {
        self.body = head.body.take();
        let first = self.body(rest);
        let done = self.is_done();
        let more = !done || self.body.as_ref().is_some_and(Decoder::has_trailers);
        self.owed = if !done && head.expects_continue {
            CONTINUE
        } else {
            b""
        };
        Box::new(Received { head, first, more })
    }

    /// Takes the bytes of one read of the body, and gives what they are of it. A fault among them is told by
    /// [`Self::end`].
    pub(super) fn body(&mut self, raw: &mut [u8]) -> Bytes {
        let Some(body) = &mut self.body else {
            return Bytes::new();
        };
        let Ok(decoded) = body.decode(raw) else {
            return Bytes::new();
        };
        if body.is_done() && decoded.used < raw.len() {
            self.ahead.extend_from_slice(&raw[decoded.used..]);
            self.untried = true;
        }
        Bytes::copy_from_slice(&raw[decoded.payload])
    }

    /// The end of the present request's body once it has come, with its trailers.
    pub(super) fn end(&mut self) -> Option<Result<Option<HeaderMap>, BrokenBody>> {
        match &mut self.body {
            Some(body) if body.is_done() => Some(Ok(body.take_trailers())),
            Some(body) if body.fault().is_none() => None,
            _ => Some(Err(BrokenBody)),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.body.as_ref().is_some_and(Decoder::is_done)
    }

    pub(super) fn remaining(&self) -> Option<u64> {
        self.body.as_ref()?.remaining()
    }

    pub(super) fn is_begun(&self) -> bool {
        !self.ahead.is_empty()
    }

    pub(super) fn take_ahead(&mut self) -> Bytes {
        std::mem::take(&mut self.ahead).into()
    }

    pub(super) fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// Has an interim response said.
    pub(super) fn say(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.interim);
    }

    /// What is to be said next. What is begun comes first, and what is owed only if it is `wanted`.
    pub(super) fn next_to_say(&self, wanted: bool) -> Option<&[u8]> {
        let owed = self.is_owed_begun() || (wanted && self.owes() && self.interim.is_empty());
        match (owed, &self.interim[..]) {
            (true, _) => Some(self.owed),
            (false, []) => None,
            (false, interim) => Some(interim),
        }
    }

    /// So many bytes of that have been written.
    pub(super) fn said(&mut self, bytes: usize) {
        if self.is_owed_begun() || self.interim.is_empty() {
            self.owed = self.owed.get(bytes..).unwrap_or_default();
        } else {
            self.interim.drain(..bytes);
        }
    }

    fn is_owed_begun(&self) -> bool {
        (1..CONTINUE.len()).contains(&self.owed.len())
    }

    /// Nothing more is owed. Appends what has to be said all the same.
    pub(super) fn finish_saying(&mut self, out: &mut Vec<u8>) {
        if self.is_owed_begun() {
            out.extend_from_slice(self.owed);
        }
        self.owed = b"";
        // Its room goes, too: nothing is held between requests.
        out.append(&mut std::mem::take(&mut self.interim));
    }
}

#[cfg(test)]
mod tests;
