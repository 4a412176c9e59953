//! What is live, as plain values for people and programs to read.

use std::collections::BTreeMap;

use serde::Serialize;

use super::endpoint::{cause_name, state_name, state_of};
use super::pool::Pool;
use super::provider::Provider;
use super::table::Table;
use crate::policy::health::Standing;
use crate::policy::time::Instant;

/// The table at an instant.
#[derive(Clone, Debug, Serialize)]
pub struct State {
    /// Models in definition order.
    pub models: Vec<ModelState>,
    /// Providers in definition order.
    pub providers: Vec<ProviderState>,
    /// How connections are watched in the kernel.
    pub kernel: KernelState,
}

/// How connections are watched in the kernel; whoever runs the plane fills it in.
#[derive(Clone, Debug, Default, Serialize)]
pub struct KernelState {
    /// Where the programs are, or `off`.
    pub mode: String,
    /// What could not be had, and why.
    pub missing: Vec<String>,
}

/// A model and its pools.
#[derive(Clone, Debug, Serialize)]
pub struct ModelState {
    /// The name clients send.
    pub name: String,
    /// Its default pool and its continuation pools.
    pub pools: Vec<PoolState>,
}

/// A pool and its controller.
#[derive(Clone, Debug, Serialize)]
pub struct PoolState {
    /// `default` or the continuation pool's name.
    pub name: String,
    /// Whether a controller steers it; the members below are there only if it does, or if one is parked.
    pub active: bool,
    /// Part of eligible requests that try the preferred target first.
    pub share: Option<f64>,
    /// Outcomes in the window.
    pub window_samples: Option<usize>,
    /// Part of them that are breaches.
    pub breach_rate: Option<f64>,
    /// Decreases so far.
    pub generation: Option<u64>,
    /// Open attempts on the preferred target.
    pub in_flight: Option<u64>,
    /// Whether it waits for its preferred target to come back.
    pub parked: Option<bool>,
}

/// A provider and its endpoints.
#[derive(Clone, Debug, Serialize)]
pub struct ProviderState {
    /// Its name.
    pub name: String,
    /// Attempts in flight.
    pub in_flight: u32,
    /// Its endpoints in definition order.
    pub endpoints: Vec<EndpointState>,
}

/// An endpoint's health.
#[derive(Clone, Debug, Serialize)]
pub struct EndpointState {
    /// Its name.
    pub name: String,
    /// Its address. Of a name with several there is an endpoint each, under one name; `None` while it is not known,
    /// and where a proxy or a socket file is connected to.
    pub address: Option<String>,
    /// `healthy`, `ejected` or `half_open`.
    pub state: &'static str,
    /// Milliseconds until it may be probed, while it is ejected.
    pub ejected_for_ms: Option<u64>,
    /// What ejected it, until it is healthy again.
    pub cause: Option<&'static str>,
    /// Attempts in flight.
    pub in_flight: u32,
    /// What the kernel counted, where it watches; filled in like [`State::kernel`].
    pub kernel: Option<BTreeMap<&'static str, u64>>,
}

impl Table {
    /// The present state, with what is due by time worked out but not applied.
    pub fn state(&self, now: Instant) -> State {
        let mut models: Vec<ModelState> = Vec::new();
        for pool in &self.pools {
            let state = pool_state(pool, now);
            match models.last_mut().filter(|model| *model.name == *pool.model) {
                Some(model) => model.pools.push(state),
                None => models.push(ModelState {
                    name: pool.model.to_string(),
                    pools: vec![state],
                }),
            }
        }
        State {
            models,
            providers: self
                .providers
                .iter()
                .map(|provider| provider_state(provider, now))
                .collect(),
            kernel: KernelState::default(),
        }
    }
}

fn pool_state(pool: &Pool, now: Instant) -> PoolState {
    let seen = pool
        .controllers
        .shown()
        .map(|controller| controller.snapshot(now));
    let seen = seen.as_ref();
    PoolState {
        name: pool.name.to_string(),
        active: seen.is_some_and(|seen| !seen.parked),
        share: seen.map(|seen| seen.share),
        window_samples: seen.map(|seen| seen.window_samples),
        breach_rate: seen.and_then(|seen| seen.window_breach_rate),
        generation: seen.map(|seen| seen.generation),
        in_flight: seen.map(|seen| seen.in_flight),
        parked: seen.map(|seen| seen.parked),
    }
}

fn provider_state(provider: &Provider, now: Instant) -> ProviderState {
    let endpoints = provider.endpoints.iter().map(|endpoint| {
        let standing = endpoint.standing(now);
        let until = match standing {
            Standing::Ejected { until } => Some(until),
            Standing::Unproven => Some(now),
            Standing::HalfOpen | Standing::Probing | Standing::Healthy => None,
        };
        EndpointState {
            name: endpoint.name.to_string(),
            address: endpoint.address.map(|address| address.to_string()),
            state: state_name(state_of(standing)),
            ejected_for_ms: until
                .map(|until| u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX)),
            cause: endpoint.cause(now).map(cause_name),
            in_flight: endpoint.in_flight(),
            kernel: None,
        }
    });
    ProviderState {
        name: provider.name.to_string(),
        in_flight: provider.in_flight(),
        endpoints: endpoints.collect(),
    }
}
