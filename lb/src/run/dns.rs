//! Keeps the addresses of the names in the configuration.
//!
//! ```text
//!   lb-control: look up ──▶ Known ──changed──▶ main thread: sites ──▶ routes, table ──▶ one swap, as at a reload
//! ```

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::config::{Config, Dns, Host};
use crate::upstream::{Site, sites};

/// How long a start or a reload waits for the addresses of new names, so that no request meets an endpoint without any.
const PATIENCE: Duration = Duration::from_secs(1);

/// Addresses taken of one name. Each is an endpoint with connections and a health of its own.
const MOST: usize = 64;

/// What a look-up comes to.
type Answer = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Looks up a host and a port.
pub(super) type Resolver = Arc<dyn Fn(&str, u16) -> Answer + Send + Sync>;

/// The system's resolver. It tells us no answer's time to live.
pub(super) fn system() -> Resolver {
    Arc::new(|host, port| {
        let place = (host.to_owned(), port);
        Box::pin(async move { Ok(tokio::net::lookup_host(place).await?.collect()) })
    })
}

/// The names of a configuration, each looked up for as long as this or another holds it.
#[derive(Clone)]
pub(super) struct Names {
    all: Vec<Arc<Known>>,
    resolver: Resolver,
    /// Told of every change of addresses.
    changed: Arc<Notify>,
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.all).finish()
    }
}

/// A name and its last good addresses, rising.
#[derive(Debug)]
struct Known {
    host: String,
    port: u16,
    timing: Dns,
    addresses: Mutex<Vec<SocketAddr>>,
}

impl Names {
    /// No names; `changed` will be told of every change of those that follow.
    pub(super) fn new(resolver: Resolver, changed: Arc<Notify>) -> Self {
        Self {
            all: Vec::new(),
            resolver,
            changed,
        }
    }

    /// Those of `config`. What is known of a name that stays is kept.
    pub(super) fn next(&self, config: &Config) -> Self {
        let mut all: Vec<Arc<Known>> = Vec::new();
        for provider in &config.providers {
            for endpoint in &provider.endpoints {
                let place = provider.reached_at(&endpoint.url);
                let (Host::Name(host), port, timing) = (place.host(), place.port(), provider.dns) else {
                    continue;
                };
                if find(&all, timing, host, port).is_some() {
                    continue;
                }
                let known = find(&self.all, timing, host, port).cloned();
                all.push(known.unwrap_or_else(|| {
                    // Other timing is no reason to forget.
                    let mut same = self.all.iter().filter(|old| old.is(host, port));
                    let addresses = same.next().map(|old| old.addresses().clone());
                    Arc::new(Known {
                        host: host.clone(),
                        port,
                        timing,
                        addresses: Mutex::new(addresses.unwrap_or_default()),
                    })
                }));
            }
        }
        Self { all, ..self.clone() }
    }

    /// Where the endpoints of `config`, whose names these are, are now.
    pub(super) fn sites(&self, config: &Config) -> Vec<Site> {
        sites(config, |provider, host, port| {
            let known = find(&self.all, provider.dns, host, port);
            known.map_or_else(Vec::new, |known| known.addresses().clone())
        })
    }

    /// Looks up once what has no address yet, for a second at most.
    pub(super) async fn prime(&self) {
        let mut looking = JoinSet::new();
        for known in self.all.iter().filter(|known| known.addresses().is_empty()) {
            let (known, looked_up) = (Arc::clone(known), (self.resolver)(&known.host, known.port));
            looking.spawn(async move {
                // What goes wrong is said by those who look on.
                if let Ok(addresses) = looked_up.await {
                    known.learn(addresses);
                }
            });
        }
        let all = async { while looking.join_next().await.is_some() {} };
        drop(tokio::time::timeout(PATIENCE, all).await);
    }

