//! What is live, as plain values for people and programs to read.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cooldowns::Entry;
use super::endpoint::{cause_name, state_name, state_of};
use super::gate::{self, Gate};
use super::limit::Limit;
use super::pool::Pool;
use super::provider::Provider;
use super::table::Table;
use crate::config;
use crate::policy::health::Standing;
use crate::policy::time::{Instant, millis};
use crate::policy::{breaker, cooldown};

/// The table at an instant.
#[derive(Clone, Debug, Serialize)]
pub struct State {
    /// Models in definition order.
    pub models: Vec<ModelState>,
    /// Providers in definition order.
    pub providers: Vec<ProviderState>,
    /// What is left alone for now, or waits to be tried again.
    pub cooldowns: Vec<CooldownState>,
    /// How connections are watched in the kernel.
    pub kernel: KernelState,
}

/// A model that is left alone at an endpoint.
#[derive(Clone, Debug, Serialize)]
pub struct CooldownState {
    /// The model as the provider knows it.
    pub upstream_model: String,
    /// The provider.
    pub provider: String,
    /// The endpoint.
    pub endpoint: String,
    /// Its address, as in [`EndpointState::address`].
    pub address: Option<String>,
    /// `cooling`, or `half_open` once that is over and a request is to find out.
    pub state: &'static str,
    /// Milliseconds until it may be tried, while it is cooling.
    pub for_ms: Option<u64>,
    /// How the attempt ended that it is for.
    pub reason: &'static str,
    /// The model or preset whose request that was.
    pub by: String,
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
    /// What tells its conversations apart: `header`, `prompt_cache_key` or `first_messages`.
    pub affinity: Option<&'static str>,
    /// Requests in it and what is in its bucket, where it has limits of its own.
    pub limits: Option<ModelLimits>,
    /// Its default pool and its continuation pools.
    pub pools: Vec<PoolState>,
}

/// How a model's own limits stand.
#[derive(Clone, Debug, Serialize)]
pub struct ModelLimits {
    /// Requests in it.
    pub in_flight: u32,
    /// Requests that could come at once, where their rate is limited.
    pub tokens: Option<f64>,
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
    /// Requests that wait for a slot.
    pub pending: u32,
    /// Slots there are at present; `None` is no limit.
    pub concurrency: Option<u32>,
    /// Its rate limit, where it has one.
    pub rate_limit: Option<LimitState>,
    /// Its circuit breaker, where that is on.
    pub breaker: Option<BreakerState>,
    /// Its retry budget.
    pub retries: RetriesState,
    /// Its endpoints in definition order.
    pub endpoints: Vec<EndpointState>,
}

/// A limit on requests a second, and how it follows its provider.
#[derive(Clone, Debug, Serialize)]
pub struct LimitState {
    /// Requests that could be sent at once.
    pub tokens: Option<f64>,
    /// Part of the configured limit that is in force, where that follows the provider.
    pub factor: Option<f64>,
    /// Average part of attempts that failed.
    pub error_rate: Option<f64>,
    /// Average milliseconds to the commit.
    pub latency_ms: Option<f64>,
    /// Milliseconds for which the provider asked to be left alone.
    pub asked_for_ms: Option<f64>,
}

/// A provider's circuit breaker.
#[derive(Clone, Debug, Serialize)]
pub struct BreakerState {
    /// `closed`, `open` or `half_open`.
    pub state: &'static str,
    /// Milliseconds for which requests are refused, while it is open.
    pub open_for_ms: Option<u64>,
    /// What opened it, until it is closed again.
    pub cause: Option<&'static str>,
    /// Failures since the last clean end.
    pub consecutive_failures: u32,
    /// Results within the window.
    pub window_volume: u32,
    /// Failures among them.
    pub window_failures: u32,
}

