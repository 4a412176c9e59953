//! New connections.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};

use super::pool::Connection;
use super::stream::Stream;
use super::{Destination, Error};

/// Called with each new socket between `socket()` and `connect()`, in the worker's thread: the kernel plane takes its
/// cookie there, before a packet is sent. Must not block.
pub type SocketHook = Arc<dyn Fn(&Destination, BorrowedFd<'_>) + Send + Sync>;

/// A peer that dies while we only wait for it sends nothing, and keep-alive probes are all that shows it: to the
/// kernel plane after two of them, to TCP itself after [`USER_TIMEOUT`]. (spec: kernel)
const KEEPALIVE: Duration = Duration::from_secs(1);

/// How long sent bytes (or probes, or a closed window) may go without progress before TCP gives the connection up.
/// Without it that is a quarter of an hour. Longer than any pause that a busy server makes in reading a request.
const USER_TIMEOUT: Duration = Duration::from_secs(20);

/// Connects, trying the addresses in their order; TCP and TLS together have `limit`.
///
/// An address that does not answer uses up only its share of what is left, so that the last one still gets its try.
pub(super) async fn dial(
    destination: &Destination,
    hook: Option<&SocketHook>,
    limit: Duration,
) -> Result<Connection, Error> {
    let open = destination.pool.reserve().ok_or(Error::Full)?;
    let begun = Instant::now();
    let addresses = destination.addresses();
    let mut failure = Error::Dns;
    for (tried, &address) in addresses.iter().enumerate() {
        let left = limit.saturating_sub(begun.elapsed());
        let untried = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        failure = match timeout(left / untried, connect(destination, hook, address)).await {
            Ok(Ok(stream)) => {
                let left = limit.saturating_sub(begun.elapsed());
                let stream = secure(destination, stream, left).await?;
                return Ok(Connection::new(stream, address, open));
            }
            Ok(Err(error)) => error,
            Err(_) => Error::ConnectTimeout,
        };
    }
    Err(failure)
}

async fn connect(
    destination: &Destination,
    hook: Option<&SocketHook>,
    address: SocketAddr,
) -> Result<TcpStream, Error> {
    let socket = socket(address).map_err(Error::Local)?;
    if let Some(hook) = hook {
        hook(destination, socket.as_fd());
    }
    socket.connect(address).await.map_err(failed)
}

/// Whose fault it is that a connection was not made.
pub(super) fn failed(error: io::Error) -> Error {
    match error.kind() {
        // All local ports towards this address are taken.
        io::ErrorKind::AddrNotAvailable => Error::Local(error),
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

async fn secure(destination: &Destination, stream: TcpStream, limit: Duration) -> Result<Stream, Error> {
    let Some(tls) = destination.tls() else {
        return Ok(Stream::Plain(stream));
    };
    match timeout(limit, tls.handshake(stream)).await {
        Ok(Ok(stream)) => Ok(Stream::Tls(Box::new(stream))),
        Ok(Err(error)) => Err(Error::Tls(error)),
        Err(_) => Err(Error::ConnectTimeout),
    }
}
