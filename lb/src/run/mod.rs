//! Wires the parts into a running daemon, and takes it down again.
//!
//! ```text
//! main thread       signals, reloads, drain
//! lb-worker-N       accepts, serves, sends: one current-thread runtime each
//! lb-control        admin listener, DNS, certificates, sweeping of idle connections
//! lb-kernel         what the kernel sees of connections, where it is asked to watch
//! ```
//!
//! Everything that can fail is done before the first thread starts, so a daemon that cannot serve has bound nothing
//! for longer than it took to find out.

mod certificates;
mod control;
mod current;
mod descriptors;
mod dns;
mod error;
mod handover;
mod inherited;
mod kernel;
mod keys;
mod listeners;
mod log;
mod memory;
mod probes;
mod reload;
mod routes;
mod service_manager;
mod serving;
mod signals;
mod source;
mod workers;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::{Notify, mpsc, watch};

use crate::admin::{Check, View};
use crate::clock::Clock;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::net::Client;
use crate::proxy::{Budget, Drain, Exporter, Shared, Via, Writer};

use self::control::Control;
use self::current::{Current, live};
use self::dns::{Names, Resolver};
use self::kernel::Kernel;
use self::listeners::Listeners;
use self::probes::Probes;
use self::reload::Request;
use self::workers::Workers;

pub use error::StartError;
pub use handover::{Predecessor, Told, request_reload, take_over};
pub use inherited::Inherited;
pub use log::{Form, form};
pub use signals::until_drained;
pub use source::Source;

/// A daemon that serves.
#[derive(Debug)]
pub struct Daemon {
    shared: Arc<Shared>,
    listeners: Arc<Listeners>,
    workers: Workers,
    count: usize,
    control: Control,
    kernel: Arc<Kernel>,
    probes: Probes,
    current: Mutex<Current>,
    /// Told when a name has other addresses.
    renamed: Arc<Notify>,
    admin: SocketAddr,
    threads: Vec<JoinHandle<()>>,
    /// Ends last: the others have lines for it.
    recorders: Recorders,
    /// Who wants a reload.
    requests: mpsc::Receiver<Request>,
}

impl Daemon {
    /// Starts what `config` says, on the sockets that were handed over and on new ones. Nothing runs if this fails.
    pub fn start(config: &Config, inherited: Inherited) -> Result<Self, StartError> {
        Self::resolving(config, inherited, dns::system())
    }

    /// As [`Self::start`], with what looks names up.
    fn resolving(config: &Config, mut inherited: Inherited, resolver: Resolver) -> Result<Self, StartError> {
        descriptors::raise();
        let count = workers::count(config.server.workers);
        let admin = match inherited.take_admin(config.admin.address) {
            Some(socket) => socket,
            None => control::bind(config.admin.address)?,
        };
        let listeners = Arc::new(Listeners::new(inherited, count));
        let plan = listeners.plan(config)?;
        let renamed = Arc::new(Notify::new());
        let nameless = Names::new(resolver, Arc::clone(&renamed));
        let current = Current::first(config, nameless.next(config), shards(count))?;
        let (shared, recorders) = shared(&current)?;
        let shared = Arc::new(shared);
        let token = keys::admin_token(&config.admin)?;
        let (kernel, observing) = Kernel::start(
            &current,
            &shared.live.load().routes,
            &shared.metrics,
            shared.clock,
        )?;
        let kernel = Arc::new(kernel);
        let (asking, requests) = mpsc::channel(REQUESTS);
        let view = view(&shared, &kernel, token, asking);
        let admin_address = admin
            .local_addr()
            .map_err(|source| StartError::bind("admin", config.admin.address, source))?;
        let (control, thread) = Control::start(Arc::clone(&shared), Arc::clone(&listeners), view)?;
        let mut threads = vec![thread];
        let rest = control.serve(admin).map_err(StartError::Thread).and_then(|()| {
            let (workers, started) = Workers::start(&shared, count, &kernel)?;
            threads.extend(started);
            if let Some(observing) = observing {
                threads.push(observing.start(&kernel, &shared)?);
            }
            Ok(workers)
        });
        let workers = match rest {
            Ok(workers) => workers,
            Err(error) => {
                // What has been started ends with the drain, as it would have.
                shared.drain.send_replace(Drain::Now);
                return Err(error);
            }
        };
        current.names.keep(control.handle(), &nameless);
        listeners.commit(plan, &workers);
        let client = Client::new(count, None);
        let probes = Probes::new(control.handle().clone(), Arc::clone(&shared), client);
        probes.follow();
        shared.metrics.reloaded(true);
        announce(config, admin_address, count, kernel.mode());
        Ok(Self {
            shared,
            listeners,
            workers,
            count,
            control,
            kernel,
            probes,
            current: Mutex::new(current),
            renamed,
            admin: admin_address,
            threads,
            recorders,
            requests,
        })
    }

