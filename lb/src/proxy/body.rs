//! The bodies that go to clients.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::activity::Busy;
use super::relay::{Aborted, Relay};

/// A response body: lb's own in one piece, or a provider's as it comes. Keeps its connection busy until it is gone.
#[derive(Debug)]
pub(super) struct Body {
    source: Source,
    busy: Option<Busy>,
}

#[derive(Debug)]
enum Source {
    /// Sent whole, or nothing.
    Full(Option<Bytes>),
    /// Boxed, so that the connection's future is no larger for it.
    Relay(Box<Relay>),
}

impl Body {
    /// A body in one piece.
    pub(super) fn full(bytes: Bytes) -> Self {
        Self {
            source: Source::Full((!bytes.is_empty()).then_some(bytes)),
            busy: None,
        }
    }

    /// A provider's body.
    pub(super) fn relay(relay: Relay) -> Self {
        Self {
            source: Source::Relay(Box::new(relay)),
            busy: None,
        }
    }

    /// Holds `busy` for as long as the body is on its way.
    pub(super) fn keep(&mut self, busy: Busy) {
        self.busy = Some(busy);
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        if let Some(busy) = &self.busy {
            busy.asked();
        }
        let polled = match &mut self.source {
            Source::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Source::Relay(relay) => relay.poll_frame(cx),
        };
        if let (Poll::Ready(Some(Ok(_))), Some(busy)) = (&polled, &self.busy) {
            busy.gave();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Full(bytes) => bytes.is_none(),
            Source::Relay(relay) => relay.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Source::Relay(relay) => relay.size_hint(),
        }
    }
}
