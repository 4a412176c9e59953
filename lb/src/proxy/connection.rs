//! One client connection: hyper serves it, and it is ended when its client goes, stalls or stays silent.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Instant;

use super::activity::Activity;
use super::headers::Peer;
use super::service::{Rules, serve};
use super::worker::{Drain, Worker};

/// The deadlines of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) rules: Rules,
    /// First byte of a request to the end of its head.
    pub(super) header_timeout: Duration,
    /// Accept to the first byte.
    pub(super) first_byte_timeout: Duration,
    /// Between two requests.
    pub(super) idle_timeout: Duration,
    /// Without progress in writing.
    pub(super) write_timeout: Duration,
}

/// Serves `stream` until it ends.
pub(super) async fn run(worker: Arc<Worker>, limits: Limits, peer: Peer, stream: TcpStream) {
    let (read, write) = stream.into_split();
    let write = Arc::new(write);
    let activity = Arc::new(Activity::new(Instant::now()));
    let io = Downstream {
        read,
        write: Arc::clone(&write),
        activity: Arc::clone(&activity),
    };
    let mut drain = worker.shared.drain.subscribe();
    let service = service_fn({
        let activity = Arc::clone(&activity);
        move |request| {
            let busy = activity.begin_request();
            let worker = Arc::clone(&worker);
            // Boxed, so that its room goes with the response head and not with the connection.
            Box::pin(async move {
                let mut response = serve(worker, limits.rules, peer, request).await;
                response.body_mut().keep(busy);
                Ok::<_, std::convert::Infallible>(response)
            })
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .serve_connection(TokioIo::new(io), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        biased;
        ended = connection.as_mut() => {
            if let Err(error) = ended {
                tracing::debug!(%error, "client connection ended");
            }
            return;
        }
        // Dropping the connection drops the exchange in it, and with that the upstream request.
        () = gone(&write) => return,
        () = activity.expired(limits) => return,
        changed = drain.wait_for(|drain| *drain >= Drain::Closing) => {
            if changed.is_ok_and(|drain| *drain == Drain::Now) {
                return;
            }
        }
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        biased;
        _ = connection.as_mut() => {}
        () = gone(&write) => {}
        () = activity.expired(limits) => {}
        _ = drain.wait_for(|drain| *drain == Drain::Now) => {}
    }
}

/// Resolves when the client has closed its side: a half-close is a client's going.
///
/// hyper looks for it only while its read buffer is empty, so a client that had sent a second request behind its
/// first would be streamed to for nobody. The readiness used here is that of a closed read side alone: it is there
/// whatever lies unread before it, and costs no read.
async fn gone(stream: &OwnedWriteHalf) {
    if stream
        .ready(Interest::PRIORITY)
        .await
        .is_ok_and(|ready| !ready.is_read_closed())
    {
        // Urgent data, which tokio does not ask the kernel about.
        std::future::pending::<()>().await;
    }
}

/// The client's socket as hyper sees it; keeps track of what moves.
#[derive(Debug)]
struct Downstream {
    read: OwnedReadHalf,
    write: Arc<OwnedWriteHalf>,
    activity: Arc<Activity>,
}

impl AsyncRead for Downstream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.read).poll_read(cx, buf));
        if buf.filled().len() > before {
            self.activity.read();
        }
        Poll::Ready(read)
    }
}

impl Downstream {
    /// Writes through the shared half; a write that is not taken starts the stall's clock.
    fn poll_try(
        &self,
        cx: &mut Context<'_>,
        write: impl Fn(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let stream: &TcpStream = (*self.write).as_ref();
        loop {
            match write(stream) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if stream.poll_write_ready(cx)?.is_pending() {
                        self.activity.stalled(Instant::now());
                        return Poll::Pending;
                    }
                }
                written => {
                    self.activity.wrote();
                    return Poll::Ready(written);
                }
            }
        }
    }
}

impl AsyncWrite for Downstream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_try(cx, |stream| stream.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_try(cx, |stream| stream.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream: &TcpStream = (*self.write).as_ref();
        Poll::Ready(socket2::SockRef::from(stream).shutdown(std::net::Shutdown::Write))
    }
}
