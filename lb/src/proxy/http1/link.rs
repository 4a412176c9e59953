//! A client's connection as requests take turns on it.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use tokio::io::AsyncWrite as _;

use super::reading::{Reading, Received};
use crate::net::scratch;
use crate::proxy::incoming::BrokenBody;
use crate::proxy::socket::Downstream;
use crate::wire::http1::{BadRequest, write_interim};

/// The socket and what has been read from it. The connection and the body of its present request share it: the former
/// reads heads and writes, the latter reads in between, and it may do so from another task.
#[derive(Clone, Debug)]
pub(super) struct Link(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Until it is taken.
    io: Option<Downstream>,
    reading: Reading,
    /// An answer is under way of which only the connection's end says that it is whole.
    open_ended: bool,
}

/// The way to a client ahead of its answer. It keeps nothing alive, and a connection has one for all of its requests.
#[derive(Debug)]
pub(in crate::proxy) struct Ahead(Weak<Mutex<State>>);

/// What a read of the body has brought.
#[derive(Debug)]
pub(super) enum Piece {
    Data(Bytes),
    /// There is no more, but for these.
    End(Option<HeaderMap>),
}

/// What the client sends next; `None` where it has ended the connection.
pub(super) type Next = Option<Result<Box<Received>, BadRequest>>;

impl Link {
    pub(super) fn new(io: Downstream) -> Self {
        Self(Arc::new(Mutex::new(State {
            io: Some(io),
            reading: Reading::default(),
            open_ended: false,
        })))
    }

    pub(super) fn ahead(&self) -> Ahead {
        Ahead(Arc::downgrade(&self.0))
    }

    /// One thread runs all of a connection, so that nobody waits here.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next request, or its end.
    pub(super) fn poll_head(&self, cx: &mut Context<'_>) -> Poll<io::Result<Next>> {
        self.lock().poll_head(cx)
    }

    /// More of the present request's body.
    pub(super) fn poll_body(&self, cx: &mut Context<'_>) -> Poll<Result<Piece, BrokenBody>> {
        self.lock().poll_body(cx)
    }

    /// How much of the present request's body is still to come, where that is known. Bytes.
    pub(super) fn remaining(&self) -> Option<u64> {
        self.lock().reading.remaining()
    }

    /// Whether something of the next request has come.
    pub(super) fn is_begun(&self) -> bool {
        self.lock().reading.is_begun()
    }

    /// Whether somebody may still read the present request's body.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Whether all of the present request has come. Where nobody will read it, what is here is thrown away first, so
    /// that the connection can go on behind a body that was not wanted.
    pub(super) fn is_read(&self, cx: &mut Context<'_>) -> bool {
        let shared = self.is_shared();
        let mut state = self.lock();
        if !shared && !state.reading.owes() {
            while !state.reading.is_done() && matches!(state.poll_body(cx), Poll::Ready(Ok(Piece::Data(_)))) {
            }
        }
        state.reading.is_done()
    }

    /// Says more of what the client has not taken yet ahead of its answer.
    pub(super) fn poll_say(&self, cx: &mut Context<'_>) {
        let mut state = self.lock();
        let State { io, reading, .. } = &mut *state;
        if let Some(io) = io {
            // A connection that fails here fails at the answer, too.
            drop(poll_say(io, reading, cx, false));
        }
    }

    /// The answer begins, in `out`: nothing can be said before it any more, but for what has been begun. `open_ended`:
    /// only the connection's end will say that it is whole.
    pub(super) fn begin_answer(&self, out: &mut Vec<u8>, open_ended: bool) {
        let mut state = self.lock();
        state.reading.finish_saying(out);
        state.open_ended = open_ended;
    }

    /// All of the answer has been written, so that the connection's end tells no lie.
    pub(super) fn end_answer(&self) {
        self.lock().open_ended = false;
    }

    /// Whether an end of the connection in order would have a part of an answer look whole.
    pub(super) fn is_open_ended(&self) -> bool {
        self.lock().open_ended
    }

    /// Lends the socket, to write to it.
    pub(super) fn writing<R>(
        &self,
        write: impl FnOnce(Pin<&mut Downstream>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        write(Pin::new(self.lock().io()?))
    }

    /// The socket and what the client has sent ahead. Nothing can be read or written here after that.
    pub(super) fn take(&self) -> Option<(Downstream, Bytes)> {
        let mut state = self.lock();
        let ahead = state.reading.take_ahead();
        state.io.take().map(|io| (io, ahead))
    }
}

impl Ahead {
    /// Sends an interim response. What the client does not take at once goes ahead of the next, or of the answer.
    pub(in crate::proxy) fn say(&self, status: StatusCode, headers: &HeaderMap, cx: &mut Context<'_>) {
        let Some(link) = self.0.upgrade().map(Link) else {
            return;
        };
        let mut state = link.lock();
        let State {
            io: Some(io),
            reading,
            ..
        } = &mut *state
        else {
            return;
        };
        reading.say(|out| write_interim(out, status, headers));
        // A connection that fails here fails at the answer, too.
        drop(poll_say(io, reading, cx, false));
    }
}

impl State {
    fn io(&mut self) -> io::Result<&mut Downstream> {
        self.io.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Next>> {
        let Self { io, reading, .. } = self;
        let io = io.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        if let Some(received) = reading.head_ahead() {
            return Poll::Ready(Ok(Some(received)));
        }
        if reading.is_begun() {
            io.activity().read();
        }
        loop {
            let read = scratch::poll_read(io, cx, |raw| match raw {
                [] => Some(None),
                raw => reading.head(raw).map(Some),
            });
            if let Some(next) = ready!(read)? {
                return Poll::Ready(Ok(next));
            }
        }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, BrokenBody>> {
        let Self {
            io: Some(io),
            reading,
            ..
        } = self
        else {
            return Poll::Ready(Err(BrokenBody));
        };
        loop {
            if let Some(end) = reading.end() {
                return Poll::Ready(end.map(Piece::End));
            }
            if poll_say(io, reading, cx, true).is_err() {
                return Poll::Ready(Err(BrokenBody));
            }
            let read = scratch::poll_read(io, cx, |raw| (!raw.is_empty()).then(|| reading.body(raw)));
            match ready!(read) {
                Ok(Some(data)) if data.is_empty() => {}
                Ok(Some(data)) => return Poll::Ready(Ok(Piece::Data(data))),
                Ok(None) | Err(_) => return Poll::Ready(Err(BrokenBody)),
            }
        }
    }
}

/// Says what is to be said ahead of the answer; with `wanted`, that the body is wanted, where the client waits for that.
fn poll_say(
    io: &mut Downstream,
    reading: &mut Reading,
    cx: &mut Context<'_>,
    wanted: bool,
) -> io::Result<()> {
    while let Some(bytes) = reading.next_to_say(wanted) {
        match Pin::new(&mut *io).poll_write(cx, bytes) {
            Poll::Ready(written) => reading.said(written?),
            Poll::Pending => return Ok(()),
        }
        if let Poll::Ready(flushed) = Pin::new(&mut *io).poll_flush(cx) {
            flushed?;
        }
    }
    Ok(())
}
