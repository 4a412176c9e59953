//! Keeps the addresses of endpoints that are configured by name.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::kernel::Kernel;
use crate::config::{Config, Host};
use crate::proxy::Shared;

/// How long an answer is used. The system's resolver knows no more of its time to live than we are told, and rollouts
/// of what is behind a name take about this long.
const REFRESH: Duration = Duration::from_secs(30);

/// How soon a failed look-up is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// A name to be kept resolved.
struct Named {
    id: usize,
    host: String,
    port: u16,
}

/// Looks every name up now and again, each on its own clock.
pub(super) fn start(shared: &Arc<Shared>, config: &Config, kernel: &Arc<Kernel>) {
    let urls = config
        .providers
        .iter()
        .flat_map(|provider| &provider.endpoints)
        .map(|endpoint| &endpoint.url);
    for (id, url) in urls.enumerate() {
        if let Host::Name(host) = url.host() {
            tokio::spawn(keep(
                Arc::clone(shared),
                Arc::clone(kernel),
                Named {
                    id,
                    host: host.clone(),
                    port: url.port(),
                },
            ));
        }
    }
}

async fn keep(shared: Arc<Shared>, kernel: Arc<Kernel>, named: Named) {
    let mut known = Vec::new();
    loop {
        let resolved = resolve(&named).await;
        let wait = match resolved {
            Ok(addresses) if !addresses.is_empty() => {
                shared.live.load().routes[named.id]
                    .destination
                    .set_addresses(&addresses);
                if addresses != known {
                    kernel.cover(&addresses);
                    known = addresses;
                }
                REFRESH.mul_f64(0.9 + 0.2 * fastrand::f64())
            }
            Ok(_) => {
                tracing::warn!(host = %named.host, "name has no address: the last good ones stay");
                RETRY
            }
            Err(error) => {
                tracing::warn!(host = %named.host, %error, "name does not resolve: the last good addresses stay");
                RETRY
            }
        };
        tokio::time::sleep(wait).await;
    }
}

async fn resolve(named: &Named) -> std::io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((named.host.as_str(), named.port))
        .await?
        .collect())
}
