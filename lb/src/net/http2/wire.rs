//! What the tasks of a connection and the requests on it know of each other.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::net::fate::Followed;
use crate::net::pool::{Ends, Open};
use crate::net::stream::Stream;
use crate::policy::connection::{Phase, Remedy};

/// The state of one connection.
#[derive(Debug)]
pub(super) struct Wire {
    followed: Option<Followed>,
    ends: Ends,
    /// Streams without a response head, and with one.
    waiting: AtomicUsize,
    streaming: AtomicUsize,
    /// Request bodies that are not sent to their end.
    uploads: AtomicUsize,
    /// Streams at a time that the upstream allows, as far as it has said so.
    allowed: AtomicUsize,
    retired: AtomicBool,
    ended: AtomicBool,
    /// True once the streams without a head are to be given up.
    given_up: watch::Sender<bool>,
    idle_since: Mutex<Instant>,
    socket: Mutex<Option<Waker>>,
    driver: Mutex<Option<Waker>>,
}

impl Wire {
    pub(super) fn new(followed: Option<Followed>, ends: Ends) -> Self {
        Self {
            followed,
            ends,
            waiting: AtomicUsize::new(0),
            streaming: AtomicUsize::new(0),
            uploads: AtomicUsize::new(0),
            allowed: AtomicUsize::new(usize::MAX),
            retired: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            given_up: watch::Sender::new(false),
            idle_since: Mutex::new(Instant::now()),
            socket: Mutex::default(),
            driver: Mutex::default(),
        }
    }

    /// Takes no new stream from now on.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
    }

    pub(super) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Whether the connection was ended on the kernel plane's word.
    pub(super) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Streams under way.
    pub(super) fn streams(&self) -> usize {
        self.waiting.load(Ordering::Relaxed) + self.streaming.load(Ordering::Relaxed)
    }

    pub(super) fn allowed(&self) -> usize {
        self.allowed.load(Ordering::Relaxed)
    }

    pub(super) fn learn_allowed(&self, streams: usize) {
        if streams > self.allowed.swap(streams, Ordering::Relaxed) {
            self.ends.tell_all();
        }
    }

    pub(super) fn idle_since(&self) -> Instant {
        *lock(&self.idle_since)
    }

    pub(super) fn begin(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.enter();
    }

    pub(super) fn answered(&self) {
        self.streaming.fetch_add(1, Ordering::Relaxed);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.enter();
    }

    pub(super) fn finish(&self, waiting: bool) {
        let count = if waiting { &self.waiting } else { &self.streaming };
        count.fetch_sub(1, Ordering::Relaxed);
        let idle = self.streams() == 0;
        if idle {
            *lock(&self.idle_since) = Instant::now();
        }
        self.enter();
        self.ends.tell(idle);
    }

    /// To the kernel plane a connection does what its most delicate stream does.
    fn enter(&self) {
        if let Some(followed) = &self.followed {
            followed.enter(if self.waiting.load(Ordering::Relaxed) > 0 {
                Phase::Waiting
            } else if self.streams() > 0 {
                Phase::Streaming
            } else {
                Phase::Idle
            });
        }
    }

    /// Ends once streams without a head are to be given up.
    pub(super) async fn given_up(&self) {
        // The sender is `self`, which outlives this.
        drop(self.given_up.subscribe().wait_for(|given_up| *given_up).await);
    }

    pub(super) fn upload(self: &Arc<Self>) -> Upload {
        self.uploads.fetch_add(1, Ordering::Relaxed);
        Upload(Arc::clone(self))
    }

    /// Nobody uses the connection any more. hyper ends it in good order, but for uploads that nobody can stop any more:
    /// those keep it, so the socket is closed under them.
    pub(super) fn abandon(&self) {
        self.retire();
        if self.uploads.load(Ordering::Relaxed) > 0 {
            self.end();
        }
    }

    pub(super) fn set_driver(&self, waker: &Waker) {
        *lock(&self.driver) = Some(waker.clone());
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        wake(&self.socket);
    }

    /// Ready once the socket is to be closed. Carries out what the kernel plane asks for on the way.
    fn poll_ended(&self, cx: &Context<'_>) -> Poll<()> {
        *lock(&self.socket) = Some(cx.waker().clone());
        if let Some(remedy) = self.followed.as_ref().and_then(|followed| followed.remedy(cx)) {
            self.retire();
            if remedy >= Remedy::FailOver {
                self.given_up.send_replace(true);
            }
            if remedy == Remedy::End || (remedy == Remedy::Close && self.streams() == 0) {
                self.ended.store(true, Ordering::Release);
            }
        }
        if self.is_ended() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wake(waker: &Mutex<Option<Waker>>) {
    let waker = lock(waker).take();
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// A request body that is being sent.
#[derive(Debug)]
pub(super) struct Upload(Arc<Wire>);

impl Drop for Upload {
    fn drop(&mut self) {
        self.0.uploads.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The socket as hyper sees it. It counts as a connection for as long as it is open.
#[derive(Debug)]
pub(super) struct Io {
    stream: Stream,
    wire: Arc<Wire>,
    greeted: bool,
    _open: Open,
}

impl Io {
    pub(super) fn new(stream: Stream, wire: Arc<Wire>, open: Open) -> Self {
        Self {
            stream,
            wire,
            greeted: false,
            _open: open,
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Pending => self
                .wire
                .poll_ended(cx)
                .map(|()| Err(io::ErrorKind::ConnectionAborted.into())),
            read @ Poll::Ready(_) => {
                if !self.greeted {
                    // The first thing an upstream says is how many streams it allows.
                    self.greeted = true;
                    wake(&self.wire.driver);
                }
                read
            }
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
