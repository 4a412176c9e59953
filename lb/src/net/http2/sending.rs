//! The body of a request.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use super::wire::Upload;
use crate::net::Streamed;
use crate::net::streamed::SourceError;
use crate::wire::http1::strip_forbidden_trailers;

/// Whole, or as it comes.
#[derive(Debug)]
pub(super) enum Sending {
    Nothing,
    Whole {
        pieces: std::vec::IntoIter<Bytes>,
        left: u64,
        trailers: Option<HeaderMap>,
        _upload: Upload,
    },
    Stream {
        body: Streamed,
        left: Option<u64>,
        /// Raised where its source fails, which hyper does not tell.
        cut: Arc<AtomicBool>,
        _upload: Upload,
    },
}

impl Sending {
    /// The body that was to be sent as it comes.
    pub(super) fn into_streamed(self) -> Option<Streamed> {
        match self {
            Self::Stream { body, .. } => Some(body),
            Self::Nothing | Self::Whole { .. } => None,
        }
    }
}

/// The frame of those that may stand behind a body.
fn behind(mut trailers: HeaderMap) -> Frame<Bytes> {
    strip_forbidden_trailers(&mut trailers);
    Frame::trailers(trailers)
}

impl Body for Sending {
    type Data = Bytes;
    type Error = SourceError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SourceError>>> {
        match self.get_mut() {
            Self::Nothing => Poll::Ready(None),
            Self::Whole {
                pieces,
                left,
                trailers,
                ..
            } => {
                let piece = pieces.find(|piece| !piece.is_empty());
                *left -= piece.as_ref().map_or(0, |piece| piece.len() as u64);
                let frame = piece.map(Frame::data);
                Poll::Ready(frame.or_else(|| trailers.take().map(behind)).map(Ok))
            }
            Self::Stream { body, left, cut, .. } => {
                let polled = body.poll(left, cx);
                if matches!(polled, Poll::Ready(Some(Err(_)))) {
                    cut.store(true, Ordering::Release);
                }
                polled.map_ok(|frame| match frame.into_trailers() {
                    Ok(trailers) => behind(trailers),
                    Err(frame) => frame,
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Whole { left, trailers, .. } => *left == 0 && trailers.is_none(),
            Self::Stream { .. } => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Nothing => SizeHint::with_exact(0),
            Self::Whole { left, .. } => SizeHint::with_exact(*left),
            Self::Stream { left, .. } => left.map_or_else(SizeHint::default, SizeHint::with_exact),
        }
    }
}
