//! One place to send requests to.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::place::{Addresses, Peer, Place};
use super::pool::Pool;
use super::tls::Tls;
use super::tunnel::Proxy;

/// Bounds on a destination's connections, in the whole process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a connection may wait for its next request. Below the upstream's own keep-alive time, or requests
    /// meet connections that are being closed.
    pub idle_timeout: Duration,
    /// Connections older than this are not used again; `None`: no limit.
    pub max_age: Option<Duration>,
    /// Idle connections kept; 0: every request has a connection of its own.
    pub max_idle: usize,
    /// Connections, busy and idle together; 0: no limit. At the limit a request waits for as long as connecting may
    /// take.
    pub max_open: usize,
    /// Requests at a time on one connection of HTTP/2; more open another. The upstream may allow fewer.
    pub max_streams: usize,
}

/// Which HTTP a destination speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Protocol {
    /// HTTP/2 where the handshake of TLS agrees on it, else HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, without TLS by prior knowledge.
    Http2,
}

/// An endpoint as the network sees it: addresses, TLS, and the connections to it. Shared by all workers.
#[derive(Debug)]
pub struct Destination {
    way: Arc<Way>,
    place: Mutex<Place>,
    /// What the last handshake agreed on: one of [`UNKNOWN`], [`HTTP1`], [`HTTP2`].
    agreed: AtomicU8,
    slot: OnceLock<u16>,
    pub(super) pool: Pool,
}

/// What is the same at every address.
#[derive(Clone, Debug)]
struct Way {
    tls: Option<Arc<Tls>>,
    protocol: Protocol,
    proxy: Option<Proxy>,
}

impl Destination {
    /// With one shard of connections for each of `workers` (at least one).
    ///
    /// Connections begin at the addresses in turn, and go through the others where one gives none; an empty list makes every request fail with
    /// [`Error::Dns`](super::Error::Dns) until [`Self::set_addresses`] is called.
    pub fn new(addresses: &[SocketAddr], tls: Option<Arc<Tls>>, limits: Limits, workers: usize) -> Self {
        Self::at(Place::Tcp(Addresses::new(addresses)), tls, limits, workers)
    }

    /// Behind a socket file. Its addresses are never set.
    pub fn unix(path: PathBuf, limits: Limits, workers: usize) -> Self {
        Self::at(Place::Unix(path), None, limits, workers)
    }

    fn at(place: Place, tls: Option<Arc<Tls>>, limits: Limits, workers: usize) -> Self {
        let way = Way {
            tls,
            protocol: Protocol::default(),
            proxy: None,
        };
        Self::by(Arc::new(way), place, Pool::new(limits, workers))
    }

    fn by(way: Arc<Way>, place: Place, pool: Pool) -> Self {
        Self {
            way,
            place: Mutex::new(place),
            agreed: AtomicU8::new(UNKNOWN),
            slot: OnceLock::new(),
            pool,
        }
    }

    /// Another place that is reached in the same way, with connections of its own; for a socket file the same place.
    #[must_use]
    pub fn beside(&self, addresses: &[SocketAddr]) -> Self {
        let place = match &*self.lock() {
            Place::Tcp(_) => Place::Tcp(Addresses::new(addresses)),
            Place::Unix(path) => Place::Unix(path.clone()),
        };
        Self::by(Arc::clone(&self.way), place, self.pool.like())
    }

