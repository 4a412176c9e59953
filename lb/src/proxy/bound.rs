//! A listener that is bound. Its sockets and connections outlive the configuration; how it treats a new connection is
//! exchanged whole.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::sync::watch;

use super::connection::{Limits, Terms};
use super::service::Rules;
use super::slots::Slots;
use super::sources::Sources;
use super::tls::Identity;
use super::worker::Drain;
use crate::config::{self, Place, ProxyProtocol};

/// A listener that is bound.
#[derive(Debug)]
pub struct Bound {
    /// Where the configuration has it: what a reload knows it again by.
    pub place: Place,
    /// The address, its port settled.
    pub address: SocketAddr,
    /// What the workers' own descriptors are made from; empty once it is closed.
    sockets: Mutex<Vec<TcpListener>>,
    pub(super) front: ArcSwap<Front>,
    pub(super) slots: Arc<Slots>,
    drain: watch::Sender<Drain>,
}

/// How a new connection is treated.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) name: config::Name,
    pub(super) sources: Arc<Sources>,
    pub(super) terms: Arc<Terms>,
    pub(super) proxy_protocol: ProxyProtocol,
}

impl Bound {
    /// The listener that accepts on `sockets`, of which there is at least one. `identity` is its certificates, if it
    /// speaks TLS.
    pub fn new(
        listener: &config::Listener,
        identity: Option<Arc<Identity>>,
        sockets: Vec<TcpListener>,
    ) -> io::Result<Self> {
        let first = sockets
            .first()
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let sources = Sources::new(
            listener.allow_sources.clone(),
            listener.max_connections_per_source,
        );
        Ok(Self {
            place: listener.place.clone(),
            address: first.local_addr()?,
            front: ArcSwap::from_pointee(Front::new(listener, identity, sources)),
            slots: Arc::new(Slots::new(listener.max_connections as usize)),
            drain: watch::Sender::new(Drain::No),
            sockets: Mutex::new(sockets),
        })
    }

    /// Treats connections that are accepted from now on as `listener` says; those that are open count still.
    pub fn set(&self, listener: &config::Listener, identity: Option<Arc<Identity>>) {
        let before = self.front.load();
        let sources = before.sources.with(
            listener.allow_sources.clone(),
            listener.max_connections_per_source,
        );
        self.front
            .store(Arc::new(Front::new(listener, identity, sources)));
        self.slots.set_limit(listener.max_connections as usize);
    }

    /// Its name.
    pub fn name(&self) -> config::Name {
        self.front.load().name.clone()
    }

    /// Its certificates, if it speaks TLS.
    pub fn identity(&self) -> Option<Arc<Identity>> {
        self.front.load().terms.tls.clone()
    }

    /// A descriptor of its own for each of its sockets.
    pub fn sockets(&self) -> io::Result<Vec<TcpListener>> {
        self.own().iter().map(TcpListener::try_clone).collect()
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.slots.taken()
    }

    /// Goes on with ending; it only moves forward. Nothing is accepted from [`Drain::Closing`] on.
    pub fn advance(&self, to: Drain) {
        if to >= Drain::Closing {
            self.own().clear();
        }
        self.drain.send_if_modified(|drain| {
            let on = *drain < to;
            *drain = to.max(*drain);
            on
        });
    }

    /// How far it is in ending.
    pub(super) fn drain(&self) -> watch::Receiver<Drain> {
        self.drain.subscribe()
    }

    fn own(&self) -> MutexGuard<'_, Vec<TcpListener>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Front {
    fn new(listener: &config::Listener, identity: Option<Arc<Identity>>, sources: Sources) -> Self {
        Self {
            name: listener.name.clone(),
            sources: Arc::new(sources),
            terms: Arc::new(Terms {
                limits: limits(listener),
                http2: listener.http2,
                tls: identity,
            }),
            proxy_protocol: listener.proxy_protocol,
        }
    }
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

/// Waiting connections that the kernel keeps for one socket.
const BACKLOG: i32 = 4096;

/// Whether an address may be shared with sockets that have it already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// It is ours: those that have it are our own.
    Ours,
    /// Another process that listens there, be it another lb, is an error and not a silent division of its traffic.
    Refused,
}

/// Binds `address` with `sockets` sockets, among which the kernel divides the connections.
pub fn bind(address: SocketAddr, sockets: usize, sharing: Sharing) -> io::Result<Vec<TcpListener>> {
    let address = match sharing {
        Sharing::Ours => address,
        Sharing::Refused => socket(address, false)?
            .local_addr()?
            .as_socket()
            .ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?,
    };
    let one = |_| {
        let socket = socket(address, true)?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    (0..sockets.max(1)).map(one).collect()
}

/// Whether `socket` listens for TCP connections, as one that was handed over has to.
pub fn is_listening(socket: &TcpListener) -> bool {
    let socket = SockRef::from(socket);
    matches!(
        (socket.is_listener(), socket.r#type()),
        (Ok(true), Ok(Type::STREAM))
    )
}

fn socket(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}
