//! Response bodies, whichever HTTP they come by.

mod http1;
mod http2;

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::BodyError;
use super::upgraded::Upgraded;

pub(super) use http1::{Body as Http1, Lease};
pub(super) use http2::Body as Http2;

/// The body of a response.
///
/// It reads ahead nothing: an HTTP/1.1 socket is read when the body is polled, once for each frame, and all that one
/// read brought is one frame; an HTTP/2 stream is given room for what was taken. Dropped before its end, or after an
/// error, it ends the request at once: the connection of HTTP/1.1 is closed, the stream of HTTP/2 reset.
#[derive(Debug)]
pub struct Incoming {
    kind: Kind,
    reused: bool,
}

/// No trait object: the relay of a token is to cost one branch for this. The commoner and larger one is boxed, since a
/// response goes through many hands before its body is read.
#[derive(Debug)]
enum Kind {
    Http1(Box<Http1>),
    Http2(Http2),
}

impl Incoming {
    pub(super) fn http1(body: Http1, reused: bool) -> Self {
        Self {
            kind: Kind::Http1(Box::new(body)),
            reused,
        }
    }

    pub(super) fn http2(body: Http2, reused: bool) -> Self {
        Self {
            kind: Kind::Http2(body),
            reused,
        }
    }

    /// Whether the request went over a connection that had carried others before.
    pub fn reused(&self) -> bool {
        self.reused
    }

    /// The connection itself, for the body of a response with status 101: from here on its bytes are the protocol's
    /// that `upgrade` names. `None` for any other body that is complete already.
    pub fn into_upgraded(self) -> Option<Upgraded> {
        match self.kind {
            Kind::Http1(body) => body.into_upgraded(),
            Kind::Http2(_) => None,
        }
    }
}

impl http_body::Body for Incoming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.get_mut().kind {
            Kind::Http1(body) => Pin::new(&mut **body).poll_frame(cx),
            Kind::Http2(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Http1(body) => body.is_end_stream(),
            Kind::Http2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Http1(body) => body.size_hint(),
            Kind::Http2(body) => body.size_hint(),
        }
    }
}
