//! A connection that speaks another protocol now.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::pool::Connection;
use crate::policy::connection::Remedy;

/// The raw bytes of a connection after a 101, both ways. It counts as one of its destination's connections while it
/// lives, and is closed when dropped. The kernel plane can end it: a read fails then.
#[derive(Debug)]
pub struct Upgraded {
    connection: Connection,
    /// What came behind the response's head.
    first: Bytes,
}

impl Upgraded {
    pub(super) fn new(connection: Connection, first: Bytes) -> Self {
        Self { connection, first }
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.first.is_empty() {
            let length = self.first.len().min(buf.remaining());
            buf.put_slice(&self.first[..length]);
            self.first.advance(length);
            return Poll::Ready(Ok(()));
        }
        match Pin::new(&mut self.connection.stream).poll_read(cx, buf) {
            Poll::Pending => self
                .connection
                .poll_remedy(Remedy::End, cx)
                .map(|()| Err(io::ErrorKind::ConnectionAborted.into())),
            read @ Poll::Ready(_) => read,
        }
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection.stream).poll_shutdown(cx)
    }
}
