//! Ties the kernel plane to connections, endpoint health and operators.
//!
//! ```text
//!   workers ──socket──▶ hook ──▶ Watch (the kernel follows it), Fates (net follows it)
//!   lb-kernel: Observer ──phase?──▶ Fates
//!                       ──react───▶ table: eject, withdraw      destination: purge
//!                                   fates: poison, close, fail over, end
//!                                   readmit: wait, connect, half-open
//!   admin:    Counters ──▶ series, state
//! ```

mod react;
mod readmit;
mod settings;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use lb_ebpf::Counter;
use tokio::runtime::Runtime;

use self::react::{KINDS, React};
use self::readmit::inquire;
use self::settings::settings;
use super::StartError;
use super::current::Current;
use crate::clock::Clock;
use crate::config;
use crate::kernel::signal::Endpoint;
use crate::kernel::{self, Counters, Mode, Observer, Plane, Started};
use crate::metrics::{Metrics, TrafficMetrics};
use crate::net::{Fates, SocketHook};
use crate::proxy::{Drain, Live, Route, Shared};
use crate::upstream::{Site, State};

/// The plane as the rest of the daemon sees it; without one it does nothing.
#[derive(Debug)]
pub(super) struct Kernel {
    plane: Option<Plane>,
    counters: Option<Counters>,
    /// How it is, in a word or with the reason why it is not.
    mode: String,
    missing: Vec<String>,
    /// By endpoint id of the table that is in force or about to be; endpoints without a slot are not watched.
    watched: ArcSwap<Vec<Option<Arc<Watched>>>>,
    /// Every provider that there has been, by its number.
    providers: Mutex<Vec<config::Name>>,
    fates: Arc<Fates>,
}

/// An endpoint with a slot.
#[derive(Debug)]
struct Watched {
    slot: u16,
    /// Whether what is seen has consequences (`health.kernel_signals`); it is counted anyway.
    acts: bool,
    provider: config::Name,
    endpoint: config::Name,
    metrics: Arc<TrafficMetrics>,
}

/// What is left to be started once all else is.
#[derive(Debug)]
pub(super) struct Thread {
    runtime: Runtime,
    observer: Observer,
}

