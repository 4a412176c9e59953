//! A request body that is sent as it comes.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};

use crate::wire::http1::RequestBody;

/// What went wrong with a body that we were to send: its source's word for it.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// A body too large to be held: it is read as the upstream takes it, and so it can be sent once.
///
/// It is polled only once a connection is there to send it on; until then whoever has it can give it to another
/// attempt. Dropping it is how its source learns that no more is wanted.
pub struct Streamed {
    source: Pin<Box<dyn Body<Data = Bytes, Error = SourceError> + Send>>,
    length: Option<u64>,
    expect: bool,
}

impl Streamed {
    /// A body of this length in bytes, where it is known; otherwise it goes in chunks, or in frames without a length.
    pub fn new<B>(body: B, length: Option<u64>) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<SourceError>,
    {
        let source = Box::pin(http_body_util::BodyExt::map_err(body, Into::into));
        Self {
            source,
            length,
            expect: false,
        }
    }

    /// Has an upstream of HTTP/1.1 asked first: the body is not read before it says `100 Continue`, or has said
    /// nothing for a while, so that a refusal costs nobody the upload.
    #[must_use]
    pub fn expecting_continue(mut self) -> Self {
        self.expect = true;
        self
    }

    /// Its length in bytes, where it is known.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    pub(super) fn expects_continue(&self) -> bool {
        self.expect
    }

    pub(super) fn framing(&self) -> RequestBody {
        let expect = self.expect;
        self.length
            .map_or(RequestBody::Chunked { expect }, |bytes| RequestBody::Length {
                bytes,
                expect,
            })
    }

    /// The next frame, held to the length that was announced: less or more is an error.
    pub(super) fn poll(
        &mut self,
        left: &mut Option<u64>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, SourceError>>> {
        let polled = self.source.as_mut().poll_frame(cx);
        let Some(left) = left else { return polled };
        let Poll::Ready(frame) = &polled else {
            return Poll::Pending;
        };
        match frame {
            None if *left > 0 => Poll::Ready(Some(Err("the request body ended before its length".into()))),
            Some(Ok(frame)) => {
                let more = frame.data_ref().map_or(0, |data| data.len() as u64);
                let Some(rest) = left.checked_sub(more) else {
                    return Poll::Ready(Some(Err("the request body is longer than its length".into())));
                };
                *left = rest;
                polled
            }
            _ => polled,
        }
    }
}

impl fmt::Debug for Streamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streamed")
            .field("length", &self.length)
            .field("expect", &self.expect)
            .finish_non_exhaustive()
    }
}
