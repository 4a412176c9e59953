//! The body of an HTTP/1.1 response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::net::exchange::{Answer, payload};
use crate::net::outgoing::Outgoing;
use crate::net::pool::Connection;
use crate::net::upgraded::Upgraded;
use crate::net::{BodyError, Destination, scratch};
use crate::policy::connection::Remedy;
use crate::wire::http1::Decoder;

/// Read from its connection as it is polled, once for each frame. The connection goes back to its pool with the read that ends the body, before the last frame is
/// looked at. Dropped before that, or after an error, it closes the connection at once.
#[derive(Debug)]
pub(in crate::net) struct Body {
    /// Until the body's end.
    lease: Option<Lease>,
    decoder: Decoder,
    /// Payload that came with the head.
    first: Bytes,
    keep_alive: bool,
    /// What the upstream has not yet taken of the request, which it may answer while it reads.
    unsent: Option<Box<Outgoing>>,
}

/// A connection in use.
#[derive(Debug)]
pub(in crate::net) struct Lease {
    pub(in crate::net) connection: Connection,
    pub(in crate::net) destination: Arc<Destination>,
    pub(in crate::net) worker: usize,
}

impl Body {
    /// `unsent` is what is left of the request and goes on being sent.
    pub(in crate::net) fn new(
        lease: Lease,
        answer: Answer,
        unsent: Option<Box<Outgoing>>,
    ) -> (Self, http::StatusCode, http::HeaderMap) {
        let Answer { head, first, excess } = answer;
        let mut body = Self {
            lease: Some(lease),
            decoder: head.body,
            first,
            keep_alive: head.keep_alive && !excess,
            unsent,
        };
        body.release_if_done();
        (body, head.status, head.headers)
    }

    /// The connection with what has been read from it, where it has not been given back yet.
    pub(super) fn into_upgraded(self) -> Option<Upgraded> {
        let Lease { connection, .. } = self.lease?;
        Some(Upgraded::new(connection, self.first))
    }

    /// Gives the connection back, or closes it, once the body has come to its end.
    fn release_if_done(&mut self) {
        if !self.decoder.is_done() {
            return;
        }
        if let Some(Lease {
            connection,
            destination,
            worker,
        }) = self.lease.take()
            && self.keep_alive
            && self.unsent.is_none()
        {
            destination.pool.put(worker, connection);
        }
        self.unsent = None;
    }

    /// Goes on sending the request. A write that fails says nothing of the response, but the connection is used up.
    fn poll_unsent(&mut self, cx: &mut Context<'_>) {
        let (Some(lease), Some(unsent)) = (&mut self.lease, &mut self.unsent) else {
            return;
        };
        match unsent.poll_send(&mut lease.connection.stream, cx) {
            Poll::Pending => return,
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(_)) => self.keep_alive = false,
        }
        self.unsent = None;
    }

    fn fail(&mut self, error: BodyError) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        (self.lease, self.unsent) = (None, None);
        Poll::Ready(Some(Err(error)))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    #[inline]
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if !this.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.first)))));
        }
        this.poll_unsent(cx);
        loop {
            let Some(lease) = &mut this.lease else {
                return Poll::Ready(
                    this.decoder
                        .take_trailers()
                        .map(|fields| Ok(Frame::trailers(fields))),
                );
            };
            if let Some(fault) = this.decoder.fault() {
                return this.fail(BodyError::Malformed(fault));
            }
            let decoder = &mut this.decoder;
            let read = scratch::poll_read(&mut lease.connection.stream, cx, |raw| {
                (!raw.is_empty()).then(|| payload(decoder, raw))
            });
            let Poll::Ready(read) = read else {
                ready!(lease.connection.poll_remedy(Remedy::End, cx));
                return this.fail(BodyError::Signalled);
            };
            match read {
                Ok(Some((data, excess))) => {
                    this.keep_alive &= !excess;
                    this.release_if_done();
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                }
                Ok(None) if this.decoder.may_end() => {
                    this.lease = None;
                    return Poll::Ready(None);
                }
                Ok(None) => return this.fail(BodyError::Truncated),
                // How rustls tells an end without close_notify: anybody on the way could have made it.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return this.fail(BodyError::Truncated);
                }
                Err(error) => return this.fail(BodyError::Reset(error)),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.lease.is_none() && !self.decoder.has_trailers()
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.len() as u64;
        let mut hint = SizeHint::default();
        // With a length of its own a message has no room for trailers.
        let left = self.decoder.remaining().filter(|_| !self.decoder.has_trailers());
        match left.and_then(|left| left.checked_add(first)) {
            Some(all) => hint.set_exact(all),
            None => hint.set_lower(first),
        }
        hint
    }
}
