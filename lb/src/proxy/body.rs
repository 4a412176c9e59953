//! The bodies that go to clients.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::activity::Busy;
use super::relay::{Aborted, Relay};
use super::rename::Renamed;
use super::tunnel::Tunnel;

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
    Relay(Box<Relay>),
    /// A provider's, with the client's name for the model.
    Renamed(Box<Renamed>),
    /// None: what follows the head is not HTTP. The tunnel is to be taken.
    Tunnel(Option<Box<Tunnel>>),
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
    pub(super) fn relay(relay: Box<Relay>) -> Self {
        Self {
            source: Source::Relay(relay),
            busy: None,
        }
    }

    /// A body in which the model has another name.
    pub(super) fn renamed(renamed: Renamed) -> Self {
        Self {
            source: Source::Renamed(Box::new(renamed)),
            busy: None,
        }
    }

    /// What stands for the body of a switch of protocols.
    pub(super) fn tunnel(tunnel: Tunnel) -> Self {
        Self {
            source: Source::Tunnel(Some(Box::new(tunnel))),
            busy: None,
        }
    }

    /// The tunnel, once, of a response that has one.
    pub(super) fn take_tunnel(&mut self) -> Option<Box<Tunnel>> {
        match &mut self.source {
            Source::Tunnel(tunnel) => tunnel.take(),
            _ => None,
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
            Source::Renamed(renamed) => renamed.poll_frame(cx),
            Source::Tunnel(_) => Poll::Ready(None),
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
            Source::Renamed(_) => false,
            Source::Tunnel(_) => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Source::Relay(relay) => relay.size_hint(),
            Source::Renamed(_) => SizeHint::default(),
            Source::Tunnel(_) => SizeHint::with_exact(0),
        }
    }
}
