//! The body of an HTTP/2 response.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::net::BodyError;
use crate::net::http2::Slot;
use crate::wire::http1::strip_forbidden_trailers;

/// Its place on the connection is given back with its last frame. Dropped before that, its stream is reset.
#[derive(Debug)]
pub(in crate::net) struct Body {
    /// Until the body's end. Before the slot, so that the stream is reset before its place is free.
    stream: Option<hyper::body::Incoming>,
    slot: Option<Slot>,
}

impl Body {
    pub(in crate::net) fn new(stream: hyper::body::Incoming, slot: Slot) -> Self {
        let mut body = Self {
            stream: Some(stream),
            slot: Some(slot),
        };
        body.release_if_done();
        body
    }

    fn release_if_done(&mut self) {
        if self.stream.as_ref().is_some_and(http_body::Body::is_end_stream) {
            self.release();
        }
    }

    fn release(&mut self) {
        (self.stream, self.slot) = (None, None);
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(None);
        };
        let frame = match ready!(http_body::Body::poll_frame(Pin::new(stream), cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                let signalled = self.slot.as_ref().is_some_and(Slot::is_ended);
                self.release();
                return Poll::Ready(Some(Err(if signalled {
                    BodyError::Signalled
                } else {
                    BodyError::Stream(error)
                })));
            }
            None => {
                self.release();
                return Poll::Ready(None);
            }
        };
        let frame = match frame.into_data() {
            Ok(data) => {
                self.release_if_done();
                Frame::data(data)
            }
            Err(other) => {
                self.release();
                let mut trailers = other.into_trailers().unwrap_or_default();
                strip_forbidden_trailers(&mut trailers);
                Frame::trailers(trailers)
            }
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.stream
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), http_body::Body::size_hint)
    }
}
