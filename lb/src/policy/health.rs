//! Takes an endpoint out of the balancer's choice while it fails, and finds out cheaply when it is back.
//!
//! Passive: it knows only what real requests met. An endpoint is ejected by a run of failures *or* by a ratio over a
//! window, because each is blind where the other sees: a run never forms when every second request fails, and a ratio
//! has to wait for enough requests when all of them do.
//!
//! ```text
//!             run or ratio                    the time is up
//!   Healthy ───────────────▶ Ejected ─────────────────────────▶ HalfOpen
//!      ▲                        ▲                                │    │
//!      │                        └──────── a probe fails ─────────┘    │
//!      └───────────────────────── a probe succeeds ───────────────────┘
//! ```
//!
//! Half-open needs no prober: the next requests are the probes, a few at a time, each with a permit. Ejection and
//! recovery begin a new *generation*; a permit remembers its own, and a verdict that comes with an older one judges a
//! state that is over, so it changes nothing.
//!
//! What the kernel sees on the wire ([`Health::eject`]) ejects as well, for a span that comes with it and that is short:
//! a restart of a second must not cost thirty. Requests are too dear to find out that soon whether anybody is there, so
//! such an ejection ends in two steps: a bare connection by whoever drives this, for which it waits as long as it takes
//! ([`Standing::Unproven`]), then the requests' probes.
//!
//! A success is known when the response is committed, long before its stream ends well. So a success counts in the
//! ratio but does not end a run; a clean end does. Otherwise an endpoint that cuts every stream after its first token
//! would never be ejected.

use super::draw::Draw;
use super::failures::Failures;
use super::probes::Probes;
use super::time::Instant;

mod active;
mod kernel;
mod params;
mod report;

use active::Streaks;
pub use active::{Active, Probed};
pub use params::{Params, Settings};
pub use report::{Cause, KernelCause, Snapshot, State, Transition};

/// What an ending says about whoever gave it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Verdict {
    /// It does not work.
    Failure,
    /// Nothing.
    Neutral,
    /// It works.
    Success,
}

/// Whether an endpoint can be chosen at an instant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Out until then.
    Ejected {
        /// When it becomes half-open.
        until: Instant,
    },
    /// The ejection is over and a probe slot is free: it can be chosen.
    HalfOpen,
    /// In.
    Healthy,
    /// Half-open with every probe slot taken: it cannot be chosen.
    Probing,
    /// The time of an ejection that the kernel caused is up, and no connection has shown yet that anybody is there: it
    /// cannot be chosen.
    Unproven,
}

/// The right to send one request to the endpoint. Each is to be given back once, by [`Health::release`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct Permit {
    generation: u64,
    /// The lease that a half-open probe's slot belongs to; `None` for an ordinary request.
    probe: Option<u64>,
}

/// How an ejection that becomes due is to be carried out.
#[derive(Clone, Copy, Debug)]
pub struct Ejection {
    /// Whether the provider can spare one more endpoint ([`Params::may_eject`]); otherwise it stays in for now.
    pub allowed: bool,
    /// Lengthens the ejection by up to a tenth, so that endpoints that fell together do not return together.
    pub jitter: Draw,
}

/// The passive health of one endpoint.
#[derive(Clone, Debug)]
pub struct Health {
    params: Params,
    generation: u64,
    /// `None` while healthy.
    out: Option<Out>,
    /// Ejections in a row, but for those that the kernel caused.
    ejections: u32,
    failures: Failures,
    probes: Probes,
    /// When it came back, or came to be.
    since: Option<Instant>,
    streaks: Streaks,
}

/// An ejection, or what follows it until the endpoint is healthy again.
#[derive(Clone, Copy, Debug)]
struct Out {
    until: Instant,
    cause: Cause,
    /// Whether it takes a connection, after `until`, to become half-open.
    unproven: bool,
}

// === impl Health ===

impl Health {
    /// An endpoint that nothing is known about: healthy.
    pub fn new(params: Params) -> Self {
        let settings = params.settings();
        let probes = Probes::new(settings.half_open_probes, settings.ejection);
        let failures = Failures::new(settings.window);
        Self {
            params,
            generation: 0,
            out: None,
            ejections: 0,
            failures,
            probes,
            since: None,
            streaks: Streaks::default(),
        }
    }

    /// The same of an endpoint that is new among others: it begins with little weight.
    #[must_use]
    pub const fn joined(mut self, now: Instant) -> Self {
        self.since = Some(now);
        self
    }

    /// What it was set to.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Takes other settings on at once and keeps what was learned: runs, counts, an ejection and its end.
    pub fn set_params(&mut self, params: Params) {
        let settings = params.settings();
        self.failures.resize(settings.window);
        self.probes.set(settings.half_open_probes, settings.ejection);
        self.params = params;
    }

    /// Whether it can be chosen at `now`.
    pub fn standing(&self, now: Instant) -> Standing {
        match self.out {
            None => Standing::Healthy,
            Some(Out { until, .. }) if now < until => Standing::Ejected { until },
            Some(Out { unproven: true, .. }) => Standing::Unproven,
            Some(_) if self.probes.is_free(now) => Standing::HalfOpen,
            Some(_) => Standing::Probing,
        }
    }

