//! One upstream service: its endpoints, its slots, its credentials.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::cooldowns::{Entry, Probing};
use super::endpoint::Endpoint;
use super::gate::{self, Gate};
use super::purse::{Charge, Purse};
use crate::config;
use crate::metrics::{ProviderMetrics, RetryOutcome};
use crate::policy::breaker;
use crate::policy::cascade::Standing;
use crate::policy::draw::Draw;
use crate::policy::health::{self, Permit, Verdict};
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
}

/// A set of a provider's endpoints by their place. Those from the 65th on are never in it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Tried(u64);

impl Tried {
    pub(super) fn insert(&mut self, place: usize) {
        self.0 |= bit(place);
    }

    fn contains(self, place: usize) -> bool {
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
        if let Some(until) = self.gate.as_ref().and_then(|gate| gate.refuses(now)) {
            return Standing::Barred { until };
        }
        let places = self.endpoints.iter().enumerate();
        let mut within = places.filter(|(_, endpoint)| endpoint.is_in(now)).peekable();
        if within.peek().is_none() {
            return if self.fail_open {
                Standing::Out
            } else {
                self.barred(now)
            };
        }
        if self.is_full() {
            Standing::Full
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
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Takes a slot, the breaker's permit and an endpoint for one attempt. `None` when another request was faster: the
    /// cascade goes on.
    pub(super) fn claim(self: &Arc<Self>, now: Instant, wish: Wish<'_>, draw: Draw) -> Option<Claim> {
        let slot = Slot::take(self, now)?;
        let usable = |(place, endpoint): (usize, &Arc<Endpoint>)| {
            let usable = if wish.fail_open {
                endpoint.weight > 0
            } else {
                endpoint.is_in(now)
            };
            let rank = (is_cooling(wish.entries, place, now), wish.tried.contains(place));
            let candidate = Candidate {
                in_flight: endpoint.in_flight(),
                weight: endpoint.weight,
            };
            usable.then_some((rank, candidate))
        };
        let mut usable: Vec<_> = self.endpoints.iter().enumerate().map(usable).collect();
        loop {
            // One that cools is worse than one that has been tried.
            let best = usable.iter().flatten().map(|(rank, _)| *rank).min()?;
            let best = usable.iter().map(|one| {
                one.filter(|(rank, _)| *rank == best)
                    .map(|(_, candidate)| candidate)
            });
            let place = select::least_inflight(best, draw)?;
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
            endpoint.in_flight.fetch_add(1, Ordering::Relaxed);
            endpoint.metrics.in_flight.inc();
            return Some(Claim {
                slot,
                endpoint: Arc::clone(endpoint),
                permit,
                place,
                probing: wish.entries.get(place).and_then(|entry| entry.acquire(now)),
            });
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

/// A place in the provider's `concurrency`, and the permit of its breaker. Dropped, it gives back both; a permit that
/// was not reported on is given back without a verdict.
#[derive(Debug)]
struct Slot {
    provider: Arc<Provider>,
    pass: Option<breaker::Permit>,
    reported: bool,
}

impl Slot {
    fn take(provider: &Arc<Provider>, now: Instant) -> Option<Self> {
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
        let mut slot = Self {
            provider: Arc::clone(provider),
            pass: None,
            reported: true,
        };
        if let Some(gate) = &provider.gate {
            slot.pass = Some(gate.acquire(now)?);
            slot.reported = false;
        }
        Some(slot)
    }

    /// Has the breaker hear of the attempt.
    fn tell(
        &self,
        now: Instant,
        what: impl FnOnce(&mut breaker::Breaker, breaker::Permit) -> Option<breaker::Transition>,
    ) {
        let (Some(gate), Some(pass)) = (&self.provider.gate, self.pass) else {
            return;
        };
        if let Some(transition) = gate.with(|breaker| what(breaker, pass)) {
            gate::announce(&self.provider.name, &self.provider.metrics, &transition, now);
        }
    }

    fn report(&mut self, now: Instant, verdict: Verdict) {
        if !std::mem::replace(&mut self.reported, true) {
            self.tell(now, |breaker, pass| breaker.release(now, pass, verdict));
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Neutral frees a half-open slot and judges nothing, so the time does not matter.
        self.report(Instant::default(), Verdict::Neutral);
        self.provider.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One attempt's hold on its provider and endpoint: a slot, a place in flight, the permits of breaker and health.
#[derive(Debug)]
pub struct Claim {
    slot: Slot,
    /// The endpoint that was chosen.
    pub endpoint: Arc<Endpoint>,
    pub(super) permit: Option<Permit>,
    /// The endpoint's place in its provider.
    pub(super) place: usize,
    /// Where this attempt finds out whether a cooldown is over.
    probing: Option<Probing>,
}

impl Claim {
    /// The provider that was claimed.
    pub fn provider(&self) -> &Arc<Provider> {
        &self.slot.provider
    }

    /// Tells the breaker what the attempt came to, once, and ends the probe of a cooldown.
    pub(super) fn report(&mut self, now: Instant, verdict: Verdict) {
        self.slot.report(now, verdict);
        self.probing = None;
    }

    /// Tells the breaker that a committed attempt failed after all.
    pub(super) fn report_late_failure(&self, now: Instant) {
        self.slot
            .tell(now, |breaker, pass| breaker.late_failure(now, pass));
    }

    /// Tells the breaker that a committed attempt ended as it should.
    pub(super) fn report_clean_end(&self) {
        if let (Some(gate), Some(pass)) = (&self.slot.provider.gate, self.slot.pass) {
            gate.clean_end(pass);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.endpoint.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.endpoint.metrics.in_flight.dec();
    }
}
