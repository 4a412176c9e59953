//! How each endpoint of a configuration is reached.

use std::net::SocketAddr;
use std::sync::Arc;

use http::HeaderValue;

use super::StartError;
use crate::config::{Config, Host, Provider, Scheme, Url};
use crate::net::tls::Trust;
use crate::net::{self, Destination, Limits, Tls};
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
    let limits = Limits {
        idle_timeout: provider.connections.idle_timeout(url.scheme()),
        max_age: None,
        max_idle: provider.connections.max_idle_per_endpoint as usize,
        max_open: 0,
        max_streams: 64,
    };
    let addresses: Vec<SocketAddr> = match url.host() {
        Host::Address(ip) => vec![SocketAddr::new(*ip, url.port())],
        Host::Name(_) => Vec::new(),
    };
    let tls = match url.scheme() {
        Scheme::Http => None,
        Scheme::Https => Some(Arc::new(tls(provider, url)?)),
    };
    let host = HeaderValue::from_str(&url.authority()).map_err(|_invalid| StartError::Tls {
        provider: provider.name.to_string(),
        reason: format!("`{}` cannot be a host header", url.authority()),
    })?;
    Ok(Route {
        destination: Arc::new(Destination::new(&addresses, tls, limits, workers)),
        host,
    })
}

fn tls(provider: &Provider, url: &Url) -> Result<Tls, StartError> {
    let host = match url.host() {
        Host::Address(ip) => ip.to_string(),
        Host::Name(name) => name.clone(),
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
    trust
        .and_then(|trust| Tls::new(name, trust, None, net::Protocol::Auto))
        .map_err(|error| StartError::Tls {
            provider: provider.name.to_string(),
            reason: error.to_string(),
        })
}
