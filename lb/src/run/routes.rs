//! How each endpoint of a configuration is reached.

use std::net::SocketAddr;
use std::sync::Arc;

use http::HeaderValue;

use super::StartError;
use crate::config::{Config, Host, HttpVersion, Provider, Scheme, Url};
use crate::net::tls::Trust;
use crate::net::{self, Destination, Limits, Protocol, Proxy, Tls};
use crate::proxy::Route;

/// One route an endpoint, in the order of the table's endpoint ids: providers as configured, endpoints in each.
/// Names have no addresses yet: the resolver sets them.
pub(super) fn build(config: &Config, workers: usize) -> Result<Vec<Route>, StartError> {
    let mut routes = Vec::new();
    for provider in &config.providers {
        for endpoint in &provider.endpoints {
            routes.push(route(provider, &endpoint.url, workers)?);
        }
    }
    Ok(routes)
}

fn route(provider: &Provider, url: &Url, workers: usize) -> Result<Route, StartError> {
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
