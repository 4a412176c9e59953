//! Puts another configuration into force without losing a connection.
//!
//! ```text
//!  secrets, routes, listeners, addresses ──▶ kernel, table (adopts), one swap ──▶ listeners, connections that are left
//!  anything may fail, nothing has changed     nothing can fail                     what is open goes on
//! ```

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::current::Current;
use super::keys::{self, Secrets};
use super::memory;
use super::{Daemon, StartError, control, edges, routes, shards};
use crate::admin::Reloaded;
use crate::config::Config;
use crate::proxy::{Bound, Drain};

/// Somebody wants a reload, and to hear what came of it.
pub(super) type Request = oneshot::Sender<Reloaded>;

/// Asks for a reload and waits for it.
pub(super) async fn ask(asking: mpsc::Sender<Request>) -> Reloaded {
    let (answer, answered) = oneshot::channel();
    if asking.try_send(answer).is_err() {
        return Reloaded::Unavailable;
    }
    answered.await.unwrap_or(Reloaded::Unavailable)
}

impl Daemon {
    /// Puts `config` into force. If it cannot be, everything stays as it was. Returns what of it waits for a restart.
    pub async fn reload(&self, config: &Config) -> Result<Vec<&'static str>, StartError> {
        let old = self.current().clone();
        let secrets = Secrets::read(config)?;
        let token = keys::admin_token(&config.admin)?;
        let ways = routes::ways(config, shards(self.count), Some((&old.config, &old.ways)))?;
        let plan = self.listeners.plan(config)?;
        let admin = (old.config.admin.address != config.admin.address)
            .then(|| control::bind(config.admin.address))
            .transpose()?;
        let names = old.names.next(config);
        names.prime().await;
        if let Some(socket) = admin {
            self.control.serve(socket).map_err(StartError::Thread)?;
        }
        // From here on nothing can fail.
        self.control.view().set_token(token);
        self.enact(Current {
            config: config.clone(),
            secrets,
            ways,
            sites: names.sites(config),
            names,
        });
        self.shared.buffers.set_limit(memory::for_buffers(&config.server));
        for gone in self.listeners.commit(plan, &self.workers) {
            tokio::spawn(finish(gone, config.server.drain_timeout));
        }
        Ok(waiting(&old.config, config))
    }
}

/// Gives the connections of a listener that is no more the time that they would have at the end of lb.
async fn finish(gone: Arc<Bound>, limit: std::time::Duration) {
    let all_closed = async {
        while gone.open() > 0 {
            tokio::time::sleep(super::POLL).await;
        }
    };
    if tokio::time::timeout(limit, all_closed).await.is_err() {
        tracing::warn!(listener = %gone.name(), open = gone.open(), "drain timed out: cutting what is open");
    }
    gone.advance(Drain::Now);
}

/// What differs and cannot be changed in a running process.
fn waiting(old: &Config, new: &Config) -> Vec<&'static str> {
    let differing = [
        ("server.workers", old.server.workers != new.server.workers),
        ("kernel", old.kernel != new.kernel),
        ("log", old.log != new.log),
        ("tracing", old.tracing != new.tracing),
        ("the buckets of lb_first_token_seconds", edges(old) != edges(new)),
    ];
    let differing = differing.into_iter().filter(|(_, differs)| *differs);
    differing.map(|(what, _)| what).collect()
}