    /// The permit for a request; `None` if the endpoint is ejected or has no probe slot free.
    pub fn acquire(&mut self, now: Instant) -> Option<Permit> {
        match self.standing(now) {
            Standing::Healthy => Some(Permit {
                generation: self.generation,
                probe: None,
            }),
            Standing::HalfOpen => Some(Permit {
                generation: self.generation,
                probe: Some(self.probes.take(now)),
            }),
            Standing::Ejected { .. } | Standing::Probing | Standing::Unproven => None,
        }
    }

    /// The permit for a request that has nowhere else to go, whatever the standing.
    ///
    /// It takes no probe slot. What such a request finds out counts only if the endpoint is healthy: an ejection ends
    /// by its time and a probe, so that a fail-open flood cannot readmit an endpoint by one lucky answer.
    pub fn fail_open(&self) -> Permit {
        Permit {
            generation: self.generation,
            probe: None,
        }
    }

    /// Gives a permit back with the attempt's one verdict; neutral if it was dropped.
    #[must_use]
    pub fn release(
        &mut self,
        now: Instant,
        permit: Permit,
        verdict: Verdict,
        ejection: Ejection,
    ) -> Option<Transition> {
        if verdict == Verdict::Success {
            self.streaks.answered(now);
        }
        if permit.generation != self.generation {
            return None;
        }
        let transition = match (self.out, permit.probe) {
            (None, _) => self.count(now, verdict, ejection),
            (Some(_), Some(lease)) => self.end_probe(now, lease, verdict, ejection),
            (Some(_), None) => None,
        };
        self.check_invariants();
        transition
    }

    /// A response that was committed, and counted as a success then, has broken.
    #[must_use]
    pub fn late_failure(&mut self, now: Instant, permit: Permit, ejection: Ejection) -> Option<Transition> {
        let transition = if self.concerns(permit) {
            self.count(now, Verdict::Failure, ejection)
        } else {
            None
        };
        self.check_invariants();
        transition
    }

    /// A response has ended as it should: the run of failures is over.
    pub fn clean_end(&mut self, permit: Permit) {
        if self.concerns(permit) {
            self.failures.clean_end();
        }
    }

    /// What it looks like at `now`.
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        let counts = self.failures.counts(now);
        Snapshot {
            standing: self.standing(now),
            consecutive_failures: self.failures.run(),
            window_volume: counts.volume,
            window_failures: counts.failures,
            ejections: self.ejections,
            cause: self.out.map(|out| out.cause),
        }
    }

    /// Whether what becomes of a committed response is about the present, healthy state.
    fn concerns(&self, permit: Permit) -> bool {
        // The probe whose success began this generation carries the one before it.
        let since = if permit.probe.is_some() {
            permit.generation + 1
        } else {
            permit.generation
        };
        self.out.is_none() && since == self.generation
    }

    /// Counts a result of the healthy state.
    fn count(&mut self, now: Instant, verdict: Verdict, ejection: Ejection) -> Option<Transition> {
        if verdict == Verdict::Neutral {
            return None;
        }
        self.failures.record(now, verdict == Verdict::Failure);
        let excess = self.failures.excess(now, &self.params.settings().limits());
        let cause = excess.filter(|_| ejection.allowed)?.into();
        Some(self.put_out(now, State::Healthy, cause, ejection.jitter))
    }

    /// Ends a half-open probe.
    fn end_probe(
        &mut self,
        now: Instant,
        lease: u64,
        verdict: Verdict,
        ejection: Ejection,
    ) -> Option<Transition> {
        self.probes.give_back(lease);
        match verdict {
            Verdict::Neutral => None,
            // It is out already, so the bound on how many may be out does not keep it in.
            Verdict::Failure => {
                Some(self.put_out(now, State::HalfOpen, Cause::HalfOpenFailure, ejection.jitter))
            }
            Verdict::Success => Some(self.come_back(now, State::HalfOpen)),
        }
    }

    fn come_back(&mut self, now: Instant, from: State) -> Transition {
        self.start_generation();
        self.out = None;
        self.ejections = 0;
        self.since = Some(now);
        Transition {
            from,
            to: State::Healthy,
            cause: None,
            until: None,
        }
    }

    fn put_out(&mut self, now: Instant, from: State, cause: Cause, jitter: Draw) -> Transition {
        self.ejections = self.ejections.saturating_add(1);
        let settings = self.params.settings();
        let span = settings
            .ejection
            .saturating_mul(self.ejections)
            .min(settings.max_ejection);
        let until = now + span.saturating_add(span.mul_f64(jitter.value() / 10.0));
        let out = Out {
            until,
            cause,
            unproven: false,
        };
        self.go_out(from, out)
    }

    fn go_out(&mut self, from: State, out: Out) -> Transition {
        self.start_generation();
        self.streaks.ejected();
        self.out = Some(out);
        Transition {
            from,
            to: State::Ejected,
            cause: Some(out.cause),
            until: Some(out.until),
        }
    }

    /// Whether the endpoint was ejected after the request of `permit` was sent, and is still out: what becomes of that
    /// request says nothing new.
    pub fn was_ejected_since(&self, permit: Permit) -> bool {
        self.out.is_some() && permit.generation != self.generation
    }

    /// Drops the whole history and everything that is still under way.
    fn start_generation(&mut self) {
        self.generation += 1;
        self.failures.clear();
        self.probes.reset();
    }

    /// Relations that hold between any two calls.
    fn check_invariants(&self) {
        debug_assert!(
            self.out.is_some() || self.ejections == 0,
            "ejections in a row end with recovery"
        );
    }
}

#[cfg(test)]
mod tests;
