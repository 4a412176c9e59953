//! What probes say, and how an endpoint that is back gets its weight.
//!
//! A probe knows less than a request: whether somebody answers, not whether the work gets done. So it never counts in
//! the ratio, it takes a row of them to change anything, and an endpoint that is out for what requests met comes back by
//! them only when its time is up. What they are good for is an endpoint that no request goes to.

use std::time::Duration;

use super::{Cause, Ejection, Health, Standing, State, Transition};
use crate::policy::time::Instant;

/// What it takes of probes to change anything.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Active {
    /// Good ones in a row that readmit; at least 1.
    pub healthy_after: u32,
    /// Bad ones in a row that eject; at least 1.
    pub unhealthy_after: u32,
    /// Between two probes: real traffic that was answered within this time outweighs a probe that was not.
    pub interval: Duration,
}

/// What a probe came to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Probed {
    /// Another answer than was expected, or none.
    Bad,
    /// What was expected.
    Good,
    /// It was not let in: that is a fault of the configuration, and says nothing about the endpoint.
    Misconfigured,
    /// Nothing in time.
    TimedOut,
}

/// The rows of probes, and what they are weighed against.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Streaks {
    good: u32,
    bad: u32,
    misconfigured: bool,
    /// When a request was last answered.
    answered: Option<Instant>,
}

impl Streaks {
    pub(super) fn answered(&mut self, now: Instant) {
        self.answered = self.answered.max(Some(now));
    }

    /// What was good before an ejection is no reason to end it.
    pub(super) const fn ejected(&mut self) {
        self.good = 0;
    }
}

impl Health {
    /// A probe came to this. Ejects, readmits, or does nothing yet.
    #[must_use]
    pub fn on_probe(&mut self, now: Instant, probed: Probed, ejection: Ejection) -> Option<Transition> {
        let active = self.params.settings().active?;
        self.streaks.misconfigured = probed == Probed::Misconfigured;
        let transition = match probed {
            Probed::Misconfigured => None,
            Probed::TimedOut if self.answered_within(now, active.interval) => None,
            Probed::Bad | Probed::TimedOut => {
                self.streaks.good = 0;
                self.streaks.bad = self.streaks.bad.saturating_add(1);
                (self.streaks.bad >= active.unhealthy_after)
                    .then(|| self.fail_by_probe(now, ejection))
                    .flatten()
            }
            Probed::Good => {
                self.streaks.bad = 0;
                self.streaks.good = self.streaks.good.saturating_add(1);
                (self.streaks.good >= active.healthy_after)
                    .then(|| self.recover_by_probe(now))
                    .flatten()
            }
        };
        self.check_invariants();
        transition
    }

    /// Whether probes are not let in, so that nobody knows what they would have found.
    pub const fn is_misconfigured(&self) -> bool {
        self.streaks.misconfigured
    }

    /// The part of its weight that it has at `now`, in (0, 1]: after it came back it grows with time.
    pub fn ramp(&self, now: Instant) -> f64 {
        let Some((span, since)) = self.params.settings().slow_start.zip(self.since) else {
            return 1.0;
        };
        (now.since(since).as_secs_f64() / span.as_secs_f64()).clamp(LEAST, 1.0)
    }

    fn answered_within(&self, now: Instant, span: Duration) -> bool {
        self.streaks.answered.is_some_and(|at| now.since(at) < span)
    }

    fn fail_by_probe(&mut self, now: Instant, ejection: Ejection) -> Option<Transition> {
        let from = match self.standing(now) {
            Standing::Healthy if ejection.allowed => State::Healthy,
            // It is out already, so the bound on how many may be out does not keep it in.
            Standing::HalfOpen | Standing::Probing => State::HalfOpen,
            Standing::Healthy | Standing::Ejected { .. } | Standing::Unproven => return None,
        };
        Some(self.put_out(now, from, Cause::Probe, ejection.jitter))
    }

    fn recover_by_probe(&mut self, now: Instant) -> Option<Transition> {
        let from = match (self.standing(now), self.out?.cause) {
            (Standing::HalfOpen | Standing::Probing, _) => State::HalfOpen,
            (_, Cause::Kernel(_) | Cause::Probe) => State::Ejected,
            // Requests have found what no probe looks for.
            (_, Cause::Consecutive | Cause::HalfOpenFailure | Cause::Ratio) => return None,
        };
        Some(self.come_back(now, from))
    }
}

/// The part of its weight with which an endpoint begins: some requests have to go there, or nothing would be learned.
const LEAST: f64 = 0.01;
