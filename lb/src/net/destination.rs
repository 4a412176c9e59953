//! One place to send requests to.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::pool::Pool;
use super::tls::Tls;

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
    /// Connections, busy and idle together; 0: no limit.
    pub max_open: usize,
}

/// An endpoint as the network sees it: addresses, TLS, and the connections to it. Shared by all workers.
#[derive(Debug)]
pub struct Destination {
    addresses: Mutex<Arc<[SocketAddr]>>,
    tls: Option<Arc<Tls>>,
    slot: OnceLock<u16>,
    pub(super) pool: Pool,
}

impl Destination {
    /// With one shard of idle connections for each of `workers` (at least one).
    ///
    /// Connecting tries the addresses in the order given; an empty list makes every request fail with
    /// [`Error::Dns`](super::Error::Dns) until [`Self::set_addresses`] is called.
    pub fn new(addresses: &[SocketAddr], tls: Option<Arc<Tls>>, limits: Limits, workers: usize) -> Self {
        Self {
            addresses: Mutex::new(addresses.into()),
            tls,
            slot: OnceLock::new(),
            pool: Pool::new(limits, workers),
        }
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
        let mut current = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let all_stay = current.iter().all(|old| addresses.contains(old));
        *current = addresses.into();
        drop(current);
        if !all_stay {
            self.pool.retain_peers(addresses);
        }
    }

    /// Closes all idle connections, of every worker. Connections that are busy now are closed after their response.
    pub fn purge(&self) {
        self.pool.retain_peers(&[]);
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

    /// Idle connections in the process.
    pub fn idle(&self) -> usize {
        self.pool.idle()
    }

    /// Its addresses, in the order in which they are tried.
    pub fn addresses(&self) -> Arc<[SocketAddr]> {
        Arc::clone(&self.addresses.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn tls(&self) -> Option<&Tls> {
        self.tls.as_deref()
    }
}
