//! One upstream service: its endpoints, its slots, its credentials.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::balancer::{Balancer, By};
use super::endpoint::Endpoint;
use super::limit::Limit;
use super::slots::Slots;
use crate::config;
use crate::metrics::ProviderMetrics;
use crate::policy::cascade::Standing;
use crate::policy::draw::Draw;
use crate::policy::health::{self, Permit};
use crate::policy::limiter::Sample;
use crate::policy::select::Candidate;
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
    pub(super) balancer: Balancer,
    /// Its `concurrency`, shared with the forms that this provider had before, as is the limit.
    pub(super) slots: Arc<Slots>,
    pub(super) limit: Option<Arc<Limit>>,
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
        if self.is_full(now) {
            Standing::Full
        } else {
            Standing::Ready(load)
        }
    }

    /// The same for a request that has a slot.
    pub(super) fn standing_with_slot(&self, now: Instant, load: Candidate) -> Standing {
        match self.standing(now, load) {
            Standing::Full if self.wait(now).is_zero() => Standing::Ready(load),
            standing => standing,
        }
    }

    /// Attempts in flight.
    pub fn in_flight(&self) -> u32 {
        self.slots.taken()
    }

    /// Requests that wait for a slot.
    pub fn pending(&self) -> u32 {
        self.slots.waiting()
    }

    /// Whether a request may wait for a slot.
    pub(super) fn may_wait(&self) -> bool {
        self.config.pending.max > 0
    }

    /// How long until its rate lets another request in; zero if that is now.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.limit
            .as_ref()
            .map_or(Duration::ZERO, |limit| limit.wait(now))
    }

    /// Whether its slots are all taken, or those who wait have the next.
    pub(super) fn has_no_slot(&self, now: Instant) -> bool {
        self.steer(now);
        self.slots.is_full()
    }

    /// Takes a slot and an endpoint for one attempt; `place` is a slot that was waited for. `None` when another request
    /// was faster: the cascade goes on.
    pub(super) fn claim(self: &Arc<Self>, now: Instant, wish: Wish, draw: Draw) -> Option<Claim> {
        let Wish {
            fail_open,
            place,
            point,
        } = wish;
        let slot = Slot::take(self, place, now)?;
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
                    weight: endpoint.weight_at(now),
                })
            })
            .collect();
        loop {
            let by = By {
                now,
                endpoints: &self.endpoints,
                point,
                draw,
            };
            let Some(chosen) = self.balancer.choose(candidates.iter().copied(), by) else {
                if let Some(limit) = &self.limit {
                    limit.give_back();
                }
                return None;
            };
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

    /// Sets the gauges to the present.
    pub(super) fn publish(&self, now: Instant) {
        let adaptive = self.limit.as_ref().and_then(|limit| limit.standing(now).adaptive);
        self.metrics
            .rate_limit_factor
            .set(adaptive.map_or(1.0, |seen| seen.factor));
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

    fn is_full(&self, now: Instant) -> bool {
        self.has_no_slot(now) || !self.wait(now).is_zero()
    }

    /// Has `concurrency` follow the provider's state, where it does.
    fn steer(&self, now: Instant) {
        let concurrency = self.config.concurrency;
        if let Some(limit) = self.limit.as_ref().filter(|_| concurrency > 0)
            && let Some(steered) = limit.steered(now, concurrency)
        {
            self.slots.set_limit(steered);
        }
    }
}

/// What one attempt is looking for in a provider.
#[derive(Debug)]
pub(super) struct Wish {
    /// Whether an endpoint that is out will do.
    pub(super) fail_open: bool,
    /// A slot that was waited for.
    pub(super) place: Option<Place>,
    /// What the request's key hashes to, where an endpoint is chosen by one.
    pub(super) point: Option<u64>,
}

/// A place in the provider's `concurrency`, given back when dropped.
#[derive(Debug)]
pub(super) struct Place(Arc<Provider>);

impl Place {
    /// The guard of a place that has been taken.
    pub(super) fn of(provider: &Arc<Provider>) -> Self {
        Self(Arc::clone(provider))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.slots.release();
    }
}

/// A place, and the right to send one request by the provider's rate.
#[derive(Debug)]
struct Slot(Place);

impl Slot {
    fn take(provider: &Arc<Provider>, place: Option<Place>, now: Instant) -> Option<Self> {
        let place = match place {
            Some(place) => place,
            None => provider.slots.take().then(|| Place::of(provider))?,
        };
        let counted = provider.limit.as_ref().is_none_or(|limit| limit.take(now));
        counted.then_some(Self(place))
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
        &self.slot.0.0
    }

    /// Tells the limit, and the balancer where it goes by latency, what the attempt came to; `asked` is how long a 429
    /// asked to be left alone.
    pub(super) fn learn(&self, now: Instant, sample: Option<Sample>, asked: Option<Duration>) {
        let Some(sample) = sample else { return };
        let provider = self.provider();
        if let Some(limit) = &provider.limit {
            limit.learn(now, sample, asked);
            provider.steer(now);
        }
        self.endpoint.learn(now, sample);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.endpoint.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.endpoint.metrics.in_flight.dec();
    }
}
