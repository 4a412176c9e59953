//! What one attempt sends.

use std::fmt;
use std::task::Context;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::wire::http1::Interim;

/// One request, borrowed: the same one can be sent again elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Any method but CONNECT.
    pub method: &'a Method,
    /// Path and query, or `*`.
    pub target: &'a PathAndQuery,
    /// The value of `host` for this upstream.
    pub host: &'a HeaderValue,
    /// End-to-end fields. Hop-by-hop fields, `host`, `content-length` and `expect` among them are not sent.
    pub headers: Fields<'a>,
    /// The whole body, in pieces that are sent one after another. `None`: the request has no body and says nothing of
    /// one; `Some(&[])`: it has an empty one (`content-length: 0`, as a POST should).
    pub body: Option<&'a [Bytes]>,
    /// What stands behind the whole body, which then goes in chunks over HTTP/1.1; without names that mean framing,
    /// routing or credentials.
    pub trailers: Option<&'a HeaderMap>,
    /// Whether the upstream may send trailers (`te: trailers`).
    pub takes_trailers: bool,
    /// Who gets interim responses; `None` has them passed over, and so does HTTP/2.
    pub interims: Option<Interims<'a>>,
    /// The protocol that the connection is to be switched to (`websocket`); such a request has no body. It goes by
    /// HTTP/1.1, and a response with status 101 gives the connection ([`Incoming::into_upgraded`]).
    ///
    /// [`Incoming::into_upgraded`]: super::Incoming::into_upgraded
    pub upgrade: Option<&'a HeaderValue>,
}

impl Request<'_> {
    /// Bytes of the body, if there is one.
    pub(super) fn content_length(&self) -> Option<u64> {
        self.body
            .map(|pieces| pieces.iter().map(|piece| piece.len() as u64).sum())
    }
}

/// Takes interim responses as they come, in the task that waits for the answer.
#[derive(Clone, Copy)]
pub struct Interims<'a>(pub &'a (dyn Fn(Interim, &mut Context<'_>) + Sync));

impl fmt::Debug for Interims<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interims")
    }
}

/// A field of a request.
pub type Field = (HeaderName, HeaderValue);

/// The fields of one request: a client's as far as they pass, and what is said on top. They are put together while
/// they are written, so that an attempt costs no map of its own.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    /// A client's fields.
    pub client: &'a HeaderMap,
    /// Which of them pass.
    pub passes: &'a (dyn Fn(&HeaderName) -> bool + Sync),
    /// What this proxy adds. No name of these may pass from the client.
    pub added: &'a [Field],
    /// What this upstream is to get in place of whatever else has the same name.
    pub set: &'a [Field],
}

impl<'a> Fields<'a> {
    /// All of them, in the order in which they are sent.
    pub fn iter(self) -> impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)> {
        let is_set = move |name: &HeaderName| self.set.iter().any(|(set, _)| set == name);
        let client = self.client.iter();
        let added = self.added.iter().map(|(name, value)| (name, value));
        client
            .filter(move |(name, _)| (self.passes)(name))
            .chain(added)
            .filter(move |(name, _)| !is_set(name))
            .chain(self.set.iter().map(|(name, value)| (name, value)))
    }
}

impl<'a> From<&'a HeaderMap> for Fields<'a> {
    fn from(client: &'a HeaderMap) -> Self {
        Self {
            client,
            passes: &|_| true,
            added: &[],
            set: &[],
        }
    }
}

impl fmt::Debug for Fields<'_> {
    /// The names alone: values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}
