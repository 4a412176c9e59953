//! Keeps the addresses of endpoints that are configured by name.

use std::net::SocketAddr;
use std::sync::Arc;

use super::kernel::Kernel;
use crate::config::{Config, Dns, Host};
use crate::proxy::Shared;

/// A name to be kept resolved.
struct Named {
    id: usize,
    host: String,
    port: u16,
    /// The system's resolver knows no more of an answer's time to live than we are told.
    timing: Dns,
}

/// Looks every name up now and again, each on its own clock.
pub(super) fn start(shared: &Arc<Shared>, config: &Config, kernel: &Arc<Kernel>) {
    let places = config.providers.iter().flat_map(|provider| {
        let endpoints = provider.endpoints.iter();
        endpoints.map(|endpoint| (provider.dns, provider.reached_at(&endpoint.url)))
    });
    for (id, (timing, url)) in places.enumerate() {
        if let Host::Name(host) = url.host() {
            tokio::spawn(keep(
                Arc::clone(shared),
                Arc::clone(kernel),
                Named {
                    id,
                    host: host.clone(),
                    port: url.port(),
                    timing,
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
                // Jitter, so that names that were looked up together are not for ever.
                named.timing.refresh.mul_f64(0.9 + 0.2 * fastrand::f64())
            }
            Ok(_) => {
                tracing::warn!(host = %named.host, "name has no address: the last good ones stay");
                named.timing.failure_refresh
            }
            Err(error) => {
                tracing::warn!(host = %named.host, %error, "name does not resolve: the last good addresses stay");
                named.timing.failure_refresh
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
