//! A client connection that speaks HTTP/2.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, ready};
use std::time::Duration;

use http::Request;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until};

use super::activity::Expiry;
use super::connection::{Over, Served};
use super::incoming::Incoming;
use super::socket::Downstream;
use super::worker::Drain;
use crate::wire::http1::Present;

/// Requests that a client may have open at a time.
const MAX_STREAMS: u32 = 128;

/// A longer list of header fields is refused; h2 also bounds by it how many CONTINUATION frames it takes. Bytes.
const MAX_HEADER_LIST: u32 = 64 * 1024;

/// Streams that a client may open and reset before they are looked at (CVE-2023-44487); past it the connection ends.
const MAX_RESET_UNSEEN: usize = 20;

/// Streams that a client may make us reset by its own errors (CVE-2025-8671); past it the connection ends.
const MAX_RESET_BY_ERROR: usize = 256;

/// What one stream may hold that its client has not taken. Bytes.
const MAX_SEND_BUFFER: usize = 64 * 1024;

/// What a client may send ahead of what is read, in one request and in all. Bytes.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Serves `io` until it ends. Idle connections are ended by [`super::activity`]; hyper's pings are off, since they
/// would keep a client's silent connection alive and wake sleeping devices.
pub(super) async fn serve(served: Served<'_>, io: Downstream, drain: watch::Receiver<Drain>) {
    let streams = Streams {
        begun: Arc::default(),
        limit: served.limits.write_timeout,
    };
    let service = service_fn(|request: Request<_>| {
        let flow = Arc::new(Flow::new(Instant::now()));
        streams.put(&flow);
        let present = Present::among(request.headers());
        served.answer((request.map(Incoming::Http2), present), Some(flow))
    });
    let connection = http2::Builder::new(streams.clone())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_LIST)
        .max_pending_accept_reset_streams(MAX_RESET_UNSEEN)
        .max_local_error_reset_streams(MAX_RESET_BY_ERROR)
        .max_send_buf_size(MAX_SEND_BUFFER)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .serve_connection(TokioIo::new(io), service);
    let mut connection = pin!(connection);
    let finish = http2::Connection::graceful_shutdown;
    let over = served.drive(connection.as_mut(), finish, drain.clone()).await;
    if !matches!(over, Err(Over::Expired(Expiry::Idle))) {
        return;
    }
    // A request may be on its way already: a client that is told can tell that nobody has looked at it.
    connection.as_mut().graceful_shutdown();
    let told = tokio::time::timeout(LAST_WORD, connection.as_mut()).await;
    if told.is_err() && served.activity.is_busy() {
        drop(served.drive(connection, finish, drain).await);
    }
}

/// How long a client may take to hear that its idle connection ends.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Since when one stream's client has been asked to take something. hyper asks the body for more only when the
/// client's window is open, so a body that is not asked after it gave something waits for its client.
#[derive(Debug)]
pub(super) struct Flow {
    origin: Instant,
    /// Nanoseconds after `origin`, plus one; 0 while nothing is waited for, or not the client.
    given: AtomicU64,
}

impl Flow {
    fn new(now: Instant) -> Self {
        Self {
            origin: now,
            given: AtomicU64::new(0),
        }
    }

    /// The head or a frame of the body was given to hyper.
    pub(super) fn gave(&self) {
        let nanos = Instant::now().duration_since(self.origin).as_nanos();
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX - 1);
        self.given.store(nanos + 1, Ordering::Relaxed);
    }

    /// hyper asks for more.
    pub(super) fn asked(&self) {
        self.given.store(0, Ordering::Relaxed);
    }

    fn waits_since(&self) -> Option<Instant> {
        let given = self.given.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.origin + Duration::from_nanos(given))
    }
}

/// Runs each stream as a task of this worker. hyper ends them when their connection is dropped.
#[derive(Clone, Debug)]
struct Streams {
    /// The flow of the request whose stream hyper is about to run: it calls the service and runs the stream in one
    /// breath.
    begun: Arc<Mutex<Option<Arc<Flow>>>>,
    /// How long a stream's client may take nothing.
    limit: Duration,
}

impl Streams {
    fn put(&self, flow: &Arc<Flow>) {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(flow));
    }

    fn take(&self) -> Option<Arc<Flow>> {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        match self.take() {
            Some(flow) => drop(tokio::spawn(taken(stream, flow, self.limit))),
            None => drop(tokio::spawn(stream)),
        }
    }
}

/// Runs `stream` until it ends or its client has taken nothing of it for `limit`: one stream whose window stays shut
/// must not hold its upstream connection for ever, and is no reason to cut the others. Dropped, it is reset.
async fn taken(stream: impl Future<Output = ()>, flow: Arc<Flow>, limit: Duration) {
    let mut stream = pin!(stream);
    let mut timer: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|cx| {
        if stream.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        while let Some(since) = flow.waits_since() {
            let due = since + limit;
            let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
            if timer.deadline() != due {
                timer.as_mut().reset(due);
            }
            ready!(timer.as_mut().poll(cx));
            if flow.waits_since() == Some(since) {
                tracing::debug!("a stream's client takes nothing");
                return Poll::Ready(());
            }
        }
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests;
