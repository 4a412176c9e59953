//! A connection that was switched to another protocol: bytes both ways until either side ends it.
//!
//! It is a request in flight for as long as it lasts: its slot, its place on the endpoint and its entry in the books ride
//! in it. Nothing is looked into and nothing repeated. HTTP's part is over with the head of the 101; the client's socket
//! comes back from it with whatever the client sent ahead.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional_with_sizes};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::account::Account;
use super::worker::{Drain, Worker};
use crate::net::Upgraded;
use crate::policy::outcome::Ended;
use crate::upstream::Tail;

/// An upstream connection that waits for its client's, with every guard of its attempt and request.
#[derive(Debug)]
pub(super) struct Tunnel {
    upstream: Upgraded,
    tail: Option<Tail>,
    account: Account,
    worker: Arc<Worker>,
}

/// Bytes that may wait in one direction.
const BUFFER: usize = 8 * 1024;

/// How a tunnel came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Both sides ended it in order.
    Closed,
    /// The client broke it off.
    ClientGone,
    /// lb is ending.
    Drained,
    /// Nothing came from either side for too long.
    Idle,
    /// The provider broke it off.
    UpstreamBroke,
    /// The provider closed it while the client was still sending to it.
    UpstreamLeft,
}

/// The protocol that a request of HTTP/1.1 asks to switch to, if it does and lb passes that on. HTTP/2 in the clear is
/// lb's own business, and so is TLS.
pub(super) fn asked(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut values = headers.get_all(UPGRADE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return None;
    };
    let asks = |value: &HeaderValue| {
        let mut options = value.as_bytes().split(|byte| *byte == b',');
        options.any(|option| option.trim_ascii().eq_ignore_ascii_case(b"upgrade"))
    };
    if !headers.get_all(CONNECTION).iter().any(asks) {
        return None;
    }
    let name = value.as_bytes();
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~/".contains(byte);
    let begins = |with: &[u8]| {
        name.get(..with.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(with))
    };
    let own = begins(b"h2c") || begins(b"http/") || begins(b"tls/");
    (!own && !name.is_empty() && name.iter().all(token)).then(|| value.clone())
}

/// What a 101 says of the switch to its client; it was taken off on the way here, as it is for one hop.
pub(super) fn switched(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, protocol);
}

impl Tunnel {
    pub(super) fn new(
        upstream: Upgraded,
        mut tail: Option<Tail>,
        account: Account,
        worker: &Arc<Worker>,
    ) -> Self {
        if let Some(tail) = &mut tail {
            tail.forget();
        }
        Self {
            upstream,
            tail,
            account,
            worker: Arc::clone(worker),
        }
    }

    /// Carries bytes between the client and the provider until one of them, silence or lb ends it. `ahead` is what the
    /// client had sent already.
    pub(super) async fn run<S: AsyncRead + AsyncWrite + Unpin>(
        self,
        client: S,
        ahead: Bytes,
        mut drain: watch::Receiver<Drain>,
    ) {
        let Self {
            upstream,
            tail,
            mut account,
            worker,
        } = self;
        let idle = tail.as_ref().and_then(|tail| tail.link().timers.idle);
        let drained = async {
            drop(drain.wait_for(|drain| *drain == Drain::Now).await);
        };
        let (end, [up, down]) = carry(client, ahead, upstream, idle, drained).await;
        tracing::debug!(?end, "tunnel ended");
        account.carried(up);
        account.sent(down);
        match (end, tail) {
            (End::Closed, Some(tail)) => tail.clean_end(),
            (End::UpstreamBroke, Some(mut tail)) => tail.failed(worker.now(), &Ended::Broken, Worker::draw()),
            _ => {}
        }
        match end {
            // Dropped, it counts as cancelled.
            End::ClientGone => {}
            End::Closed | End::Idle => account.complete(),
            End::Drained | End::UpstreamBroke | End::UpstreamLeft => account.truncated(),
        }
    }
}

