//! Where connections come in: each worker has a socket of its own on every address.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connection::{self, Limits, Terms};
use super::headers::Peer;
use super::service::Rules;
use super::sources::Sources;
use super::tls::{Identity, IdentityError};
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
    /// Its certificates, if it speaks TLS.
    pub identity: Option<Arc<Identity>>,
    slots: Arc<Semaphore>,
    sources: Arc<Sources>,
    terms: Arc<Terms>,
}

/// Why a listener cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address cannot be had.
    #[error(transparent)]
    Address(#[from] io::Error),
    /// Its certificates cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// Waiting connections that the kernel keeps for one socket.
const BACKLOG: i32 = 4096;

/// Binds a listener for `workers` sockets.
///
/// The address is first bound without sharing it: another process that listens there, be it another lb, is an error
/// here and not a silent division of its traffic.
pub fn bind(listener: &config::Listener, workers: usize) -> Result<Bound, BindError> {
    let tls = listener.tls.as_ref();
    let identity = tls.map(|tls| Identity::load(tls, listener.http2)).transpose()?;
    let identity = identity.map(Arc::new);
    let probe = socket(listener.address, false)?;
    let address = probe
        .local_addr()?
        .as_socket()
        .ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
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
        sources: Arc::new(Sources::new(
            listener.allow_sources.clone(),
            listener.max_connections_per_source,
        )),
        terms: Arc::new(Terms {
            limits: limits(listener),
            http2: listener.http2,
            tls: identity.clone(),
        }),
        identity,
    })
}

fn limits(listener: &config::Listener) -> Limits {
    Limits {
        rules: Rules {
            max_body_bytes: listener.max_body_bytes,
            body_timeout: listener.idle_timeout,
            body_grace: listener.header_timeout,
        },
        header_timeout: listener.header_timeout,
        first_byte_timeout: listener.first_byte_timeout,
        idle_timeout: listener.idle_timeout,
        write_timeout: listener.write_timeout,
    }
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
    let mut failing = false;
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
                failing = false;
                begin(&worker, &bound, slot, stream, address.ip().to_canonical());
            }
            // One that died in the queue.
            Err(error) if is_transient(&error) => {}
            // Most likely out of descriptors: what is open is served on, and accepting again at once would spin.
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(listener = %bound.name, %error, "accepting fails");
                }
                tokio::time::sleep(BACKOFF).await;
            }
        }
    }
}

/// Gives an accepted connection a task of its own, or closes it where its source may not have it.
fn begin(
    worker: &Arc<Worker>,
    bound: &Bound,
    slot: Option<OwnedSemaphorePermit>,
    stream: TcpStream,
    ip: IpAddr,
) {
    let counted = match bound.sources.admit(ip) {
        Ok(counted) => counted,
        Err(why) => {
            worker.shared.metrics.turned_away.inc();
            return tracing::debug!(%ip, ?why, "connection turned away");
        }
    };
    if let Err(error) = stream.set_nodelay(true) {
        // Only latency is at stake.
        tracing::debug!(%error, "TCP_NODELAY");
    }
    let proxies = &worker.shared.server.trusted_proxies;
    let trusted = proxies.iter().any(|range| range.contains(ip));
    let peer = Peer::new(ip, trusted, bound.identity.is_some());
    let open = Open::new(worker);
    let (worker, terms) = (Arc::clone(worker), Arc::clone(&bound.terms));
    tokio::spawn(async move {
        connection::run(worker, &terms, peer, stream).await;
        drop((slot, counted, open));
    });
}

async fn slot(worker: &Worker, bound: &Bound) -> Option<OwnedSemaphorePermit> {
    let slots = Arc::clone(&bound.slots);
    if let Ok(slot) = Arc::clone(&slots).try_acquire_owned() {
        return Some(slot);
    }
    worker.shared.metrics.accept_waits.inc();
    slots.acquire_owned().await.ok()
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset
    )
}

/// How long accepting rests after it failed.
const BACKOFF: Duration = Duration::from_millis(50);

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
