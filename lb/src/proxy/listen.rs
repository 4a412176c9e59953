//! Where connections come in: each worker has a socket of its own on every address.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::connection::{self, Limits};
use super::headers::Peer;
use super::service::Rules;
use super::worker::{Drain, Worker};
use crate::config;

/// An address that is bound, with a socket for each worker.
#[derive(Debug)]
pub struct Bound {
    /// The listener's name.
    pub name: String,
    /// The address, its port settled.
    pub address: SocketAddr,
    /// One socket a worker.
    pub sockets: Vec<std::net::TcpListener>,
    slots: Arc<Semaphore>,
    limits: Limits,
}

/// Waiting connections that the kernel keeps for one socket.
const BACKLOG: i32 = 4096;

/// Binds a listener for `workers` sockets.
///
/// The address is first bound without sharing it: another process that listens there, be it another lb, is an error
/// here and not a silent division of its traffic.
pub fn bind(listener: &config::Listener, workers: usize) -> io::Result<Bound> {
    let probe = socket(listener.address, false)?;
    let address = probe
        .local_addr()?
        .as_socket()
        .ok_or(io::ErrorKind::AddrNotAvailable)?;
    drop(probe);
    let sockets = (0..workers).map(|_| {
        let socket = socket(address, true)?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    });
    Ok(Bound {
        name: listener.name.as_str().to_owned(),
        address,
        sockets: sockets.collect::<io::Result<_>>()?,
        slots: Arc::new(Semaphore::new(listener.max_connections as usize)),
        limits: Limits {
            rules: Rules {
                max_body_bytes: listener.max_body_bytes,
                body_timeout: listener.idle_timeout,
            },
            header_timeout: listener.header_timeout,
            first_byte_timeout: listener.first_byte_timeout,
            idle_timeout: listener.idle_timeout,
            write_timeout: listener.write_timeout,
        },
    })
}

fn socket(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Accepts on the worker's socket until accepting is over.
pub async fn serve(worker: Arc<Worker>, bound: Arc<Bound>, socket: std::net::TcpListener) -> io::Result<()> {
    let listener = TcpListener::from_std(socket)?;
    let mut drain = worker.shared.drain.subscribe();
    loop {
        let slot = tokio::select! {
            biased;
            _ = drain.wait_for(|drain| *drain >= Drain::Closing) => return Ok(()),
            slot = slot(&worker, &bound) => slot,
        };
        let accepted = tokio::select! {
            biased;
            _ = drain.wait_for(|drain| *drain >= Drain::Closing) => return Ok(()),
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    // Only latency is at stake.
                    tracing::debug!(%error, "TCP_NODELAY");
                }
                let ip = address.ip().to_canonical();
                let trusted = worker
                    .shared
                    .server
                    .trusted_proxies
                    .iter()
                    .any(|range| range.contains(ip));
                let open = Open::new(&worker);
                let serving =
                    connection::run(Arc::clone(&worker), bound.limits, Peer { ip, trusted }, stream);
                tokio::spawn(async move {
                    serving.await;
                    drop((slot, open));
                });
            }
            Err(error) => pause(&error).await,
        }
    }
}

async fn slot(worker: &Worker, bound: &Bound) -> Option<tokio::sync::OwnedSemaphorePermit> {
    let slots = Arc::clone(&bound.slots);
    if let Ok(slot) = Arc::clone(&slots).try_acquire_owned() {
        return Some(slot);
    }
    worker.shared.metrics.accept_waits.inc();
    slots.acquire_owned().await.ok()
}

/// A connection that died in the queue is no reason to wait; being out of descriptors is, or accepting would spin.
async fn pause(error: &io::Error) {
    let transient = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    );
    if !transient {
        tracing::warn!(%error, "accept failed");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Counts an open connection.
struct Open(Arc<Worker>);

impl Open {
    fn new(worker: &Arc<Worker>) -> Self {
        worker.shared.metrics.connections.inc();
        Self(Arc::clone(worker))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.shared.metrics.connections.dec();
    }
}
