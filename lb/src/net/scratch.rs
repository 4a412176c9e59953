//! Buffers that all connections of a thread share, so that a connection that waits owns none.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Bytes of one read at most.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// A write buffer that grew larger than this is not kept: heads and copied bodies are smaller, but for rare ones.
const KEPT_WRITE_BYTES: usize = 16 * 1024;

thread_local! {
    static READ: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
    static WRITE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// One read into the thread's buffer. `take` must take all it wants of the bytes: the next read, of whatever
/// connection, overwrites them. An empty slice is the connection's end.
pub(crate) fn poll_read<S: AsyncRead + Unpin, R>(
    io: &mut S,
    cx: &mut Context<'_>,
    take: impl FnOnce(&mut [u8]) -> R,
) -> Poll<io::Result<R>> {
    // Borrowed once at a time: neither a socket's read nor `take`, which only decodes, comes back here.
    READ.with_borrow_mut(|bytes| {
        let mut buf = ReadBuf::new(bytes);
        ready!(Pin::new(io).poll_read(cx, &mut buf))?;
        Poll::Ready(Ok(take(buf.filled_mut())))
    })
}

/// An empty buffer to write a request into. Whoever is done gives it back with [`give_write`].
pub(crate) fn take_write() -> Vec<u8> {
    WRITE.take()
}

/// Keeps a buffer for the next request of this thread.
pub(crate) fn give_write(mut buffer: Vec<u8>) {
    if buffer.capacity() <= KEPT_WRITE_BYTES {
        buffer.clear();
        WRITE.set(buffer);
    }
}
