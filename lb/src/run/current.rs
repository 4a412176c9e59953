//! What is in force, and how something else comes into force.

use std::sync::{Arc, MutexGuard, PoisonError};

use super::dns::Names;
use super::keys::Secrets;
use super::{Daemon, StartError, routes};
use crate::config::Config;
use crate::metrics::Metrics;
use crate::policy::draw::Draw;
use crate::policy::time::Instant;
use crate::proxy::{Live, Route};
use crate::upstream::{Context, Site, Table};

/// A configuration and what was made of it and of the world before it came into force.
#[derive(Clone, Debug)]
pub(super) struct Current {
    pub(super) config: Config,
    pub(super) secrets: Secrets,
    /// How each configured endpoint is reached.
    pub(super) ways: Vec<Route>,
    pub(super) names: Names,
    /// Where the endpoints are.
    pub(super) sites: Vec<Site>,
}

impl Current {
    /// What `config` asks for at the start.
    pub(super) fn first(config: &Config, names: Names, workers: usize) -> Result<Self, StartError> {
        let ways = routes::ways(config, workers, None)?;
        let secrets = Secrets::read(config)?;
        names.prime_before_start().map_err(StartError::Thread)?;
        Ok(Self {
            config: config.clone(),
            secrets,
            ways,
            sites: names.sites(config),
            names,
        })
    }

    /// The way to each site; what `before` reaches in the same way keeps its connections.
    pub(super) fn routes(&self, before: Option<&Live>) -> Vec<Route> {
        routes::to_sites(&self.config, &self.ways, &self.sites, before)
    }
}

/// What requests meet. It cannot fail, because what has been learned is shared with the table `before`.
pub(super) fn live(
    current: &Current,
    routes: Vec<Route>,
    (metrics, before, now): (&Metrics, Option<&Table>, Instant),
) -> Live {
    let Current {
        config,
        secrets,
        sites,
        ..
    } = current;
    metrics.count_usage(config.metrics.usage);
    let table = Table::build(
        config,
        &mut Context {
            metrics,
            keys: &secrets.providers,
            sites,
            now,
            before,
            draw: &mut || Draw::new(fastrand::f64()),
        },
    );
    Live {
        table,
        routes,
        server: config.server.clone(),
        keys: secrets.clients.clone(),
    }
}

impl Daemon {
    /// Puts `next` into force, by one swap; nothing can fail here. To be called by one task at a time.
    pub(super) fn enact(&self, next: Current) {
        let before = self.shared.live.load_full();
        let routes = next.routes(Some(&before));
        self.kernel.adopt(&next, &routes, &self.shared.metrics);
        let learned = (
            &*self.shared.metrics,
            Some(&before.table),
            self.shared.clock.now(),
        );
        let live = Arc::new(live(&next, routes, learned));
        self.shared.live.store(Arc::clone(&live));
        leave(&before, &live);
        let before = std::mem::replace(&mut *self.current(), next);
        let names = self.current().names.clone();
        names.keep(self.control.handle(), &before.names);
        self.probes.follow();
    }

    /// Goes by the present addresses of the names, if they are others.
    pub(super) fn readdress(&self) {
        let next = {
            let current = self.current();
            let sites = current.names.sites(&current.config);
            if sites == current.sites {
                return;
            }
            Current {
                sites,
                ..current.clone()
            }
        };
        self.enact(next);
    }

    /// Goes by the addresses of the names as they change; does not end.
    pub(super) async fn follow_names(&self) {
        loop {
            self.renamed.notified().await;
            self.readdress();
        }
    }

    /// What is in force, as it was configured.
    pub(super) fn config(&self) -> Config {
        self.current().config.clone()
    }

    pub(super) fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes idle connections to what is no more, or is reached in another way now. Busy ones are closed after their
/// response.
fn leave(before: &Live, next: &Live) {
    for old in &before.routes {
        let stays = |route: &Route| Arc::ptr_eq(&route.destination, &old.destination);
        if !next.routes.iter().any(stays) {
            old.destination.purge();
        }
    }
}
