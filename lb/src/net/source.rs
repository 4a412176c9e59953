//! A streamed body, framed for HTTP/1.1.

use std::io;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;

use super::Streamed;
use crate::wire::http1::{write_chunk_line, write_last_chunk};

/// Gives the pieces of a body as its source has them, with the lines of the chunked coding where it has no length.
#[derive(Debug)]
pub(super) struct Source {
    body: Streamed,
    /// Bytes to come; `None`: nobody knows, and the body goes in chunks.
    left: Option<u64>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The source failed.
    Cut,
    Ended,
    HeldBack,
    Open,
}

impl Source {
    pub(super) fn new(body: Streamed) -> Self {
        Self {
            left: body.length(),
            state: if body.expects_continue() {
                State::HeldBack
            } else {
                State::Open
            },
            body,
        }
    }

    /// The body, for another connection, if it has not been read.
    pub(super) fn into_body(self) -> Streamed {
        self.body
    }

    pub(super) fn is_held_back(&self) -> bool {
        self.state == State::HeldBack
    }

    pub(super) fn go_on(&mut self) {
        if self.is_held_back() {
            self.state = State::Open;
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.state == State::Cut
    }

    /// Adds what comes next to `pieces`; false at the body's end. Pending while it is held back: whoever lets it go on
    /// polls again.
    pub(super) fn poll_pieces(
        &mut self,
        pieces: &mut Vec<Bytes>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<bool>> {
        match self.state {
            State::Ended => return Poll::Ready(Ok(false)),
            State::HeldBack => return Poll::Pending,
            State::Cut | State::Open => {}
        }
        loop {
            let frame = match ready!(self.body.poll(&mut self.left, cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => {
                    self.state = State::Cut;
                    return Poll::Ready(Err(io::Error::other(error)));
                }
                None => {
                    self.end(pieces, &HeaderMap::new());
                    return Poll::Ready(Ok(true));
                }
            };
            match frame.into_data() {
                // An empty chunk would be the last one.
                Ok(data) if data.is_empty() => {}
                Ok(data) => {
                    self.piece(pieces, data);
                    return Poll::Ready(Ok(true));
                }
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        self.end(pieces, &trailers);
                        return Poll::Ready(Ok(true));
                    }
                }
            }
        }
    }

    fn piece(&self, pieces: &mut Vec<Bytes>, data: Bytes) {
        if self.left.is_some() {
            pieces.push(data);
            return;
        }
        let mut line = Vec::with_capacity(18);
        write_chunk_line(&mut line, data.len() as u64);
        pieces.extend([line.into(), data, Bytes::from_static(b"\r\n")]);
    }

    /// A body with a length has no room for trailers.
    fn end(&mut self, pieces: &mut Vec<Bytes>, trailers: &HeaderMap) {
        self.state = State::Ended;
        if self.left.is_none() {
            let mut last = Vec::new();
            write_last_chunk(&mut last, trailers);
            pieces.push(last.into());
        }
    }
}
