//! Keeps the addresses of endpoints that are configured by name.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::kernel::Kernel;
use crate::config::{Config, Dns, Host, Url};
use crate::net::Destination;
use crate::proxy::Route;

/// How long a reload waits for the addresses of new names, so that no request meets an endpoint without any.
const PATIENCE: Duration = Duration::from_secs(1);

/// A name to be kept resolved, for as long as anybody has the destination.
#[derive(Clone, Debug)]
pub(super) struct Named {
    destination: Weak<Destination>,
    host: String,
    port: u16,
    /// The system's resolver knows no more of an answer's time to live than we are told.
    timing: Dns,
}

/// The endpoints with a name among those that `is_new` says are new. `routes` are those of `config`, in its order.
pub(super) fn named(
    config: &Config,
    routes: &[Route],
    is_new: impl Fn(&Arc<Destination>) -> bool,
) -> Vec<Named> {
    let places = config.providers.iter().flat_map(|provider| {
        let endpoints = provider.endpoints.iter();
        endpoints.map(|endpoint| (provider.dns, provider.reached_at(&endpoint.url)))
    });
    let one = |((timing, place), route): ((Dns, &Url), &Route)| match place.host() {
        Host::Name(host) if is_new(&route.destination) => Some(Named {
            destination: Arc::downgrade(&route.destination),
            host: host.clone(),
            port: place.port(),
            timing,
        }),
        _ => None,
    };
    places.zip(routes).filter_map(one).collect()
}

/// Looks the names up once, for a second at most; those that are not known by then stay without addresses for now.
pub(super) async fn prime(names: &[Named]) {
    let mut looking = JoinSet::new();
    for named in names.iter().cloned() {
        looking.spawn(async move {
            if let Ok(addresses) = resolve(&named).await
                && let Some(destination) = named.destination.upgrade()
            {
                destination.set_addresses(&addresses);
            }
        });
    }
    let all = async { while looking.join_next().await.is_some() {} };
    // Whoever looks on goes on looking.
    drop(tokio::time::timeout(PATIENCE, all).await);
}

/// Looks every name up now and again, each on its own clock.
pub(super) fn keep(handle: &Handle, names: Vec<Named>, kernel: &Arc<Kernel>) {
    for named in names {
        handle.spawn(keep_one(named, Arc::clone(kernel)));
    }
}

async fn keep_one(named: Named, kernel: Arc<Kernel>) {
    let mut known = Vec::new();
    // A name that is gone for long is told of once.
    let mut failing = false;
    loop {
        let resolved = resolve(&named).await;
        let Some(destination) = named.destination.upgrade() else {
            return;
        };
        let wait = match resolved {
            Ok(addresses) if !addresses.is_empty() => {
                if std::mem::take(&mut failing) {
                    tracing::info!(host = %named.host, "name resolves again");
                }
                destination.set_addresses(&addresses);
                if addresses != known {
                    kernel.cover(&addresses);
                    known = addresses;
                }
                // Jitter, so that names that were looked up together are not for ever.
                named.timing.refresh.mul_f64(0.9 + 0.2 * fastrand::f64())
            }
            failed => {
                if !std::mem::replace(&mut failing, true) {
                    let why =
                        failed.map_or_else(|error| error.to_string(), |_none| "it has no address".to_owned());
                    tracing::warn!(host = %named.host, why, "name does not resolve: what was known of it stays");
                }
                named.timing.failure_refresh
            }
        };
        drop(destination);
        tokio::time::sleep(wait).await;
    }
}

async fn resolve(named: &Named) -> io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((named.host.as_str(), named.port))
        .await?
        .collect())
}
