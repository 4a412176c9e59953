//! Wires the parts into a running daemon, and takes it down again.
//!
//! ```text
//! main thread       signals, drain
//! lb-worker-N       accepts, serves, sends: one current-thread runtime each
//! lb-control        admin listener, DNS, certificates, sweeping of idle connections
//! lb-kernel         what the kernel sees of connections, where it is asked to watch
//! ```
//!
//! Everything that can fail is done before the first thread starts, so a daemon that cannot serve has bound nothing
//! for longer than it took to find out.

mod certificates;
mod control;
mod descriptors;
mod dns;
mod error;
mod kernel;
mod keys;
mod memory;
mod routes;
mod signals;
mod workers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use tokio::sync::watch;

use crate::admin::{Check, View};
use crate::clock::Clock;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::policy::draw::Draw;
use crate::proxy::{self, BindError, Bound, Budget, Drain, Live, Shared, Via};
use crate::upstream::{Context, Table};

use self::kernel::Kernel;

pub use error::StartError;
pub use signals::until_drained;

/// A daemon that serves.
#[derive(Debug)]
pub struct Daemon {
    shared: Arc<Shared>,
    data: Vec<SocketAddr>,
    admin: SocketAddr,
    threads: Vec<JoinHandle<()>>,
    drain_delay: Duration,
    drain_timeout: Duration,
}

impl Daemon {
    /// Starts what `config` says. Nothing runs if this fails.
    pub fn start(config: &Config) -> Result<Self, StartError> {
        descriptors::raise();
        let workers = workers::count(config.server.workers);
        let bound = bind(config, workers)?;
        let admin = control::bind(config.admin.address)?;
        let shared = Arc::new(shared(config, workers)?);
        let token = keys::admin_token(&config.admin)?;
        let (kernel, observing) =
            Kernel::start(config, &shared.live.load().routes, &shared.metrics, shared.clock)?;
        let kernel = Arc::new(kernel);
        let view = Arc::new(view(&shared, &kernel, token));
        let data = bound.iter().map(|bound| bound.address).collect();
        let admin_address = admin
            .local_addr()
            .map_err(|source| StartError::bind("admin", config.admin.address, source))?;
        announce(config, &bound, admin_address, workers, kernel.mode());
        let identities = certificates::of(&bound);
        let mut threads = vec![control::start(
            Arc::clone(&shared),
            config,
            admin,
            view,
            identities,
            Arc::clone(&kernel),
        )?];
        let rest = workers::start(&shared, bound, workers, &kernel).and_then(|mut started| {
            if let Some(observing) = observing {
                started.push(observing.start(&kernel, &shared)?);
            }
            Ok(started)
        });
        match rest {
            Ok(started) => threads.extend(started),
            Err(error) => {
                // The control thread ends with the drain, as it would have.
                shared.drain.send_replace(Drain::Now);
                return Err(error);
            }
        }
        Ok(Self {
            shared,
            data,
            admin: admin_address,
            threads,
            drain_delay: config.server.drain_delay,
            drain_timeout: config.server.drain_timeout,
        })
    }

    /// Where clients connect, in the configuration's order.
    pub fn data(&self) -> &[SocketAddr] {
        &self.data
    }

    /// Where operators connect.
    pub fn admin(&self) -> SocketAddr {
        self.admin
    }

    /// Requests from now on are not wanted; what is open may go on for the time configured.
    pub async fn drain(&self) {
        self.shared.drain.send_replace(Drain::Announced);
        tokio::time::sleep(self.drain_delay).await;
        self.shared.drain.send_replace(Drain::Closing);
        let all_closed = async {
            while self.shared.metrics.connections.get() > 0 {
                tokio::time::sleep(POLL).await;
            }
        };
        if tokio::time::timeout(self.drain_timeout, all_closed)
            .await
            .is_err()
        {
            tracing::warn!(
                open = self.shared.metrics.connections.get(),
                "drain timed out: cutting what is open"
            );
        }
    }

    /// Ends every thread and cuts whatever is still open.
    pub fn stop(self) {
        self.shared.drain.send_replace(Drain::Now);
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a thread panicked");
            }
        }
    }
}

/// How often a drain looks whether all is closed.
const POLL: Duration = Duration::from_millis(20);

fn bind(config: &Config, workers: usize) -> Result<Vec<Bound>, StartError> {
    let one = |listener: &crate::config::Listener| {
        let name = listener.name.as_str();
        proxy::bind(listener, workers).map_err(|error| match error {
            BindError::Address(source) => StartError::bind(name, listener.address, source),
            BindError::Identity(source) => StartError::Identity {
                name: name.to_owned(),
                source,
            },
        })
    };
    config.listeners.iter().map(one).collect()
}

fn shared(config: &Config, workers: usize) -> Result<Shared, StartError> {
    let clock = Clock::start();
    let edges: Vec<Duration> = config
        .metrics
        .first_token_buckets
        .iter()
        .map(|edge| Duration::from_secs_f64(*edge))
        .collect();
    let metrics = Arc::new(Metrics::new(&edges));
    let keys = keys::of_providers(config)?;
    let table = Table::build(
        config,
        &mut Context {
            metrics: &metrics,
            keys: &keys,
            now: clock.now(),
            draw: &mut || Draw::new(fastrand::f64()),
        },
    );
    let routes = routes::build(config, workers)?;
    Ok(Shared {
        live: ArcSwap::from_pointee(Live { table, routes }),
        metrics,
        clock,
        server: config.server.clone(),
        keys: keys::of_clients(&config.auth)?,
        buffers: Arc::new(Budget::new(memory::for_buffers(&config.server))),
        via: Via::new(fastrand::u64(..)),
        drain: watch::Sender::new(Drain::No),
        started: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs(),
    })
}

fn view(shared: &Arc<Shared>, kernel: &Arc<Kernel>, token: Option<crate::admin::Token>) -> View {
    let [counted, described] = [0; 2].map(|_| Arc::clone(kernel));
    let [metrics, state, checks] = [0; 3].map(|_| Arc::clone(shared));
    View {
        token,
        metrics: Box::new(move || {
            metrics.live.load().table.publish(metrics.clock.now());
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

fn announce(config: &Config, bound: &[Bound], admin: SocketAddr, workers: usize, kernel: &str) {
    for bound in bound {
        tracing::info!(listener = %bound.name, address = %bound.address, "listening");
    }
    tracing::info!(
        admin = %admin, workers, providers = config.providers.len(), models = config.models.len(),
        presets = config.presets.len(), kernel, "started"
    );
}
