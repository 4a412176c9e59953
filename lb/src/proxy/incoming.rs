//! The body of a client's request, whichever protocol it comes by.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::http1::RequestBody;

/// A request body as it comes.
#[derive(Debug)]
pub(super) enum Incoming {
    Http1(RequestBody),
    Http2(hyper::body::Incoming),
}

/// The body did not come as it was announced: it broke off, or was framed badly.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the request body broke off or was badly framed")]
pub(super) struct BrokenBody;

impl http_body::Body for Incoming {
    type Data = Bytes;
    type Error = BrokenBody;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenBody>>> {
        match self.get_mut() {
            Self::Http1(body) => Pin::new(body).poll_frame(cx),
            Self::Http2(body) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|_broken| BrokenBody))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http1(body) => body.is_end_stream(),
            Self::Http2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Http1(body) => body.size_hint(),
            Self::Http2(body) => body.size_hint(),
        }
    }
}