    /// Where clients connect, in the configuration's order.
    pub fn data(&self) -> Vec<SocketAddr> {
        self.listeners.live().iter().map(|bound| bound.address).collect()
    }

    /// Where operators connected at the start.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Requests from now on are not wanted; what is open may go on for the time configured.
    pub async fn drain(&self) {
        let server = self.shared.live.load().server.clone();
        self.advance(Drain::Announced);
        tokio::time::sleep(server.drain_delay).await;
        self.finish(server.drain_timeout).await;
    }

    /// Accepts nothing any more, and waits until all that is open has ended, for `limit` at most.
    async fn finish(&self, limit: Duration) {
        self.advance(Drain::Closing);
        let end = tokio::time::Instant::now() + limit;
        let all_closed = async {
            let mut said = None;
            loop {
                let open = self.shared.metrics.connections.get();
                if said.replace(open) != Some(open) {
                    let left = end.saturating_duration_since(tokio::time::Instant::now());
                    service_manager::draining(open, left);
                }
                if open == 0 {
                    return;
                }
                tokio::time::sleep(POLL).await;
            }
        };
        if tokio::time::timeout(limit, all_closed).await.is_err() {
            tracing::warn!(
                open = self.shared.metrics.connections.get(),
                "drain timed out: cutting what is open"
            );
        }
    }

    /// Ends every thread and cuts whatever is still open.
    pub fn stop(self) {
        self.advance(Drain::Now);
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a thread panicked");
            }
        }
        let (writer, exporter) = self.recorders;
        if let Some(writer) = writer {
            writer.finish(LAST_LINES);
        }
        if let Some(exporter) = exporter {
            exporter.finish(LAST_LINES);
        }
    }

    fn advance(&self, to: Drain) {
        self.listeners.advance(to);
        self.shared.drain.send_replace(to);
    }
}

/// Shards of connections: one for each worker, and one for the probes of the control thread.
const fn shards(workers: usize) -> usize {
    workers + 1
}

/// Reloads that may wait at a time; more are refused.
const REQUESTS: usize = 8;

/// How often a drain looks whether all is closed.
const POLL: Duration = Duration::from_millis(20);

/// How long the last access lines may take. Where nobody reads them lb ends all the same.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The threads that write access lines and send spans.
type Recorders = (Option<Writer>, Option<Exporter>);

fn shared(current: &Current) -> Result<(Shared, Recorders), StartError> {
    let config = &current.config;
    let clock = Clock::start();
    let metrics = Arc::new(Metrics::new(&edges(config)));
    let live = live(current, current.routes(None), (&metrics, None, clock.now()));
    let (access, writer) = log::access(&config.log, &metrics)?.unzip();
    let (spans, exporter) = log::spans(&config.tracing, &metrics)?.unzip();
    let shared = Shared {
        live: ArcSwap::from_pointee(live),
        metrics,
        clock,
        buffers: Arc::new(Budget::new(memory::for_buffers(&config.server))),
        via: Via::new(fastrand::u64(..)),
        drain: watch::Sender::new(Drain::No),
        started: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs(),
        access,
        spans,
    };
    Ok((shared, (writer, exporter)))
}

/// The edges of the first-token histogram.
fn edges(config: &Config) -> Vec<Duration> {
    let edges = config.metrics.first_token_buckets.iter();
    edges.map(|edge| Duration::from_secs_f64(*edge)).collect()
}

fn view(
    shared: &Arc<Shared>,
    kernel: &Arc<Kernel>,
    token: Option<crate::admin::Token>,
    asking: mpsc::Sender<Request>,
) -> View {
    let [counted, described] = [0; 2].map(|_| Arc::clone(kernel));
    let [metrics, state, checks] = [0; 3].map(|_| Arc::clone(shared));
    View {
        token: ArcSwapOption::from_pointee(token),
        reload: Box::new(move || Box::pin(reload::ask(asking.clone()))),
        metrics: Box::new(move || {
            let live = metrics.live.load();
            live.table.publish(metrics.clock.now());
            live.table.publish_connections(|id| {
                let destination = &live.routes[id].destination;
                (destination.open(), destination.idle())
            });
            drop(live);
            counted.publish();
            metrics.metrics.exposition()
        }),
        state: Box::new(move || {
            let mut seen = state.live.load().table.state(state.clock.now());
            described.describe(&mut seen);
            seen
        }),
        checks: Box::new(move || {
            let serving = *checks.drain.borrow() == Drain::No;
            // Both hold as soon as anybody can ask; they are told apart for the operator who reads them.
            let held = |name| Check { name, ok: true };
            vec![
                held("config"),
                held("listeners"),
                Check {
                    name: "not-draining",
                    ok: serving,
                },
            ]
        }),
    }
}

fn announce(config: &Config, admin: SocketAddr, workers: usize, kernel: &str) {
    tracing::info!(
        admin = %admin, workers, providers = config.providers.len(), models = config.models.len(),
        presets = config.presets.len(), kernel, "started"
    );
}

#[cfg(test)]
mod tests;
