//! One upstream service: its endpoints, its slots, its credentials.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::balancer::{Balancer, By};
use super::claim::{Claim, Place, Slot};
use super::cooldowns::Entry;
use super::endpoint::Endpoint;
use super::gate::{self, Gate};
use super::limit::Limit;
use super::purse::{Charge, Purse};
use super::slots::Slots;
use crate::config;
use crate::metrics::{ProviderMetrics, RetryOutcome};
use crate::policy::cascade::Standing;
use crate::policy::draw::Draw;
use crate::policy::health;
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
    /// `None` where the breaker is off. Shared like the count, as is the budget.
    pub(super) gate: Option<Arc<Gate>>,
    pub(super) purse: Arc<Purse>,
    pub(super) fail_open: bool,
    pub(super) metrics: ProviderMetrics,
}

/// What one attempt is looking for in a provider.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish<'a> {
    /// Whether an endpoint that is out will do.
    pub(super) fail_open: bool,
    /// The endpoints that the request has tried in this visit.
    pub(super) tried: Tried,
    /// The cooldowns of the model at each endpoint; empty where there are none.
    pub(super) entries: &'a [Arc<Entry>],
    /// What the request's key hashes to, where an endpoint is chosen by one.
    pub(super) point: Option<u64>,
}

/// A set of a provider's endpoints by their place. Those from the 65th on are never in it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Tried(u64);

impl Tried {
    pub(super) fn insert(&mut self, place: usize) {
        self.0 |= bit(place);
    }

    pub(super) fn contains(self, place: usize) -> bool {
        self.0 & bit(place) != 0
    }
}

fn bit(place: usize) -> u64 {
    u32::try_from(place)
        .ok()
        .and_then(|place| 1u64.checked_shl(place))
        .unwrap_or(0)
}

/// Whether the model is to be left alone at the endpoint in this place.
fn is_cooling(entries: &[Arc<Entry>], place: usize, now: Instant) -> bool {
    entries.get(place).is_some_and(|entry| entry.is_cooling(now))
}

impl Provider {
    /// How a target of this provider with that load and those cooldowns stands.
    pub(super) fn standing(&self, now: Instant, load: Candidate, entries: &[Arc<Entry>]) -> Standing {
        self.standing_if(now, load, entries, || self.is_full(now))
    }

    /// The same for a request that has a slot.
    pub(super) fn standing_with_slot(
        &self,
        now: Instant,
        load: Candidate,
        entries: &[Arc<Entry>],
    ) -> Standing {
        self.standing_if(now, load, entries, || !self.wait(now).is_zero())
    }

    fn standing_if(
        &self,
        now: Instant,
        load: Candidate,
        entries: &[Arc<Entry>],
        is_full: impl FnOnce() -> bool,
    ) -> Standing {
        if let Some(until) = self.gate.as_ref().and_then(|gate| gate.refuses(now)) {
            return Standing::Barred { until };
        }
        let places = self.endpoints.iter().enumerate();
        let mut within = places.filter(|(_, endpoint)| endpoint.is_in(now)).peekable();
        let is_out = within.peek().is_none();
        if is_out && !self.fail_open {
            return self.barred(now);
        }
        // Before it is out: fail-open has no more room than anyone. [TABLE-8]
        if is_full() {
            Standing::Full
        } else if is_out {
            Standing::Out
        } else if within.all(|(place, _)| is_cooling(entries, place, now)) {
            Standing::Cooling
        } else {
            Standing::Ready(load)
        }
    }

    /// With every endpoint out: until the first of them comes back, if it can.
    fn barred(&self, now: Instant) -> Standing {
        let usable = self.endpoints.iter().filter(|endpoint| endpoint.weight > 0);
        let back = usable.map(|endpoint| match endpoint.standing(now) {
            health::Standing::Ejected { until } => until,
            _ => now,
        });
        back.min()
            .map_or(Standing::Closed, |until| Standing::Barred { until })
    }

    /// Whether an endpoint is in that the request has not tried, and that is not cooling.
    pub(super) fn has_elsewhere(&self, now: Instant, wish: Wish<'_>) -> bool {
        self.endpoints.iter().enumerate().any(|(place, endpoint)| {
            !wish.tried.contains(place) && endpoint.is_in(now) && !is_cooling(wish.entries, place, now)
        })
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

    /// Takes a slot, the breaker's permit and an endpoint for one attempt. `None` when another request was faster: the
    /// cascade goes on.
    /// `waited` is a slot that was waited for.
    pub(super) fn claim(
        self: &Arc<Self>,
        now: Instant,
        waited: Option<Place>,
        wish: Wish<'_>,
        draw: Draw,
    ) -> Option<Claim> {
        let slot = Slot::take(self, waited, now)?;
        let usable = |(place, endpoint): (usize, &Arc<Endpoint>)| {
            let usable = if wish.fail_open {
                endpoint.weight > 0
            } else {
                endpoint.is_in(now)
            };
            let rank = (is_cooling(wish.entries, place, now), wish.tried.contains(place));
            let candidate = Candidate {
                in_flight: endpoint.in_flight(),
                weight: endpoint.weight_at(now),
            };
            usable.then_some((rank, candidate))
        };
        let standing = self.endpoints.iter().enumerate().map(usable);
        // Most providers have one endpoint, and then there is nothing to allocate.
        let (mut one, mut many) = ([None], Vec::new());
        let usable = if self.endpoints.len() == 1 {
            standing.for_each(|only| one = [only]);
            &mut one[..]
        } else {
            many.extend(standing);
            &mut many[..]
        };
        loop {
            // One that cools is worse than one that has been tried.
            let best = usable.iter().flatten().map(|(rank, _)| *rank).min()?;
            let best = usable.iter().map(|one| {
                one.filter(|(rank, _)| *rank == best)
                    .map(|(_, candidate)| candidate)
            });
            let by = By {
                now,
                endpoints: &self.endpoints,
                point: wish.point,
                draw,
            };
            let place = self.balancer.choose(best, by)?;
            let endpoint = &self.endpoints[place];
            let permit = if wish.fail_open {
                Ok(endpoint.acquire_fail_open())
            } else {
                endpoint.acquire(now)
            };
            let Ok(permit) = permit else {
                usable[place] = None;
                continue;
            };
            if wish.fail_open {
                self.metrics.fail_open_picks.inc();
            }
            let probing = wish.entries.get(place).and_then(|entry| entry.acquire(now));
            return Some(Claim::new(slot, (place, endpoint), permit, probing));
        }
    }

    /// Pays for a retry; `None`, which is counted, where the budget is used up.
    pub(super) fn pay(&self, now: Instant) -> Option<Charge> {
        let charge = self.purse.withdraw(now);
        if charge.is_none() {
            self.metrics.retries(RetryOutcome::Budget).inc();
        }
        charge
    }

    /// Sets the gauges to the present.
    pub(super) fn publish(&self, now: Instant) {
        let standing = self.gate.as_ref().map(|gate| gate.snapshot(now).standing);
        self.metrics.breaker.set(standing.map_or(0, gate::number));
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
    pub(super) fn steer(&self, now: Instant) {
        let concurrency = self.config.concurrency;
        if let Some(limit) = self.limit.as_ref().filter(|_| concurrency > 0)
            && let Some(steered) = limit.steered(now, concurrency)
        {
            self.slots.set_limit(steered);
        }
    }
}
