//! A client's socket as what is spoken on it sees it; keeps track of what moves.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;

use super::activity::Activity;

/// A connection's bytes, with TLS or without. The session is boxed, so that plain connections are no larger for it.
#[derive(Debug)]
pub(super) enum Downstream {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>),
}

/// The TCP socket. A write that is not taken is noticed here, below TLS, whose own buffer would hide it; bytes that
/// come are noticed above TLS, where a record that drips in is nothing yet.
#[derive(Debug)]
pub(super) struct Socket {
    read: OwnedReadHalf,
    write: Arc<OwnedWriteHalf>,
    activity: Arc<Activity>,
}

/// What is left of the socket for whoever watches over it.
#[derive(Debug)]
pub(super) struct Watched(Arc<OwnedWriteHalf>);

impl Socket {
    pub(super) fn new(stream: TcpStream, activity: &Arc<Activity>) -> (Self, Watched) {
        let (read, write) = stream.into_split();
        let write = Arc::new(write);
        let socket = Self {
            read,
            write: Arc::clone(&write),
            activity: Arc::clone(activity),
        };
        (socket, Watched(write))
    }

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

impl Watched {
    /// Resolves when the client has closed its side: a half-close is a client's going.
    ///
    /// Whoever reads sees it only behind all that was sent before, so a client that had sent a second request behind its
    /// first would be streamed to for nobody. The readiness used here is that of a closed read side alone: it is there
    /// whatever lies unread before it, and costs no read.
    pub(super) async fn gone(&self) {
        if self
            .0
            .ready(Interest::PRIORITY)
            .await
            .is_ok_and(|ready| !ready.is_read_closed())
        {
            // Urgent data, which tokio does not ask the kernel about.
            std::future::pending::<()>().await;
        }
    }
}

impl Downstream {
    fn socket(&self) -> &Socket {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(tls) => tls.get_ref().0,
        }
    }

    pub(super) fn activity(&self) -> &Activity {
        &self.socket().activity
    }

    /// Breaks the connection off, so that its client sees no end in order. Closing could not: what is left of the split
    /// socket ends its side first.
    pub(super) fn reset(&self) -> io::Result<()> {
        let stream: &TcpStream = (*self.socket().write).as_ref();
        Ok(rustix::net::connect_unspec(stream)?)
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.read).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_try(cx, |stream| stream.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
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

impl AsyncRead for Downstream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = match &mut *self {
            Self::Plain(io) => Pin::new(io).poll_read(cx, buf),
            Self::Tls(io) => Pin::new(io).poll_read(cx, buf),
        };
        let read = ready!(read);
        if buf.filled().len() > before {
            self.activity().read();
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Downstream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write(cx, buf),
            Self::Tls(io) => Pin::new(io).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write_vectored(cx, bufs),
            Self::Tls(io) => Pin::new(io).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_flush(cx),
            Self::Tls(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Self::Tls(io) => Pin::new(io).poll_shutdown(cx),
        }
    }
}
