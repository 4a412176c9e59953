//! A response on its way to its client.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use http_body::Body as _;
use tokio::io::AsyncWrite as _;

use super::link::Link;
use crate::net::scratch;
use crate::proxy::body::Body;
use crate::proxy::socket::Downstream;
use crate::wire::http1::{ResponseBody, keep_announced, write_chunk_line, write_last_chunk};

/// As much is gathered of what is there at once before it is written. Bytes.
const GATHERED: usize = 16 * 1024;

/// Frames from this length on are written where they lie; shorter ones are copied behind the others. Bytes.
const LARGE: usize = 4 * 1024;

/// Writes one response: what is there at once goes in one write, and nothing more of the body is asked for while the
/// client does not take it.
#[derive(Debug)]
pub(super) struct Answer {
    body: Body,
    framing: ResponseBody,
    /// The trailers that may follow.
    announced: Vec<HeaderName>,
    /// What is to be written: this, then the large frame, then its end.
    out: Vec<u8>,
    large: Bytes,
    /// How much of the three has been.
    written: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Going,
    /// The body has nothing at present.
    Waiting,
    Ended,
    /// It broke off.
    Failed,
}

/// How a response went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Whole,
    /// All of it that there is, but it is not whole: its client must be able to tell.
    Cut,
}

impl Answer {
    /// `head` is in `out`; the body is sent as `framing` says.
    pub(super) fn new(out: Vec<u8>, body: Body, framing: ResponseBody, announced: Vec<HeaderName>) -> Self {
        let bodiless = matches!(framing, ResponseBody::None | ResponseBody::Length(0));
        Self {
            body,
            framing,
            announced,
            out,
            large: Bytes::new(),
            written: 0,
            state: if bodiless { State::Ended } else { State::Going },
        }
    }

    /// Writes until the body's end.
    pub(super) fn poll(&mut self, link: &Link, cx: &mut Context<'_>) -> Poll<io::Result<Written>> {
        loop {
            if matches!(self.state, State::Going | State::Waiting) {
                self.fill(cx);
            }
            ready!(link.writing(|io| self.poll_write(io, cx)))?;
            match self.state {
                State::Going => {}
                State::Waiting => return Poll::Pending,
                State::Ended => return Poll::Ready(Ok(Written::Whole)),
                State::Failed => return Poll::Ready(Ok(Written::Cut)),
            }
        }
    }

    /// Takes what the body has at present, up to a limit.
    fn fill(&mut self, cx: &mut Context<'_>) {
        self.state = State::Going;
        while self.state == State::Going && self.large.is_empty() && self.out.len() < GATHERED {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => self.state = State::Waiting,
                Poll::Ready(None) => self.end(None),
                Poll::Ready(Some(Err(_aborted))) => self.state = State::Failed,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.put(data),
                    Err(frame) => self.end(frame.into_trailers().ok().as_ref()),
                },
            }
        }
    }

    fn put(&mut self, data: Bytes) {
        if data.is_empty() {
            return;
        }
        if self.out.capacity() == 0 {
            self.out = scratch::take_write();
        }
        match &mut self.framing {
            ResponseBody::Chunked => write_chunk_line(&mut self.out, data.len() as u64),
            ResponseBody::Length(left) => match left.checked_sub(data.len() as u64) {
                Some(rest) => {
                    *left = rest;
                    if rest == 0 {
                        self.state = State::Ended;
                    }
                }
                // More than was promised: what is behind it could be taken for another response.
                None => return self.state = State::Failed,
            },
            ResponseBody::None | ResponseBody::UntilClose => {}
        }
        if data.len() < LARGE {
            self.out.extend_from_slice(&data);
            self.out.extend_from_slice(self.frame_end());
        } else {
            self.large = data;
        }
    }

    fn frame_end(&self) -> &'static [u8] {
        match self.framing {
            ResponseBody::Chunked => b"\r\n",
            _ => b"",
        }
    }

    fn end(&mut self, trailers: Option<&HeaderMap>) {
        self.state = State::Ended;
        match self.framing {
            ResponseBody::Chunked => {
                let trailers = trailers.map(|fields| keep_announced(fields, &self.announced));
                write_last_chunk(&mut self.out, &trailers.unwrap_or_default());
            }
            ResponseBody::Length(left) if left > 0 => self.state = State::Failed,
            _ => {}
        }
    }

    /// Writes all that is gathered.
    fn poll_write(&mut self, mut io: Pin<&mut Downstream>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.out.is_empty() && self.large.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let end: &[u8] = if self.large.is_empty() {
            b""
        } else {
            self.frame_end()
        };
        let length = self.out.len() + self.large.len() + end.len();
        while self.written < length {
            let mut parts = [
                IoSlice::new(&self.out),
                IoSlice::new(&self.large),
                IoSlice::new(end),
            ];
            let mut left = &mut parts[..];
            IoSlice::advance_slices(&mut left, self.written);
            let written = if self.large.is_empty() {
                ready!(io.as_mut().poll_write(cx, &left[0]))?
            } else {
                ready!(io.as_mut().poll_write_vectored(cx, left))?
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        ready!(io.poll_flush(cx))?;
        self.written = 0;
        self.large = Bytes::new();
        scratch::give_write(std::mem::take(&mut self.out));
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
