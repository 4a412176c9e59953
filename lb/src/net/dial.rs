//! New connections.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rustix::io::Errno;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::time::{Instant, timeout};

use super::fate::Followed;
use super::place::Peer;
use super::pool::{Connection, Open};
use super::stream::Stream;
use super::{Destination, Error};
use crate::policy::connection::Remedy;

/// Called with each new socket between `socket()` and `connect()`, in the worker's thread: the kernel plane takes its
/// cookie there, before a packet is sent. What it returns stays with the connection; `None`: nobody follows it. Must
/// not block.
pub type SocketHook = Arc<dyn Fn(&Destination, BorrowedFd<'_>) -> Option<Followed> + Send + Sync>;

/// A peer that dies while we only wait for it sends nothing, and keep-alive probes are all that shows it: to the
/// kernel plane after two of them, to TCP itself after [`USER_TIMEOUT`]. (spec: kernel)
const KEEPALIVE: Duration = Duration::from_secs(1);

/// How long sent bytes (or probes, or a closed window) may go without progress before TCP gives the connection up.
/// Without it that is a quarter of an hour. Longer than any pause that a busy server makes in reading a request.
const USER_TIMEOUT: Duration = Duration::from_secs(20);

/// Connects, trying the addresses in their order; waiting for a free place, TCP, a proxy and TLS together have `limit`.
/// `http1_only` leaves HTTP/2 out of what is offered.
pub(super) async fn dial(
    destination: &Destination,
    hook: Option<&SocketHook>,
    open: Open,
    http1_only: bool,
    limit: Duration,
) -> Result<Connection, Error> {
    let begun = Instant::now();
    let addresses = match destination.line() {
        Ok(addresses) => addresses,
        Err(path) => return unix(&path, open, limit).await,
    };
    let raw = connect_first(destination, &addresses, hook, limit).await?;
    let left = limit.saturating_sub(begun.elapsed());
    let securing = secure(destination, raw.stream, http1_only);
    let securing = async {
        timeout(left, securing)
            .await
            .unwrap_or(Err(Error::ConnectTimeout))
    };
    let stream = unless_in_vain(raw.followed.as_ref(), securing).await??;
    Ok(Connection::new(
        stream,
        Peer::Tcp(raw.address),
        raw.followed,
        open,
    ))
}

/// A socket file needs none of TCP's options, and the kernel plane sees nothing of it.
async fn unix(path: &Path, open: Open, limit: Duration) -> Result<Connection, Error> {
    let connected = timeout(limit, UnixStream::connect(path)).await;
    let stream = connected
        .map_err(|_elapsed| Error::ConnectTimeout)?
        .map_err(failed)?;
    Ok(Connection::new(Stream::Unix(stream), Peer::Unix, None, open))
}

/// Makes a bare TCP connection and closes it: whether anybody is there at all. `limit` and the addresses are as they
/// are for a request.
pub async fn reach(
    destination: &Destination,
    hook: Option<&SocketHook>,
    limit: Duration,
) -> Result<(), Error> {
    match destination.line() {
        Ok(addresses) => connect_first(destination, &addresses, hook, limit)
            .await
            .map(drop),
        Err(path) => timeout(limit, UnixStream::connect(path))
            .await
            .map_err(|_elapsed| Error::ConnectTimeout)?
            .map(drop)
            .map_err(failed),
    }
}

/// A TCP connection that may still have TLS before it.
struct Raw {
    stream: TcpStream,
    address: SocketAddr,
    followed: Option<Followed>,
}

/// Connects to the first address that answers. One that does not uses up only its share of what is left, so that the
/// last one still gets its try.
async fn connect_first(
    destination: &Destination,
    addresses: &[SocketAddr],
    hook: Option<&SocketHook>,
    limit: Duration,
) -> Result<Raw, Error> {
    let begun = Instant::now();
    let mut failure = Error::Dns;
    for (tried, &address) in addresses.iter().enumerate() {
        let left = limit.saturating_sub(begun.elapsed());
        let untried = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        failure = match timeout(left / untried, connect(destination, hook, address)).await {
            Ok(Ok(raw)) => {
                destination.tried(address, true);
                return Ok(raw);
            }
            Ok(Err(error)) => error,
            Err(_) => Error::ConnectTimeout,
        };
        // A fault of this machine says nothing of the address.
        if !matches!(failure, Error::Local(_)) {
            destination.tried(address, false);
        }
    }
    Err(failure)
}

async fn connect(
    destination: &Destination,
    hook: Option<&SocketHook>,
    address: SocketAddr,
) -> Result<Raw, Error> {
    let socket = socket(address).map_err(Error::Local)?;
    let followed = hook.and_then(|hook| hook(destination, socket.as_fd()));
    let connected = unless_in_vain(followed.as_ref(), socket.connect(address)).await?;
    Ok(Raw {
        stream: connected.map_err(failed)?,
        address,
        followed,
    })
}

/// What `setting_up` comes to, unless the kernel plane sees before that it will come to nothing.
async fn unless_in_vain<T>(
    followed: Option<&Followed>,
    setting_up: impl Future<Output = T>,
) -> Result<T, Error> {
    let mut setting_up = pin!(setting_up);
    poll_fn(|cx| match (setting_up.as_mut().poll(cx), followed) {
        (Poll::Ready(done), _) => Poll::Ready(Ok(done)),
        (Poll::Pending, Some(followed)) => followed
            .poll(Remedy::FailOver, cx)
            .map(|()| Err(Error::Abandoned)),
        (Poll::Pending, None) => Poll::Pending,
    })
    .await
}

/// Whose fault it is that a connection was not made.
pub(super) fn failed(error: io::Error) -> Error {
    // In this order: all local ports towards the address are taken; descriptors, of this process or of all; memory.
    let ours = [
        Errno::ADDRNOTAVAIL,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
    ];
    match Errno::from_io_error(&error) {
        Some(errno) if ours.contains(&errno) => Error::Local(error),
        _ => Error::Connect(error),
    }
}

fn socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    let options = SockRef::from(&socket);
    options.set_tcp_nodelay(true)?;
    options.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE))?;
    options.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
    Ok(socket)
}

/// Goes through the proxy, where there is one, and agrees on TLS, where that is wanted.
async fn secure(destination: &Destination, mut stream: TcpStream, http1_only: bool) -> Result<Stream, Error> {
    if let Some(proxy) = destination.proxy() {
        proxy.open(&mut stream).await?;
    }
    let Some(tls) = destination.tls() else {
        return Ok(Stream::Plain(stream));
    };
    let stream = tls.handshake(stream, http1_only).await.map_err(Error::Tls)?;
    Ok(Stream::Tls(Box::new(stream)))
}