/// With how it ended comes how many bytes the provider took, and how many the client.
async fn carry<C, U>(
    client: C,
    ahead: Bytes,
    upstream: U,
    idle: Option<Duration>,
    drained: impl Future<Output = ()>,
) -> (End, [u64; 2])
where
    C: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    let moved = Moved::new();
    let mut client = Side::new(client, ahead, &moved);
    let mut upstream = Side::new(upstream, Bytes::new(), &moved);
    let end = tokio::select! {
        biased;
        carried = copy_bidirectional_with_sizes(&mut client, &mut upstream, BUFFER, BUFFER) => {
            carried.map_or(End::ClientGone, |_| End::Closed)
        }
        () = moved.rested(idle) => End::Idle,
        () = drained => End::Drained,
    };
    let end = match (end, upstream.fault) {
        (End::ClientGone, Some(Fault::Broken)) => End::UpstreamBroke,
        (End::ClientGone, Some(Fault::Closed)) => End::UpstreamLeft,
        _ => end,
    };
    (end, [upstream.taken, client.taken])
}

/// When bytes last came from either side.
#[derive(Debug)]
struct Moved {
    origin: Instant,
    /// Nanoseconds after `origin`.
    last: AtomicU64,
}

impl Moved {
    fn new() -> Self {
        Self {
            origin: Instant::now(),
            last: AtomicU64::new(0),
        }
    }

    fn note(&self) {
        let nanos = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last.store(nanos, Ordering::Relaxed);
    }

    /// Resolves once nothing has come for `limit`.
    async fn rested(&self, limit: Option<Duration>) {
        let Some(limit) = limit else {
            return std::future::pending().await;
        };
        loop {
            let due = self.origin + Duration::from_nanos(self.last.load(Ordering::Relaxed)) + limit;
            if Instant::now() >= due {
                return;
            }
            sleep_until(due).await;
        }
    }
}

/// One side of a tunnel.
struct Side<'m, S> {
    io: S,
    /// What it had sent before.
    ahead: Bytes,
    moved: &'m Moved,
    /// Bytes that it was sent.
    taken: u64,
    /// When it was last sent some, and when it last sent some itself.
    told: Option<Instant>,
    spoke: Option<Instant>,
    /// How it failed, if it did.
    fault: Option<Fault>,
}

/// How a side failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It broke off.
    Broken,
    /// It was closed over bytes that it had not read, or before others came: that is a reset, however it was meant
    /// (RFC 1122, 4.2.2.13). Whoever sends without end can bring it about.
    Closed,
}

/// So long after bytes were sent a reset may be due to them. They may have waited unread behind others, and what a
/// side says last, it says before it closes.
const UNREAD: Duration = Duration::from_secs(10);

impl<'m, S> Side<'m, S> {
    fn new(io: S, ahead: Bytes, moved: &'m Moved) -> Self {
        Self {
            io,
            ahead,
            moved,
            taken: 0,
            told: None,
            spoke: None,
            fault: None,
        }
    }

    /// Notes how it failed, if it did; `owes` says whether it may be for what it was sent.
    fn seen<T>(&mut self, result: io::Result<T>, owes: bool) -> io::Result<T> {
        if let Err(error) = &result {
            let closed = matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
            );
            self.fault.get_or_insert(if closed && owes {
                Fault::Closed
            } else {
                Fault::Broken
            });
        }
        result
    }

    /// Whether it may not have read all that it was sent.
    fn owes(&self) -> bool {
        self.told
            .is_some_and(|told| self.spoke.is_none_or(|spoke| spoke < told) || told.elapsed() < UNREAD)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Side<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let length = self.ahead.len().min(buf.remaining());
            buf.put_slice(&self.ahead[..length]);
            self.ahead.advance(length);
            self.moved.note();
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = ready!(Pin::new(&mut self.io).poll_read(cx, buf));
        if buf.filled().len() > before {
            self.moved.note();
            self.spoke = Some(Instant::now());
        }
        let owes = read.is_err() && self.owes();
        Poll::Ready(self.seen(read, owes))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Side<'_, S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.io).poll_write(cx, buf));
        if let Ok(length) = &written {
            self.taken += *length as u64;
            self.told = Some(Instant::now());
        }
        Poll::Ready(self.seen(written, true))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.io).poll_flush(cx));
        Poll::Ready(self.seen(flushed, true))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = ready!(Pin::new(&mut self.io).poll_shutdown(cx));
        // A side that has gone cannot be told to.
        let owes = shut.is_err() && self.owes();
        drop(self.seen(shut, owes));
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
