//! A request on its way to the socket.

use std::borrow::Cow;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Method};
use tokio::io::AsyncWrite;

use super::source::Source;
use super::{Request, Streamed, scratch};
use crate::wire::http1::{RequestBody, RequestHead, write_chunk_line, write_last_chunk, write_request};

/// Bodies up to this size are copied behind the head: cheaper than a vectored write, and one TLS record.
const COPIED_BODY_BYTES: u64 = 4096;

/// Pieces handed to one vectored write.
const MAX_SLICES: usize = 16;

/// Head and body, and how far they have been written.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The head, and the body behind it if that is small.
    head: Vec<u8>,
    /// The body if it is not. What has been written is cut off.
    pieces: Vec<Bytes>,
    /// Bytes of `head` that have been written.
    written: usize,
    /// Pieces that have been written.
    sent_pieces: usize,
    /// Whether all has been written *and* flushed. Then nothing is held any more: an answer may take minutes.
    sent: bool,
    /// Where further pieces come from, for a body that is not at hand.
    source: Option<Box<Source>>,
}

impl Outgoing {
    pub(super) fn new(request: &Request<'_>) -> Self {
        let content_length = request.content_length();
        let body = request.body.unwrap_or_default();
        let (framing, body) = match (content_length, request.trailers) {
            // Methods whose meaning is in the body say that it is empty (RFC 9110, 8.6).
            (None, _) if matches!(*request.method, Method::PATCH | Method::POST | Method::PUT) => {
                (RequestBody::length(0), Cow::Borrowed(body))
            }
            (None, _) => (RequestBody::None, Cow::Borrowed(body)),
            (Some(length), None) => (RequestBody::length(length), Cow::Borrowed(body)),
            // Only behind chunks is there room for trailers.
            (Some(length), Some(trailers)) => (
                RequestBody::Chunked { expect: false },
                Cow::Owned(chunked(body, length, trailers)),
            ),
        };
        let mut head = write_head(request, framing);
        let pieces = if content_length <= Some(COPIED_BODY_BYTES) {
            for piece in &*body {
                head.extend_from_slice(piece);
            }
            Vec::new()
        } else {
            body.iter().filter(|piece| !piece.is_empty()).cloned().collect()
        };
        Self {
            head,
            pieces,
            written: 0,
            sent_pieces: 0,
            sent: false,
            source: None,
        }
    }

    /// A request whose body is sent as it comes; `request` itself has none.
    pub(super) fn streaming(request: &Request<'_>, body: Streamed) -> Self {
        Self {
            head: write_head(request, body.framing()),
            pieces: Vec::new(),
            written: 0,
            sent_pieces: 0,
            sent: false,
            source: Some(Box::new(Source::new(body))),
        }
    }

    /// The body that is sent as it comes, if nothing of it or its head has been taken.
    pub(super) fn into_unread(mut self) -> Option<Streamed> {
        let untouched = !self.is_begun();
        let source = self.source.take().filter(|_| untouched)?;
        Some(source.into_body())
    }

    /// True while the body is held back until the upstream says that it wants it.
    pub(super) fn is_held_back(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.is_held_back())
    }

    /// The upstream wants the body, or is not going to say so.
    pub(super) fn go_on(&mut self) {
        if let Some(source) = &mut self.source {
            source.go_on();
        }
    }

    /// True once the body's source has failed: the rest of the request will never come.
    pub(super) fn is_cut(&self) -> bool {
        self.source.as_ref().is_some_and(|source| source.is_cut())
    }

    /// True once the socket has taken a byte.
    pub(super) fn is_begun(&self) -> bool {
        self.sent || self.written > 0
    }

    /// True once everything has been taken and flushed.
    pub(super) fn is_sent(&self) -> bool {
        self.sent
    }

    /// Writes as much as `io` takes. Ready when all is sent; then it is not to be called again.
    pub(super) fn poll_send<S: AsyncWrite + Unpin>(
        &mut self,
        io: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_write_all(io, cx))?;
            let Some(source) = &mut self.source else { break };
            self.pieces.clear();
            self.sent_pieces = 0;
            match source.poll_pieces(&mut self.pieces, cx) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) => break,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    // What there is goes out: the next piece may take as long as it likes.
                    ready!(Pin::new(io).poll_flush(cx))?;
                    return Poll::Pending;
                }
            }
        }
        ready!(Pin::new(io).poll_flush(cx))?;
        self.sent = true;
        self.release();
        Poll::Ready(Ok(()))
    }

    fn poll_write_all<S: AsyncWrite + Unpin>(
        &mut self,
        io: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.written < self.head.len() || self.sent_pieces < self.pieces.len() {
            let written = match self.pieces[self.sent_pieces..] {
                [] => ready!(Pin::new(&mut *io).poll_write(cx, &self.head[self.written..]))?,
                [ref piece] if self.written == self.head.len() => {
                    ready!(Pin::new(&mut *io).poll_write(cx, piece))?
                }
                _ => ready!(self.poll_write_vectored(io, cx))?,
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(written);
        }
        Poll::Ready(Ok(()))
    }

    fn release(&mut self) {
        scratch::give_write(std::mem::take(&mut self.head));
        self.pieces = Vec::new();
        self.source = None;
    }

    fn poll_write_vectored<S: AsyncWrite + Unpin>(
        &self,
        io: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        slices[0] = IoSlice::new(&self.head[self.written..]);
        let pieces = &self.pieces[self.sent_pieces..];
        for (slice, piece) in slices[1..].iter_mut().zip(pieces) {
            *slice = IoSlice::new(piece);
        }
        let filled = 1 + pieces.len().min(MAX_SLICES - 1);
        // An empty first slice does no harm to a socket, but a writer that takes one slice at a time would stop at it.
        let first = usize::from(slices[0].is_empty());
        Pin::new(io).poll_write_vectored(cx, &slices[first..filled])
    }

    fn advance(&mut self, mut written: usize) {
        let of_head = written.min(self.head.len() - self.written);
        self.written += of_head;
        written -= of_head;
        while let Some(piece) = self.pieces.get_mut(self.sent_pieces).filter(|_| written > 0) {
            let of_piece = written.min(piece.len());
            written -= of_piece;
            // What is written is let go of at once, not when all is.
            drop(piece.split_to(of_piece));
            if piece.is_empty() {
                self.sent_pieces += 1;
            }
        }
    }
}

/// A whole body of that many bytes as one chunk, with trailers.
fn chunked(body: &[Bytes], length: u64, trailers: &HeaderMap) -> Vec<Bytes> {
    let (mut first, mut last) = (Vec::new(), Vec::new());
    if length > 0 {
        write_chunk_line(&mut first, length);
        last.extend_from_slice(b"\r\n");
    }
    write_last_chunk(&mut last, trailers);
    std::iter::once(first.into())
        .chain(body.iter().cloned())
        .chain([last.into()])
        .collect()
}

fn write_head(request: &Request<'_>, body: RequestBody) -> Vec<u8> {
    let mut head = scratch::take_write();
    let Request {
        method,
        target,
        host,
        headers,
        upgrade,
        takes_trailers,
        ..
    } = *request;
    write_request(
        &mut head,
        RequestHead {
            method,
            target,
            host,
            headers: headers.iter(),
            body,
            takes_trailers,
            upgrade,
        },
    );
    head
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if !self.sent {
            self.release();
        }
    }
}