impl Kernel {
    /// Loads and attaches the programs, as far as `kernel.mode` wants and the machine lets us.
    pub(super) fn start(
        current: &Current,
        routes: &[Route],
        metrics: &Metrics,
        clock: Clock,
    ) -> Result<(Self, Option<Thread>), StartError> {
        let settings = settings(&current.config.kernel);
        let started = kernel::start(&settings, kernel::embedded(), &destinations(routes));
        let (plane, gaps) = match started.map_err(StartError::Kernel)? {
            Started::On(plane, gaps) => (plane, gaps),
            Started::Off(why) => return Ok((Self::off(why.as_ref(), metrics), None)),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(StartError::Thread)?;
        let observer = {
            let _within = runtime.enter();
            plane.observer(clock)
        };
        let observer = match observer {
            Ok(observer) => observer,
            Err(missing) if settings.mode == Mode::Required => return Err(StartError::Kernel(missing)),
            Err(missing) => return Ok((Self::off(Some(&missing), metrics), None)),
        };
        for gap in &gaps {
            tracing::warn!(missing = %gap, "the kernel sees only a part of the connections");
        }
        let mode = plane.rungs().name();
        metrics.kernel_mode(mode);
        let mut providers = Vec::new();
        let kernel = Self {
            watched: ArcSwap::from_pointee(watch(&plane, &mut providers, (current, routes), (metrics, &[]))),
            providers: Mutex::new(providers),
            counters: plane.counters().ok(),
            plane: Some(plane),
            mode: mode.to_owned(),
            missing: gaps.iter().map(ToString::to_string).collect(),
            fates: Arc::default(),
        };
        Ok((kernel, Some(Thread { runtime, observer })))
    }

    fn off(why: Option<&kernel::Missing>, metrics: &Metrics) -> Self {
        metrics.kernel_mode("off");
        Self {
            plane: None,
            counters: None,
            mode: why.map_or_else(|| "off".to_owned(), |why| format!("off: {why}")),
            missing: why.iter().map(ToString::to_string).collect(),
            watched: ArcSwap::default(),
            providers: Mutex::default(),
            fates: Arc::default(),
        }
    }

    /// `tc`, `cgroup`, both, or `off` with the reason.
    pub(super) fn mode(&self) -> &str {
        &self.mode
    }

    /// Watches the endpoints of another configuration from now on: those that stay keep their slots.
    pub(super) fn adopt(&self, current: &Current, routes: &[Route], metrics: &Metrics) {
        let Some(plane) = &self.plane else { return };
        let mut providers = self.providers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.watched.load_full();
        let next = watch(plane, &mut providers, (current, routes), (metrics, &known));
        drop(providers);
        let before = self.watched.swap(Arc::new(next));
        let now = self.watched.load();
        for gone in before.iter().flatten() {
            if !now.iter().flatten().any(|watched| watched.slot == gone.slot) {
                // Addresses come and go more often than series are read.
                self.count(gone);
                plane.release(gone.slot);
            }
        }
        for gap in plane.cover(&destinations(routes)) {
            tracing::warn!(missing = %gap, "the kernel sees only a part of the connections");
        }
    }

    /// What a worker's new sockets are shown to.
    pub(super) fn hook(&self) -> Option<SocketHook> {
        let watch = match self.plane.as_ref()?.watch() {
            Ok(watch) => watch,
            Err(error) => {
                tracing::warn!(%error, "a worker's connections are not watched in the kernel");
                return None;
            }
        };
        let fates = Arc::clone(&self.fates);
        Some(Arc::new(move |destination, socket| {
            let cookie = watch.follow(socket, destination.slot()?).ok()?;
            Some(fates.follow(cookie))
        }))
    }

    /// Brings the series up to date.
    pub(super) fn publish(&self) {
        for watched in self.watched.load().iter().flatten() {
            self.count(watched);
        }
    }

    fn count(&self, watched: &Watched) {
        if let Some(counted) = self.read(watched) {
            watched.metrics.publish(counted);
        }
    }

    /// Adds what it knows to `state`, whose endpoints are in the order of their ids.
    pub(super) fn describe(&self, state: &mut State) {
        let word = self.mode.split(':').next().unwrap_or_default();
        word.clone_into(&mut state.kernel.mode);
        state.kernel.missing.clone_from(&self.missing);
        let endpoints = state
            .providers
            .iter_mut()
            .flat_map(|provider| &mut provider.endpoints);
        for (endpoint, watched) in endpoints.zip(self.watched.load().iter()) {
            let counted = watched.as_ref().and_then(|watched| self.read(watched));
            endpoint.kernel = counted.map(BTreeMap::from_iter);
        }
    }

    fn read(&self, watched: &Watched) -> Option<impl Iterator<Item = (&'static str, u64)> + use<>> {
        let stats = self.counters.as_ref()?.read(watched.slot).ok()?;
        Some(Counter::NAMES.into_iter().zip(stats.counters))
    }

    fn in_slot(&self, slot: u16) -> Option<Arc<Watched>> {
        let watched = self.watched.load();
        let mut all = watched.iter().flatten();
        all.find(|watched| watched.slot == slot).map(Arc::clone)
    }

    /// The endpoints for which what is seen has consequences, by their slots.
    fn acting(&self) -> Vec<u16> {
        let watched = self.watched.load();
        let acting = watched.iter().flatten().filter(|watched| watched.acts);
        acting.map(|watched| watched.slot).collect()
    }
}

/// The id that the endpoint with this slot has in that table. Ids are of one table only; a slot is the endpoint's for as
/// long as it is configured.
fn id_of(live: &Live, slot: u16) -> Option<usize> {
    live.routes
        .iter()
        .position(|route| route.destination.slot() == Some(slot))
}

impl Thread {
    /// Starts observing on a thread of its own; it ends when the drain is over.
    pub(super) fn start(
        self,
        kernel: &Arc<Kernel>,
        shared: &Arc<Shared>,
    ) -> Result<JoinHandle<()>, StartError> {
        let (kernel, shared) = (Arc::clone(kernel), Arc::clone(shared));
        let Self { runtime, observer } = self;
        std::thread::Builder::new()
            .name("lb-kernel".to_owned())
            .spawn(move || runtime.block_on(observe(observer, kernel, shared)))
            .map_err(StartError::Thread)
    }
}

async fn observe(observer: Observer, kernel: Arc<Kernel>, shared: Arc<Shared>) {
    let mut over = shared.drain.subscribe();
    let (known, swept) = (Arc::clone(&kernel.fates), Arc::clone(&kernel.fates));
    let (asked, hook) = (Arc::clone(&kernel), kernel.hook());
    let react = React::new(kernel, Arc::clone(&shared));
    let observing = observer.run(
        move |cookie| known.phase(cookie),
        move |sighting, reaction| react.to(sighting, reaction),
    );
    let error: io::Error = tokio::select! {
        error = observing => error,
        () = sweep(&swept) => return,
        () = inquire(&shared, &asked, hook.as_ref()) => return,
        // Its sender is in `shared`, so it cannot close.
        _ = over.wait_for(|drain| *drain == Drain::Now) => return,
    };
    tracing::error!(%error, "the kernel's reports cannot be read any more: timers are left");
}

/// Forgets ended connections; does not end.
async fn sweep(fates: &Fates) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        ticks.tick().await;
        fates.sweep();
    }
}

