//! Puts the client's name for the model into a response on its way, where the model asks for it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, Response};
use http_body::{Body as _, Frame};

use super::body::Body;
use super::relay::Aborted;
use crate::wire::rename::Renamer;

/// A body in which the model is named as its client named it.
#[derive(Debug)]
pub(super) struct Renamed {
    inner: Body,
    renamer: Renamer,
    /// Trailers that wait for what was still held.
    trailers: Option<Frame<Bytes>>,
    ended: bool,
}

/// Has `response` name `model`. What is neither JSON nor an event stream, or is compressed, stays as it is.
pub(super) fn apply(response: Response<Body>, model: &str, max_event_bytes: usize) -> Response<Body> {
    let Some(renamer) = renamer(response.headers(), model, max_event_bytes) else {
        return response;
    };
    let (mut parts, inner) = response.into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    let renamed = Renamed {
        inner,
        renamer,
        trailers: None,
        ended: false,
    };
    Response::from_parts(parts, Body::renamed(renamed))
}

fn renamer(headers: &HeaderMap, model: &str, max_event_bytes: usize) -> Option<Renamer> {
    let encoded = headers
        .get(CONTENT_ENCODING)
        .is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"));
    let value = headers.get(CONTENT_TYPE).filter(|_| !encoded)?;
    let essence = value.as_bytes().split(|byte| *byte == b';').next()?.trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") {
        Some(Renamer::document(model))
    } else if essence.eq_ignore_ascii_case(b"text/event-stream") {
        Some(Renamer::events(model, max_event_bytes))
    } else {
        None
    }
}

impl Renamed {
    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        loop {
            if self.ended {
                return Poll::Ready(self.trailers.take().map(Ok));
            }
            let frame = match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(aborted)) => return Poll::Ready(Some(Err(aborted))),
                None => {
                    self.ended = true;
                    let rest = self.renamer.finish();
                    if rest.is_empty() {
                        continue;
                    }
                    return Poll::Ready(Some(Ok(Frame::data(rest))));
                }
            };
            match frame.into_data() {
                Ok(data) => {
                    let data = self.renamer.feed(data);
                    if !data.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                }
                Err(trailers) => self.trailers = Some(trailers),
            }
        }
    }
}
