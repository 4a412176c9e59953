//! How each endpoint of a configuration is reached.

use std::net::SocketAddr;
use std::sync::Arc;

use http::HeaderValue;
use sha2::{Digest as _, Sha256};

use super::StartError;
use crate::config::{Config, Host, HttpVersion, Provider, Scheme, Url};
use crate::net::tls::Trust;
use crate::net::{self, Destination, Limits, Protocol, Proxy, Tls};
use crate::proxy::{Live, Route};

/// One route an endpoint, in the order of the table's endpoint ids: providers as configured, endpoints in each.
/// Names have no addresses yet: the resolver sets them. An endpoint that `before` reaches in the same way keeps its
/// destination, and with it its connections.
pub(super) fn build(
    config: &Config,
    workers: usize,
    before: Option<&Live>,
) -> Result<Vec<Route>, StartError> {
    let mut routes = Vec::new();
    for provider in &config.providers {
        let files = files(provider);
        for endpoint in &provider.endpoints {
            let known = before.and_then(|live| known(live, provider, &endpoint.url));
            let kept = known.filter(|(old, route)| {
                let same = old.tls == provider.tls
                    && old.connections == provider.connections
                    && old.dns == provider.dns;
                same && route.files == files
            });
            let next = match kept {
                Some((_, route)) => route.clone(),
                None => route(provider, &endpoint.url, workers, files)?,
            };
            if let (None, Some((_, old))) = (kept, known) {
                // Another way to the same place: where it is stays known, and what the kernel calls it.
                if known.is_some_and(|(before, _)| {
                    before.reached_at(&endpoint.url) == provider.reached_at(&endpoint.url)
                }) {
                    next.destination.set_addresses(&old.destination.addresses());
                }
                if let Some(slot) = old.destination.slot() {
                    next.destination.follow_as(slot);
                }
            }
            routes.push(next);
        }
    }
    Ok(routes)
}

/// The route to the same endpoint in the configuration before.
fn known<'a>(live: &'a Live, provider: &Provider, url: &Url) -> Option<(&'a Provider, &'a Route)> {
    let mut providers = live.table.providers().iter();
    let old = providers.find(|old| *old.name == *provider.name.as_str())?;
    let endpoint = old.endpoints.iter().find(|old| old.url == *url)?;
    Some((&old.config, live.routes.get(endpoint.id)?))
}

/// Of what the files hold that a provider's TLS is made of.
fn files(provider: &Provider) -> [u8; 32] {
    let mut hasher = Sha256::new();
    let client = provider.tls.client.as_ref();
    let client = client
        .into_iter()
        .flat_map(|client| [&client.cert_file, &client.key_file]);
    for path in provider.tls.ca_file.iter().chain(client) {
        // One that cannot be read is an error where it is used.
        let bytes = std::fs::read(path).unwrap_or_default();
        hasher.update(bytes.len().to_le_bytes());
        hasher.update(bytes);
    }
    hasher.finalize().into()
}

fn route(provider: &Provider, url: &Url, workers: usize, files: [u8; 32]) -> Result<Route, StartError> {
    let tls = match url.scheme() {
        Scheme::Http => None,
        Scheme::Https => Some(Arc::new(tls(provider, url)?)),
    };
    let destination = destination(provider, url, tls, workers);
    let host = HeaderValue::from_str(&url.authority()).map_err(|_invalid| StartError::Tls {
        provider: provider.name.to_string(),
        reason: format!("`{}` cannot be a host header", url.authority()),
    })?;
    Ok(Route {
        destination: Arc::new(destination),
        host,
        files,
    })
}

fn destination(provider: &Provider, url: &Url, tls: Option<Arc<Tls>>, workers: usize) -> Destination {
    let connections = &provider.connections;
    let limits = Limits {
        idle_timeout: connections.idle_timeout(url.scheme()),
        max_age: connections.max_age,
        max_idle: connections.max_idle_per_endpoint as usize,
        max_open: connections.max_per_endpoint as usize,
        max_streams: connections.max_streams as usize,
    };
    let place = provider.reached_at(url);
    let addresses: Vec<SocketAddr> = match place.host() {
        Host::Address(ip) => vec![SocketAddr::new(*ip, place.port())],
        Host::Name(_) => Vec::new(),
        Host::Socket(file) => {
            return Destination::unix(file.clone(), limits, workers).speaking(protocol(provider));
        }
    };
    let destination = Destination::new(&addresses, tls, limits, workers).speaking(protocol(provider));
    match &connections.proxy {
        Some(proxy) => {
            let user = proxy.user.as_ref();
            let target = format!("{}:{}", url.host(), url.port());
            destination.through(Proxy::new(
                &target,
                user.map(|(name, password)| (name.as_str(), password.expose())),
            ))
        }
        None => destination,
    }
}

fn protocol(provider: &Provider) -> Protocol {
    match provider.connections.http_version {
        HttpVersion::Auto => Protocol::Auto,
        HttpVersion::Http1 => Protocol::Http1,
        HttpVersion::Http2 => Protocol::Http2,
    }
}

fn tls(provider: &Provider, url: &Url) -> Result<Tls, StartError> {
    let host = match url.host() {
        Host::Address(ip) => ip.to_string(),
        Host::Name(name) => name.clone(),
        // TLS is for `https` only, which has no socket file.
        Host::Socket(_) => String::new(),
    };
    let options = &provider.tls;
    let name = options.server_name.as_deref().unwrap_or(&host);
    let trust = match &options.ca_file {
        _ if !options.verify => {
            tracing::warn!(provider = %provider.name, "tls.verify is false: any certificate is accepted");
            Ok(Trust::Anyone)
        }
        Some(path) => net::tls::roots_from_file(path).map(Trust::Roots),
        None => net::tls::system_roots().map(Trust::Roots),
    };
    let identity = options.client.as_ref().map(|client| {
        // Each endpoint has a copy of its own: keys cannot be shared before they are in use.
        net::tls::Identity::from_files(&client.cert_file, &client.key_file)
    });
    trust
        .and_then(|trust| Tls::new(name, trust, identity.transpose()?, protocol(provider)))
        .map_err(|error| StartError::Tls {
            provider: provider.name.to_string(),
            reason: error.to_string(),
        })
}

#[cfg(test)]
mod tests;
