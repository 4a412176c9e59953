//! A request on its way to the socket.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::AsyncWrite;

use super::{Request, scratch};
use crate::wire::http1::{RequestHead, write_request};

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
}

impl Outgoing {
    pub(super) fn new(request: &Request<'_>) -> Self {
        let mut head = scratch::take_write();
        let content_length = request.content_length();
        let Request {
            method,
            target,
            host,
            headers,
            ..
        } = *request;
        write_request(
            &mut head,
            RequestHead {
                method,
                target,
                host,
                headers: headers.iter(),
                content_length,
            },
        );
        let body = request.body.unwrap_or_default();
        let pieces = if content_length <= Some(COPIED_BODY_BYTES) {
            for piece in body {
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
        }
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
        ready!(Pin::new(io).poll_flush(cx))?;
        self.sent = true;
        self.release();
        Poll::Ready(Ok(()))
    }

    fn release(&mut self) {
        scratch::give_write(std::mem::take(&mut self.head));
        self.pieces = Vec::new();
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

impl Drop for Outgoing {
    fn drop(&mut self) {
        if !self.sent {
            self.release();
        }
    }
}