/// Where the endpoints are, as far as that is known.
fn destinations(routes: &[Route]) -> Vec<IpAddr> {
    let addresses = routes.iter().flat_map(|route| route.destination.addresses());
    addresses.map(|address: SocketAddr| address.ip()).collect()
}

/// A slot for each endpoint, which its connections are followed under. `numbers` has the providers for as long as the
/// process lives: several of them lost at once tell of our own link. `before` is what is watched up to now.
fn watch(
    plane: &Plane,
    numbers: &mut Vec<config::Name>,
    (current, routes): (&Current, &[Route]),
    (metrics, before): (&Metrics, &[Option<Arc<Watched>>]),
) -> Vec<Option<Arc<Watched>>> {
    let one = |(site, route): (&Site, &Route)| {
        let provider = &current.config.providers[site.provider];
        let number = numbers.iter().position(|name| *name == provider.name);
        let number = number.unwrap_or_else(|| {
            numbers.push(provider.name.clone());
            numbers.len() - 1
        });
        let health = provider.health.as_ref();
        let known = Endpoint {
            provider: u32::try_from(number).unwrap_or(u32::MAX),
            max_ejection: health.map_or(Duration::ZERO, |health| health.settings().max_ejection),
        };
        let slot = if let Some(slot) = route.destination.slot() {
            plane.update(slot, known);
            slot
        } else {
            let slot = plane.claim(known)?;
            route.destination.follow_as(slot);
            slot
        };
        let endpoint = &provider.endpoints[site.endpoint].name;
        let mut watched = before.iter().flatten();
        let same = watched
            .find(|old| old.slot == slot && old.provider == provider.name && old.endpoint == *endpoint);
        let fresh = || Arc::new(metrics.traffic(provider.name.as_str(), endpoint.as_str(), &KINDS));
        Some(Arc::new(Watched {
            slot,
            acts: provider.kernel_signals,
            provider: provider.name.clone(),
            endpoint: endpoint.clone(),
            // It remembers how far the slot has been counted.
            metrics: same.map_or_else(fresh, |old| Arc::clone(&old.metrics)),
        }))
    };
    current.sites.iter().zip(routes).map(one).collect()
}
