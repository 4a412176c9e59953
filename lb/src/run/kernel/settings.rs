//! The configuration in the plane's words.

use std::net::IpAddr;

use crate::config::{self, Config, Host};
use crate::kernel::{self, Mode, Settings, signal};

/// Where the endpoints are, as far as that is known: names have no addresses yet, and are covered when they are resolved.
pub(super) fn destinations(config: &Config) -> Vec<IpAddr> {
    let places = config.providers.iter().flat_map(|provider| {
        let endpoints = provider.endpoints.iter();
        endpoints.map(|endpoint| provider.reached_at(&endpoint.url))
    });
    places
        .filter_map(|place| match place.host() {
            Host::Address(ip) => Some(*ip),
            Host::Name(_) | Host::Socket(_) => None,
        })
        .collect()
}

/// What the plane is told of the configuration.
pub(super) fn settings(config: &config::Kernel) -> Settings {
    let config::Signals {
        syn_timeout,
        streak,
        silent,
        rst_count,
        rst_window,
        ejection,
    } = config.signals;
    let signals = signal::Params::new(signal::Settings {
        syn_timeout,
        streak_failover: streak.failover,
        streak_end: streak.end_stream,
        silent_failover: silent.failover,
        silent_end: silent.end_stream,
        rst_count,
        rst_window,
        ejection,
    });
    Settings {
        mode: match config.mode {
            config::KernelMode::Auto => Mode::Auto,
            config::KernelMode::Off => Mode::Off,
            config::KernelMode::Required => Mode::Required,
        },
        attach: match config.attach {
            config::Attach::Auto => kernel::Attach::Auto,
            config::Attach::Cgroup => kernel::Attach::Cgroup,
            config::Attach::Tc => kernel::Attach::Tc,
        },
        interfaces: config.interfaces.clone(),
        max_flows: config.max_flows,
        signals: signals.expect("the configuration has the same bounds, as a test shows"),
    }
}

#[cfg(test)]
mod tests;
