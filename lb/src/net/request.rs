//! What one attempt sends.

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method};

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
    pub headers: &'a HeaderMap,
    /// The whole body, in pieces that are sent one after another. `None`: the request has no body and says nothing of
    /// one; `Some(&[])`: it has an empty one (`content-length: 0`, as a POST should).
    pub body: Option<&'a [Bytes]>,
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
