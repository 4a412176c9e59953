//! Where the endpoints of a table are.

use std::net::SocketAddr;

use crate::config::{Config, Host, Provider};

/// One endpoint of a table: a configured endpoint at one of its addresses.
///
/// A name with several addresses is several endpoints, each with a health and a load of its own; one whose addresses
/// are not known yet is one endpoint that gives no connection. What is behind a proxy is one endpoint: which of a
/// name's addresses is taken is the proxy's affair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The provider's place in the configuration.
    pub provider: usize,
    /// The endpoint's place in the provider.
    pub endpoint: usize,
    /// What tells it from others of the same URL; `None` where there is only one.
    pub address: Option<SocketAddr>,
    /// Where connections go, in turn: to that address, or to those of the proxy. None where they are not known, and
    /// for a socket file.
    pub dialled: Vec<SocketAddr>,
}

/// The sites of `config` in its order, addresses as they are listed; `known` has the addresses of a host and a port.
pub fn sites(config: &Config, known: impl Fn(&Provider, &str, u16) -> Vec<SocketAddr>) -> Vec<Site> {
    let mut sites = Vec::new();
    for (provider, configured) in config.providers.iter().enumerate() {
        for (endpoint, at) in configured.endpoints.iter().enumerate() {
            let place = configured.reached_at(&at.url);
            let dialled = match place.host() {
                Host::Address(ip) => vec![SocketAddr::new(*ip, place.port())],
                Host::Name(name) => known(configured, name, place.port()),
                Host::Socket(_) => Vec::new(),
            };
            let site = |address, dialled| Site {
                provider,
                endpoint,
                address,
                dialled,
            };
            if *place != at.url || dialled.is_empty() {
                sites.push(site(None, dialled));
            } else {
                sites.extend(dialled.iter().map(|address| site(Some(*address), vec![*address])));
            }
        }
    }
    sites
}