    /// As [`Self::prime`], where there may or may not be a runtime.
    pub(super) fn prime_before_start(&self) -> io::Result<()> {
        if self.all.is_empty() {
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let names = self.clone();
        let looking = std::thread::Builder::new().spawn(move || {
            runtime.block_on(names.prime());
            // The system's resolver cannot be interrupted, and is not waited for.
            runtime.shutdown_background();
        })?;
        looking
            .join()
            .map_err(|_panic| io::Error::other("looking names up panicked"))
    }

    /// Looks up those that `before` has not, now and again, each on its own clock.
    pub(super) fn keep(&self, handle: &Handle, before: &Self) {
        for known in &self.all {
            if !before.all.iter().any(|old| Arc::ptr_eq(old, known)) {
                let (resolver, changed) = (Arc::clone(&self.resolver), Arc::clone(&self.changed));
                handle.spawn(keep_one(Arc::downgrade(known), resolver, changed));
            }
        }
    }
}

fn find<'a>(all: &'a [Arc<Known>], timing: Dns, host: &str, port: u16) -> Option<&'a Arc<Known>> {
    all.iter()
        .find(|known| known.is(host, port) && known.timing == timing)
}

impl Known {
    fn is(&self, host: &str, port: u16) -> bool {
        self.host == host && self.port == port
    }

    fn addresses(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what was found, unless it is nothing; whether that is another set.
    fn learn(&self, found: Vec<SocketAddr>) -> bool {
        if found.is_empty() {
            return false;
        }
        let count = found.len();
        let mut addresses = self.addresses();
        let next = chosen(&addresses, usable(found));
        if *addresses == next {
            return false;
        }
        tracing::info!(host = %self.host, found = count, addresses = ?next, "name has other addresses");
        *addresses = next;
        true
    }

    /// How long until it is looked up again; jittered, so that names that were looked up together are not for ever.
    fn rest(&self) -> Duration {
        self.timing.refresh.mul_f64(0.9 + 0.2 * fastrand::f64())
    }
}

/// Those that this machine has a route to, or all if it has none to any. A name of both families would be half out
/// where there is no IPv6.
fn usable(found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let has_route = |address: &SocketAddr| {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        // Nothing is sent by that.
        UdpSocket::bind(any).is_ok_and(|socket| socket.connect(address).is_ok())
    };
    let usable: Vec<_> = found.iter().copied().filter(has_route).collect();
    if usable.is_empty() { found } else { usable }
}

/// At most [`MOST`] of what was found, in rising order; those that are there already first.
fn chosen(before: &[SocketAddr], mut found: Vec<SocketAddr>) -> Vec<SocketAddr> {
    found.sort_unstable();
    found.dedup();
    if found.len() > MOST {
        // Stable: the others in their order.
        found.sort_by_key(|address| !before.contains(address));
        found.truncate(MOST);
        found.sort_unstable();
    }
    found
}

/// Ends once nobody holds the name.
async fn keep_one(name: Weak<Known>, resolver: Resolver, changed: Arc<Notify>) {
    let Some(known) = name.upgrade() else { return };
    let mut wait = if known.addresses().is_empty() {
        Duration::ZERO
    } else {
        known.rest()
    };
    drop(known);
    // A name that is gone for long is told of once.
    let mut failing = false;
    loop {
        tokio::time::sleep(wait).await;
        let Some(known) = name.upgrade() else { return };
        let looked_up = resolver(&known.host, known.port);
        drop(known);
        let found = looked_up.await;
        let Some(known) = name.upgrade() else { return };
        wait = match found {
            Ok(found) if !found.is_empty() => {
                if std::mem::take(&mut failing) {
                    tracing::info!(host = %known.host, "name resolves again");
                }
                if known.learn(found) {
                    changed.notify_one();
                }
                known.rest()
            }
            failed => {
                if !std::mem::replace(&mut failing, true) {
                    let why =
                        failed.map_or_else(|error| error.to_string(), |_none| "it has no address".to_owned());
                    tracing::warn!(host = %known.host, why, "name does not resolve: what was known of it stays");
                }
                known.timing.failure_refresh
            }
        };
    }
}

#[cfg(test)]
mod tests;
