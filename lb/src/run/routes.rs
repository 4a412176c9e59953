//! How each endpoint of a configuration is reached.

use std::net::SocketAddr;
use std::sync::Arc;

use http::HeaderValue;
use sha2::{Digest as _, Sha256};

use super::StartError;
use crate::config::{self, Config, Host, HttpVersion, Provider, Scheme, Url};
use crate::net::tls::Trust;
use crate::net::{self, Destination, Limits, Protocol, Proxy, Tls};
use crate::proxy::{Live, Route};
use crate::upstream::Site;

/// One way an endpoint as it is configured, in the configuration's order: a route that leads to no address yet. An
/// endpoint that was reached in the same way by the configuration `before` keeps its way.
pub(super) fn ways(
    config: &Config,
    workers: usize,
    before: Option<(&Config, &[Route])>,
) -> Result<Vec<Route>, StartError> {
    let mut ways = Vec::new();
    for provider in &config.providers {
        let files = files(provider);
        for endpoint in &provider.endpoints {
            let known = before.and_then(|(config, ways)| known(config, ways, provider, &endpoint.url));
            let kept = known.filter(|(old, way)| {
                let same = old.tls == provider.tls && old.connections == provider.connections;
                same && way.files == files
            });
            ways.push(match kept {
                Some((_, way)) => way.clone(),
                None => route(provider, &endpoint.url, workers, files)?,
            });
        }
    }
    Ok(ways)
}

/// The way to the same endpoint in the configuration before.
fn known<'a>(
    config: &'a Config,
    ways: &'a [Route],
    provider: &Provider,
    url: &Url,
) -> Option<(&'a Provider, &'a Route)> {
    let providers = config.providers.iter();
    let endpoints = providers.flat_map(|old| old.endpoints.iter().map(move |endpoint| (old, endpoint)));
    let is_it = |((old, endpoint), _): &((&Provider, &config::Endpoint), &Route)| {
        old.name == provider.name && endpoint.url == *url
    };
    let ((old, _), way) = endpoints.zip(ways).find(is_it)?;
    Some((old, way))
}

/// One route a site, by `ways`. A site that `before` reaches by the same way keeps its destination, and with it its
/// connections; by another, what the kernel calls it.
///
/// Nothing can fail here: what is behind a proxy goes to the proxy's present addresses from now on.
pub(super) fn to_sites(config: &Config, ways: &[Route], sites: &[Site], before: Option<&Live>) -> Vec<Route> {
    let mut first = Vec::with_capacity(config.providers.len());
    let mut count = 0;
    for provider in &config.providers {
        first.push(count);
        count += provider.endpoints.len();
    }
    let route = |site: &Site| {
        let way = &ways[first[site.provider] + site.endpoint];
        let provider = &config.providers[site.provider];
        let url = &provider.endpoints[site.endpoint].url;
        let old = before.and_then(|live| old(live, provider, url, site.address));
        if let Some(old) = old.filter(|old| old.destination.is_beside(&way.destination)) {
            old.destination.set_addresses(&site.dialled);
            return old.clone();
        }
        let destination = Arc::new(way.destination.beside(&site.dialled));
        if let Some(slot) = old.and_then(|old| old.destination.slot()) {
            destination.follow_as(slot);
        }
        Route {
            destination,
            ..way.clone()
        }
    };
    sites.iter().map(route).collect()
}

/// The route to the same site in what was live before.
fn old<'a>(live: &'a Live, provider: &Provider, url: &Url, address: Option<SocketAddr>) -> Option<&'a Route> {
    let mut providers = live.table.providers().iter();
    let old = providers.find(|old| *old.name == *provider.name.as_str())?;
    let mut endpoints = old.endpoints.iter();
    let endpoint = endpoints.find(|old| old.url == *url && old.address == address)?;
    live.routes.get(endpoint.id)
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
    if let Host::Socket(file) = url.host() {
        return Destination::unix(file.clone(), limits, workers).speaking(protocol(provider));
    }
    let destination = Destination::new(&[], tls, limits, workers).speaking(protocol(provider));
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
