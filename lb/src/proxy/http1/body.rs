//! A request's body.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::link::{Link, Piece};
use crate::proxy::incoming::BrokenBody;

/// Read from its connection as it is polled. Dropped before its end, it leaves the rest to the connection.
#[derive(Debug)]
pub(in crate::proxy) struct RequestBody {
    /// What came with the head.
    first: Bytes,
    /// Until its end.
    link: Option<Link>,
    /// Whether only its end tells how long it is.
    chunked: bool,
}

impl RequestBody {
    /// `first` came with the head; `link` has more, where there is more.
    pub(super) fn new(first: Bytes, link: Option<Link>, chunked: bool) -> Self {
        Self { first, link, chunked }
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = BrokenBody;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        if !self.first.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.first)))));
        }
        let Some(link) = &self.link else {
            return Poll::Ready(None);
        };
        let frame = match ready!(link.poll_body(cx)) {
            Ok(Piece::Data(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
            Ok(Piece::End(trailers)) => trailers.map(|fields| Ok(Frame::trailers(fields))),
            Err(broken) => Some(Err(broken)),
        };
        self.link = None;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        let ended = |link: &Link| !self.chunked && link.remaining() == Some(0);
        self.first.is_empty() && self.link.as_ref().is_none_or(ended)
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.len() as u64;
        let left = self.link.as_ref().map_or(Some(0), Link::remaining);
        match left.and_then(|left| left.checked_add(first)) {
            // As long as it is read it is not said how long it is, however much of it has come.
            Some(length) if !self.chunked => SizeHint::with_exact(length),
            _ => {
                let mut hint = SizeHint::new();
                hint.set_lower(first);
                hint
            }
        }
    }
}