/// A provider's retry budget over its window.
#[derive(Clone, Debug, Serialize)]
pub struct RetriesState {
    /// Requests that were no retries.
    pub window_requests: u32,
    /// Retries.
    pub window_retries: u32,
    /// Whether another would be within the budget.
    pub allowed: bool,
    /// Milliseconds after which a second attempt begins beside a slow one, paid for like a retry; `None` is never.
    pub hedge_after_ms: Option<f64>,
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
    /// Failures since the last clean end, where its health is judged.
    pub consecutive_failures: Option<u32>,
    /// Results within the window.
    pub window_volume: Option<u32>,
    /// Failures among them.
    pub window_failures: Option<u32>,
    /// `misconfigured` while its probes are not let in.
    pub probe: Option<&'static str>,
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
                    affinity: self.affinity_of(&pool.model),
                    limits: self.limits_of(&pool.model, now),
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
            cooldowns: self
                .cooldowns
                .0
                .iter()
                .filter_map(|entry| cooldown_state(entry, now))
                .collect(),
            kernel: KernelState::default(),
        }
    }

    fn affinity_of(&self, model: &str) -> Option<&'static str> {
        let model = self.models.iter().find(|known| known.config.name == model)?;
        model.config.affinity.as_ref().map(config::Affinity::as_str)
    }

    fn limits_of(&self, model: &str, now: Instant) -> Option<ModelLimits> {
        let model = self.models.iter().find(|known| known.config.name == model)?;
        let limits = model.limits.as_ref()?;
        Some(ModelLimits {
            in_flight: limits.in_flight(),
            tokens: limits.tokens(now),
        })
    }
}

fn limit_state(limit: &Limit, now: Instant) -> LimitState {
    let standing = limit.standing(now);
    let seen = standing.adaptive;
    LimitState {
        tokens: standing.tokens,
        factor: seen.map(|seen| seen.factor),
        error_rate: seen.map(|seen| seen.error_rate),
        latency_ms: seen.and_then(|seen| seen.latency).map(millis),
        asked_for_ms: seen
            .and_then(|seen| seen.asked_until)
            .map(|until| millis(until.since(now))),
    }
}

fn cooldown_state(entry: &Entry, now: Instant) -> Option<CooldownState> {
    let seen = entry.seen(now)?;
    let until = match seen.standing {
        cooldown::Standing::Cooling { until } => Some(until),
        _ => None,
    };
    Some(CooldownState {
        upstream_model: entry.model.to_string(),
        provider: entry.provider.to_string(),
        endpoint: entry.endpoint.to_string(),
        address: entry.address.map(|address| address.to_string()),
        state: if until.is_some() { "cooling" } else { "half_open" },
        for_ms: until.map(|until| left(until, now)),
        reason: seen.reason,
        by: seen.by.into(),
    })
}

fn breaker_state(gate: &Gate, now: Instant) -> BreakerState {
    let seen = gate.snapshot(now);
    let until = match seen.standing {
        breaker::Standing::Open { until } => Some(until),
        _ => None,
    };
    BreakerState {
        state: gate::state_name(seen.standing),
        open_for_ms: until.map(|until| left(until, now)),
        cause: seen.cause.map(gate::cause_name),
        consecutive_failures: seen.consecutive_failures,
        window_volume: seen.window_volume,
        window_failures: seen.window_failures,
    }
}

/// Milliseconds from `now`.
fn left(until: Instant, now: Instant) -> u64 {
    u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX)
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
        let seen = endpoint.snapshot(now);
        let standing = seen.map_or(Standing::Healthy, |seen| seen.standing);
        let until = match standing {
            Standing::Ejected { until } => Some(until),
            Standing::Unproven => Some(now),
            Standing::HalfOpen | Standing::Probing | Standing::Healthy => None,
        };
        EndpointState {
            name: endpoint.name.to_string(),
            address: endpoint.address.map(|address| address.to_string()),
            state: state_name(state_of(standing)),
            ejected_for_ms: until.map(|until| left(until, now)),
            cause: seen.and_then(|seen| seen.cause).map(cause_name),
            consecutive_failures: seen.map(|seen| seen.consecutive_failures),
            window_volume: seen.map(|seen| seen.window_volume),
            window_failures: seen.map(|seen| seen.window_failures),
            probe: endpoint.is_misconfigured().then_some("probe_misconfigured"),
            in_flight: endpoint.in_flight(),
            kernel: None,
        }
    });
    let budget = provider.purse.snapshot(now);
    ProviderState {
        name: provider.name.to_string(),
        in_flight: provider.in_flight(),
        pending: provider.pending(),
        concurrency: Some(provider.slots.limit()).filter(|limit| *limit > 0),
        rate_limit: provider.limit.as_ref().map(|limit| limit_state(limit, now)),
        breaker: provider.gate.as_ref().map(|gate| breaker_state(gate, now)),
        retries: RetriesState {
            window_requests: budget.requests,
            window_retries: budget.retries,
            allowed: provider.purse.allows(now),
            hedge_after_ms: provider.config.retries.hedge_after.map(millis),
        },
        endpoints: endpoints.collect(),
    }
}
