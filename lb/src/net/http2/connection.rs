//! One connection and the places on it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::time::Instant;

use super::STREAM_WINDOW;
use super::sending::Sending;
use super::wire::{Io, Upload, Wire};
use crate::net::Error;
use crate::net::place::Peer;
use crate::net::pool::{Connection, Ends};
use crate::wire::http1::MAX_HEAD_BYTES;

/// An attempt that was given up after so long without a head retires its connection: it may be the connection that does
/// not answer. The others on it finish; what it costs if the upstream was only slow is a handshake.
const SUSPECT_AFTER: Duration = Duration::from_secs(1);

/// A connection that many requests share.
#[derive(Debug)]
pub(in crate::net) struct Multiplexed {
    sender: SendRequest<Sending>,
    wire: Arc<Wire>,
    peer: Peer,
    born: Instant,
    generation: AtomicU64,
    /// Streams at a time by our own configuration.
    most: usize,
}

impl Multiplexed {
    /// Speaks HTTP/2 on a connection that is set up, in tasks of the current runtime, and tells `ends` of its streams.
    pub(in crate::net) async fn start(
        connection: Connection,
        most: usize,
        ends: Ends,
    ) -> Result<Arc<Self>, Error> {
        let Connection {
            stream,
            peer,
            born,
            generation,
            followed,
            open,
        } = connection;
        let wire = Arc::new(Wire::new(followed, ends));
        let io = TokioIo::new(Io::new(stream, Arc::clone(&wire), open));
        let streams = u32::try_from(most).unwrap_or(u32::MAX);
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(STREAM_WINDOW.saturating_mul(streams).min(MAX_WINDOW))
            .initial_max_send_streams(most)
            .max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX));
        let (sender, driver) = builder
            .handshake(io)
            .await
            .map_err(|error| Error::Connect(io::Error::other(error)))?;
        tokio::spawn(drive(driver, Arc::clone(&wire)));
        Ok(Arc::new(Self {
            sender,
            wire,
            peer,
            born,
            generation: AtomicU64::new(generation),
            most,
        }))
    }

    /// Whether it takes new streams, when it has room for them.
    pub(in crate::net) fn is_open(&self) -> bool {
        !self.wire.is_retired() && !self.sender.is_closed()
    }

    /// A place for one stream.
    pub(in crate::net) fn slot(self: &Arc<Self>) -> Option<Slot> {
        if self.wire.streams() >= self.max_streams() {
            return None;
        }
        self.wire.begin();
        Some(Slot {
            connection: Arc::clone(self),
            since: Instant::now(),
            waiting: true,
        })
    }

    /// Streams at a time that both sides allow.
    pub(in crate::net) fn max_streams(&self) -> usize {
        self.most.min(self.wire.allowed())
    }

    /// Since when there has been no stream on it, if there is none.
    pub(in crate::net) fn idle_since(&self) -> Option<Instant> {
        (self.wire.streams() == 0).then(|| self.wire.idle_since())
    }

    pub(in crate::net) fn born(&self) -> Instant {
        self.born
    }

    pub(in crate::net) fn peer(&self) -> &Peer {
        &self.peer
    }

    pub(in crate::net) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(in crate::net) fn set_generation(&self, generation: u64) {
        self.generation.store(generation, Ordering::Release);
    }
}

impl Drop for Multiplexed {
    fn drop(&mut self) {
        self.wire.abandon();
    }
}

/// HTTP/2's largest window.
const MAX_WINDOW: u32 = (1 << 31) - 1;

type Driver = hyper::client::conn::http2::Connection<TokioIo<Io>, Sending, TokioExecutor>;

async fn drive(mut driver: Driver, wire: Arc<Wire>) {
    let ended = std::future::poll_fn(|cx| {
        wire.set_driver(cx.waker());
        let polled: Poll<hyper::Result<()>> = Pin::new(&mut driver).poll(cx);
        wire.learn_allowed(driver.current_max_send_streams());
        polled
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "an HTTP/2 connection to an upstream ended");
    }
    wire.retire();
}

/// One stream's place on a connection.
#[derive(Debug)]
pub(in crate::net) struct Slot {
    connection: Arc<Multiplexed>,
    since: Instant,
    /// Whether there is no response head yet.
    waiting: bool,
}

impl Slot {
    pub(super) fn sender(&self) -> SendRequest<Sending> {
        self.connection.sender.clone()
    }

    pub(super) fn upload(&self) -> Upload {
        self.connection.wire.upload()
    }

    /// Ends once the kernel plane gives up what has no head yet.
    pub(super) async fn given_up(&self) {
        self.connection.wire.given_up().await;
    }

    /// Whether the connection was ended on the kernel plane's word.
    pub(in crate::net) fn is_ended(&self) -> bool {
        self.connection.wire.is_ended()
    }

    /// The head has come, or will not.
    pub(super) fn answered(&mut self) {
        if std::mem::take(&mut self.waiting) {
            self.connection.wire.answered();
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let wire = &self.connection.wire;
        if self.waiting && self.since.elapsed() >= SUSPECT_AFTER {
            wire.retire();
        }
        wire.finish(self.waiting);
    }
}
