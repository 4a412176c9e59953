//! What one attempt holds of its provider and endpoint.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::cooldowns::Probing;
use super::endpoint::Endpoint;
use super::gate;
use super::provider::Provider;
use crate::policy::breaker;
use crate::policy::health::{Permit, Verdict};
use crate::policy::limiter::Sample;
use crate::policy::time::Instant;

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

/// A place in the provider's `concurrency`, the permit of its breaker, and the right to send one request by its rate.
/// Dropped, it gives back what was not used up; a permit that was not reported on is given back without a verdict.
#[derive(Debug)]
pub(super) struct Slot {
    place: Place,
    pass: Option<breaker::Permit>,
    reported: bool,
    /// Whether the rate has counted a request that was not sent yet.
    counted: bool,
}

impl Slot {
    /// Takes a place, unless one was waited for, and what else one request needs of the provider.
    pub(super) fn take(provider: &Arc<Provider>, place: Option<Place>, now: Instant) -> Option<Self> {
        let place = match place {
            Some(place) => place,
            None => provider.slots.take().then(|| Place::of(provider))?,
        };
        let mut slot = Self {
            place,
            pass: None,
            reported: true,
            counted: false,
        };
        if let Some(gate) = &provider.gate {
            slot.pass = Some(gate.acquire(now)?);
            slot.reported = false;
        }
        if let Some(limit) = &provider.limit {
            slot.counted = limit.take(now);
            if !slot.counted {
                return None;
            }
        }
        Some(slot)
    }

    fn provider(&self) -> &Arc<Provider> {
        &self.place.0
    }

    /// Has the breaker hear of the attempt.
    fn tell(
        &self,
        now: Instant,
        what: impl FnOnce(&mut breaker::Breaker, breaker::Permit) -> Option<breaker::Transition>,
    ) {
        let (Some(gate), Some(pass)) = (&self.provider().gate, self.pass) else {
            return;
        };
        if let Some(transition) = gate.with(|breaker| what(breaker, pass)) {
            gate::announce(&self.provider().name, &self.provider().metrics, &transition, now);
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
        if let Some(limit) = self.provider().limit.as_ref().filter(|_| self.counted) {
            limit.give_back();
        }
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
        self.slot.provider()
    }

    /// Takes the endpoint's place in flight beside what `slot` holds.
    pub(super) fn new(
        mut slot: Slot,
        (place, endpoint): (usize, &Arc<Endpoint>),
        permit: Option<Permit>,
        probing: Option<Probing>,
    ) -> Self {
        slot.counted = false;
        endpoint.in_flight.fetch_add(1, Ordering::Relaxed);
        endpoint.metrics.in_flight.inc();
        Self {
            slot,
            endpoint: Arc::clone(endpoint),
            permit,
            place,
            probing,
        }
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

    /// Tells the breaker what the attempt came to, once, and ends the probe of a cooldown.
    ///
    /// An endpoint that dies takes all its streams with it, and that is one failure of one endpoint: those that were
    /// begun before it was ejected say nothing more of its provider. [BREAKER-10]
    pub(super) fn report(&mut self, now: Instant, verdict: Verdict) {
        let known = verdict == Verdict::Failure && self.endpoint.was_ejected_since(self.permit);
        self.slot
            .report(now, if known { Verdict::Neutral } else { verdict });
        self.probing = None;
    }

    /// Tells the breaker that a committed attempt failed after all.
    pub(super) fn report_late_failure(&self, now: Instant) {
        if self.endpoint.was_ejected_since(self.permit) {
            return;
        }
        self.slot
            .tell(now, |breaker, pass| breaker.late_failure(now, pass));
    }

    /// Tells the breaker that a committed attempt ended as it should.
    pub(super) fn report_clean_end(&self) {
        if let (Some(gate), Some(pass)) = (&self.slot.provider().gate, self.slot.pass) {
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