    /// Whether one was made [`beside`](Self::beside) the other, or both beside a third.
    pub fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.way, &other.way)
    }

    /// Speaks this protocol; unless told, [`Protocol::Auto`]. With TLS its [`Tls`] must offer the same.
    #[must_use]
    pub fn speaking(mut self, protocol: Protocol) -> Self {
        Arc::make_mut(&mut self.way).protocol = protocol;
        self
    }

    /// Goes through a proxy: the addresses are the proxy's.
    #[must_use]
    pub fn through(mut self, proxy: Proxy) -> Self {
        Arc::make_mut(&mut self.way).proxy = Some(proxy);
        self
    }

    /// Gives the destination the number by which the kernel plane knows it, for the
    /// [`SocketHook`](super::SocketHook). It stays at the first one.
    pub fn follow_as(&self, slot: u16) {
        self.slot.get_or_init(|| slot);
    }

    /// That number, if it has one.
    pub fn slot(&self) -> Option<u16> {
        self.slot.get().copied()
    }

    /// Replaces the addresses. Connections to an address that is gone take no new request: idle ones are closed here,
    /// busy ones (then all of them, to whatever address: it happens seldom) after their response.
    pub fn set_addresses(&self, addresses: &[SocketAddr]) {
        let mut place = self.lock();
        let Place::Tcp(current) = &mut *place else { return };
        if current.all() == addresses {
            return;
        }
        let all_stay = current.replace(addresses);
        drop(place);
        if !all_stay {
            self.pool
                .retain_peers(|peer| matches!(peer, Peer::Tcp(address) if addresses.contains(address)));
        }
    }

    /// The addresses that there are now; none for a socket file.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        match &*self.lock() {
            Place::Tcp(addresses) => addresses.all().to_vec(),
            Place::Unix(_) => Vec::new(),
        }
    }

    /// Closes all idle connections, of every worker. Connections that are busy now are closed after their response, and
    /// those that carry several after the last of them.
    pub fn purge(&self) {
        self.pool.retain_peers(|_| false);
    }

    /// Closes idle connections whose time is over or whose upstream has gone, of every worker. To be called about
    /// once a second: nothing else notices a close while a connection waits.
    pub fn sweep(&self) {
        self.pool.sweep();
    }

    /// Connections in the process, busy and idle.
    pub fn open(&self) -> usize {
        self.pool.open()
    }

    /// Connections in the process without a request.
    pub fn idle(&self) -> usize {
        self.pool.idle()
    }

    /// The addresses that a connection is to try, in this order, or the socket file.
    pub(super) fn line(&self) -> Result<Vec<SocketAddr>, PathBuf> {
        match &mut *self.lock() {
            Place::Tcp(addresses) => Ok(addresses.line(Instant::now())),
            Place::Unix(path) => Err(path.clone()),
        }
    }

    /// What came of trying an address.
    pub(super) fn tried(&self, address: SocketAddr, connected: bool) {
        if let Place::Tcp(addresses) = &mut *self.lock() {
            addresses.tried(address, connected, Instant::now());
        }
    }

    pub(super) fn tls(&self) -> Option<&Tls> {
        self.way.tls.as_deref()
    }

    pub(super) fn proxy(&self) -> Option<&Proxy> {
        self.way.proxy.as_ref()
    }

    /// What the next connection will speak, as far as that is known before it is made.
    pub(super) fn expected(&self) -> Expected {
        match (self.way.protocol, &self.way.tls) {
            (Protocol::Http1, _) | (Protocol::Auto, None) => Expected::Http1,
            (Protocol::Http2, _) => Expected::Http2,
            (Protocol::Auto, Some(_)) => match self.agreed.load(Ordering::Relaxed) {
                HTTP1 => Expected::Http1,
                HTTP2 => Expected::Http2,
                _ => Expected::Unknown,
            },
        }
    }

    /// What a connection turned out to speak.
    pub(super) fn learn(&self, http2: bool) {
        self.agreed
            .store(if http2 { HTTP2 } else { HTTP1 }, Ordering::Relaxed);
    }

    /// Whether it speaks HTTP/2 without asking.
    pub(super) fn is_http2_only(&self) -> bool {
        self.way.protocol == Protocol::Http2
    }

    fn lock(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a connection will speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Http1,
    Http2,
    Unknown,
}

const UNKNOWN: u8 = 0;
const HTTP1: u8 = 1;
const HTTP2: u8 = 2;
