//! Probes endpoints, each on its own clock, for as long as they are configured to be probed.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::config::Probe;
use crate::net::Client;
use crate::policy::draw::Draw;
use crate::probe::{Target, probe};
use crate::proxy::{Drain, Live, Shared};

/// The probing of all endpoints.
#[derive(Debug)]
pub(super) struct Probes {
    handle: Handle,
    shared: Arc<Shared>,
    client: Client,
    /// Who is probed.
    probed: Arc<Mutex<BTreeSet<Key>>>,
    /// Changes with every configuration, so that none has to wait for the next probe of the one before.
    changed: watch::Sender<()>,
}

/// An endpoint over reloads: its provider's name, its URL and its address.
type Key = (Box<str>, String, Option<SocketAddr>);

impl Probes {
    /// Probes on the threads of `handle`; nobody yet. `client` is of a worker number of its own.
    pub(super) fn new(handle: Handle, shared: Arc<Shared>, client: Client) -> Self {
        Self {
            handle,
            shared,
            client,
            probed: Arc::default(),
            changed: watch::Sender::new(()),
        }
    }

    /// Has the configuration that is live now followed.
    pub(super) fn follow(&self) {
        let live = self.shared.live.load();
        let providers = live.table.providers().iter();
        let with_probe =
            providers.filter(|provider| provider.config.probe.is_some() && provider.config.enabled);
        let keys = with_probe.flat_map(|provider| {
            let endpoints = provider.endpoints.iter();
            endpoints.map(|endpoint| (provider.name.clone(), endpoint.url.to_string(), endpoint.address))
        });
        for key in keys {
            if lock(&self.probed).insert(key.clone()) {
                let task = Task {
                    shared: Arc::clone(&self.shared),
                    client: self.client.clone(),
                    probed: Arc::clone(&self.probed),
                    key,
                };
                self.handle.spawn(task.run(self.changed.subscribe()));
            }
        }
        self.changed.send_replace(());
    }
}

/// The probing of one endpoint. Dropped, it is nobody's.
struct Task {
    shared: Arc<Shared>,
    client: Client,
    probed: Arc<Mutex<BTreeSet<Key>>>,
    key: Key,
}

impl Task {
    async fn run(self, mut changed: watch::Receiver<()>) {
        // Spread from the beginning, or all endpoints would be probed at once for ever.
        let mut part = fastrand::f64();
        loop {
            let Some((probe, _)) = self.find(&self.shared.live.load_full()) else {
                return;
            };
            let wait = probe.interval.mul_f64(part);
            tokio::select! {
                biased;
                changed = changed.changed() => match changed {
                    // What is probed, and how often, may be another thing by now.
                    Ok(()) => continue,
                    Err(_) => return,
                },
                () = tokio::time::sleep(wait) => {}
            }
            let begun = tokio::time::Instant::now();
            self.probe_once().await;
            let taken = begun.elapsed().as_secs_f64() / probe.interval.as_secs_f64();
            part = (0.95 + 0.1 * fastrand::f64() - taken).max(0.0);
        }
    }

    async fn probe_once(&self) {
        let live = self.shared.live.load_full();
        let draining = *self.shared.drain.borrow() == Drain::Now;
        let Some((how, id)) = self.find(&live).filter(|_| !draining) else {
            return;
        };
        let provider = live
            .table
            .providers()
            .iter()
            .find(|provider| provider.name == self.key.0);
        let (Some(provider), Some(route)) = (provider, live.routes.get(id)) else {
            return;
        };
        let target = Target {
            destination: &route.destination,
            host: &route.host,
            fields: &provider.fields,
        };
        let Some(probed) = probe(&self.client, &how, target).await else {
            return;
        };
        // By now it may have another place; its state is the same.
        let live = self.shared.live.load_full();
        if let Some((_, id)) = self.find(&live) {
            let jitter = Draw::new(fastrand::f64());
            live.table.probed(id, self.shared.clock.now(), probed, jitter);
        }
    }

    /// How the endpoint is probed, and its present id.
    fn find(&self, live: &Live) -> Option<(Probe, usize)> {
        let mut providers = live.table.providers().iter();
        let provider = providers.find(|provider| provider.name == self.key.0 && provider.config.enabled)?;
        let mut endpoints = provider.endpoints.iter();
        let endpoint = endpoints
            .find(|endpoint| endpoint.address == self.key.2 && endpoint.url.to_string() == self.key.1)?;
        Some((provider.config.probe.clone()?, endpoint.id))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        lock(&self.probed).remove(&self.key);
    }
}

fn lock(probed: &Mutex<BTreeSet<Key>>) -> std::sync::MutexGuard<'_, BTreeSet<Key>> {
    probed.lock().unwrap_or_else(PoisonError::into_inner)
}
