//! One upstream service: its endpoints, its slots, its credentials.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::endpoint::Endpoint;
use crate::config;
use crate::metrics::ProviderMetrics;
use crate::policy::cascade::Standing;
use crate::policy::draw::Draw;
use crate::policy::health::{self, Permit};
use crate::policy::select::{self, Candidate};
use crate::policy::time::Instant;

/// A provider and what is taken of it.
#[derive(Debug)]
pub struct Provider {
    /// Its name in metrics, logs and headers.
    pub name: Box<str>,
    /// Its addresses.
    pub endpoints: Vec<Arc<Endpoint>>,
    /// Whether the client's own credentials are passed on.
    pub passthrough_auth: bool,
    /// What every request to it carries in place of the client's fields of the same names: the configured ones, and the
    /// one with its key.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// Longest time until a connection is ready, TLS included.
    pub connect_timeout: Duration,
    /// How connections to its endpoints are made and kept.
    pub config: Arc<config::Provider>,
    pub(super) concurrency: u32,
    /// Shared with the forms that this provider had before.
    pub(super) in_flight: Arc<AtomicU32>,
    pub(super) fail_open: bool,
    pub(super) metrics: ProviderMetrics,
}

impl Provider {
    /// How a target of this provider with that load stands.
    pub(super) fn standing(&self, now: Instant, load: Candidate) -> Standing {
        if !self.endpoints.iter().any(|endpoint| endpoint.is_in(now)) {
            return if self.fail_open {
                Standing::Out
            } else {
                Standing::Closed
            };
        }
        if self.is_full() {
            Standing::Full
        } else {
            Standing::Ready(load)
        }
    }

    /// Attempts in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Takes a slot and an endpoint for one attempt. `None` when another request was faster: the cascade goes on.
    pub(super) fn claim(self: &Arc<Self>, now: Instant, fail_open: bool, draw: Draw) -> Option<Claim> {
        let slot = Slot::take(self)?;
        let mut candidates: Vec<Option<Candidate>> = self
            .endpoints
            .iter()
            .map(|endpoint| {
                let usable = if fail_open {
                    endpoint.weight > 0
                } else {
                    endpoint.is_in(now)
                };
                usable.then(|| Candidate {
                    in_flight: endpoint.in_flight(),
                    weight: endpoint.weight,
                })
            })
            .collect();
        loop {
            let chosen = select::least_inflight(candidates.iter().copied(), draw)?;
            let endpoint = &self.endpoints[chosen];
            let permit = if fail_open {
                Ok(endpoint.acquire_fail_open())
            } else {
                endpoint.acquire(now)
            };
            let Ok(permit) = permit else {
                candidates[chosen] = None;
                continue;
            };
            if fail_open {
                self.metrics.fail_open_picks.inc();
            }
            endpoint.in_flight.fetch_add(1, Ordering::Relaxed);
            endpoint.metrics.in_flight.inc();
            return Some(Claim {
                slot,
                endpoint: Arc::clone(endpoint),
                permit,
            });
        }
    }

    /// Whether `endpoint` may be ejected, by `max_ejection_percent` and how many others are out.
    pub(super) fn has_ejection_room(&self, endpoint: &Endpoint, now: Instant) -> bool {
        let others = self.endpoints.iter().filter(|other| other.id != endpoint.id);
        let out = others
            .filter(|other| !matches!(other.standing(now), health::Standing::Healthy))
            .count();
        self.config
            .health
            .as_ref()
            .is_some_and(|params| params.may_eject(out, self.endpoints.len()))
    }

    /// Whether an endpoint other than `endpoint` is in.
    pub(super) fn another_is_in(&self, endpoint: &Endpoint, now: Instant) -> bool {
        self.endpoints
            .iter()
            .any(|other| other.id != endpoint.id && other.is_in(now))
    }

    fn is_full(&self) -> bool {
        self.concurrency > 0 && self.in_flight() >= self.concurrency
    }
}

/// A place in the provider's `concurrency`, given back when dropped.
#[derive(Debug)]
struct Slot(Arc<Provider>);

impl Slot {
    fn take(provider: &Arc<Provider>) -> Option<Self> {
        let limit = if provider.concurrency == 0 {
            u32::MAX
        } else {
            provider.concurrency
        };
        let free = |taken: u32| (taken < limit).then_some(taken + 1);
        provider
            .in_flight
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, free)
            .ok()?;
        Some(Self(Arc::clone(provider)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One attempt's hold on its provider and endpoint: a slot, a place in flight, health's permit.
#[derive(Debug)]
pub struct Claim {
    slot: Slot,
    /// The endpoint that was chosen.
    pub endpoint: Arc<Endpoint>,
    pub(super) permit: Option<Permit>,
}

impl Claim {
    /// The provider that was claimed.
    pub fn provider(&self) -> &Arc<Provider> {
        &self.slot.0
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.endpoint.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.endpoint.metrics.in_flight.dec();
    }
}
