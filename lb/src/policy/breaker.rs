//! Leaves a whole provider alone while it fails, and finds out with a few requests whether it is back.
//!
//! Endpoint health takes single addresses out; the breaker answers for what they have in common: a key that was
//! revoked, a name that does not resolve, a service that is down behind every address.
//!
//! ```text
//!            run or ratio                  open_ms is over
//!   Closed ───────────────▶ Open ───────────────────────────▶ HalfOpen
//!     ▲                      ▲                                │    │
//!     │                      └────────── a probe fails ───────┘    │
//!     └──────────── as many probes as may run have succeeded ──────┘
//! ```
//!
//! *Open* means that requests are refused. Opening and closing begin a new *era*; a permit remembers its own, and what
//! an attempt of an older one reports changes nothing: it was sent to a provider that has been judged already.
//!
//! As with health, a success is known at the commit of a response and does not end a run of failures; its clean end
//! does.

use super::failures::Failures;
use super::health::Verdict;
use super::probes::Probes;
use super::time::Instant;

mod params;

pub use params::{Params, Settings};

/// Where the breaker is in its circle, and whether a request gets through.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Requests flow.
    Closed,
    /// Open no more, with a probe slot free: a request gets through.
    HalfOpen,
    /// Requests are refused.
    Open {
        /// When it becomes half-open.
        until: Instant,
    },
    /// Half-open with every probe slot taken: requests are refused.
    Probing,
}

/// What opened a breaker.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Cause {
    /// A run of failures.
    Consecutive,
    /// A half-open probe failed.
    HalfOpenFailure,
    /// Too many failures within the window.
    Ratio,
}

/// A change of state, other than the passing from open to half-open that time alone brings.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Transition {
    /// All is well again.
    Closed,
    /// Requests are refused from now on.
    Opened {
        /// Why.
        cause: Cause,
        /// Until when.
        until: Instant,
    },
}

/// The right to send one request to the provider. Each is to be given back once, by [`Breaker::release`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct Permit {
    era: u64,
    /// The lease that a half-open probe's slot belongs to; `None` for an ordinary request.
    probe: Option<u64>,
}

/// What a breaker looks like at an instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// Whether requests get through.
    pub standing: Standing,
    /// Failures since the last clean end.
    pub consecutive_failures: u32,
    /// Results within the window.
    pub window_volume: u32,
    /// Failures among them.
    pub window_failures: u32,
    /// Why it is not closed, if it is not.
    pub cause: Option<Cause>,
}

/// The circuit breaker of one provider.
#[derive(Clone, Debug)]
pub struct Breaker {
    params: Params,
    era: u64,
    /// `None` while closed.
    open: Option<Open>,
    failures: Failures,
    probes: Probes,
    /// Probes that succeeded since it opened.
    successes: u32,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    until: Instant,
    cause: Cause,
}

// === impl Permit ===

impl Permit {
    /// The permit of an ordinary request of this era.
    pub const fn ordinary(era: u64) -> Self {
        Self { era, probe: None }
    }
}

// === impl Breaker ===

impl Breaker {
    /// The breaker of a provider that nothing is known about: closed.
    pub fn new(params: Params) -> Self {
        let settings = params.settings();
        Self {
            era: 0,
            open: None,
            failures: Failures::new(settings.window),
            probes: Probes::new(settings.half_open_probes, settings.open),
            successes: 0,
            params,
        }
    }

    /// What it was set to.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Takes other settings on at once and keeps what was learned: run, counts, the end of being open.
    pub fn set_params(&mut self, params: Params) {
        let settings = params.settings();
        self.failures.resize(settings.window);
        self.probes.set(settings.half_open_probes, settings.open);
        self.params = params;
    }

    /// Whether requests get through at `now`.
    pub fn standing(&self, now: Instant) -> Standing {
        match self.open {
            None => Standing::Closed,
            Some(Open { until, .. }) if now < until => Standing::Open { until },
            Some(_) if self.probes.is_free(now) => Standing::HalfOpen,
            Some(_) => Standing::Probing,
        }
    }

    /// The era, while it is closed: then [`Permit::ordinary`] is what [`Breaker::acquire`] would give.
    pub fn closed_era(&self) -> Option<u64> {
        self.open.is_none().then_some(self.era)
    }

    /// Whether a clean end would change anything.
    pub fn has_run(&self) -> bool {
        self.failures.run() > 0
    }

    /// The permit for a request; `None` where it is refused.
    pub fn acquire(&mut self, now: Instant) -> Option<Permit> {
        match self.standing(now) {
            Standing::Closed => Some(Permit::ordinary(self.era)),
            Standing::HalfOpen => Some(Permit {
                era: self.era,
                probe: Some(self.probes.take(now)),
            }),
            Standing::Open { .. } | Standing::Probing => None,
        }
    }

    /// Reports what an attempt came to, at its commit or at its end before that.
    #[must_use]
    pub fn release(&mut self, now: Instant, permit: Permit, verdict: Verdict) -> Option<Transition> {
        if permit.era != self.era {
            return None;
        }
        match permit.probe {
            None => self.count(now, verdict),
            Some(lease) => self.end_probe(now, lease, verdict),
        }
    }

    /// A response that was committed, and counted as a success then, has broken.
    #[must_use]
    pub fn late_failure(&mut self, now: Instant, permit: Permit) -> Option<Transition> {
        if self.concerns(permit) {
            self.count(now, Verdict::Failure)
        } else {
            None
        }
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
            cause: self.open.map(|open| open.cause),
        }
    }

    /// Whether what becomes of a committed response is about the present, closed era.
    fn concerns(&self, permit: Permit) -> bool {
        // The probes whose successes began this era carry the one before it.
        self.open.is_none() && permit.era + u64::from(permit.probe.is_some()) == self.era
    }

    /// Counts a result of the closed state.
    fn count(&mut self, now: Instant, verdict: Verdict) -> Option<Transition> {
        if verdict == Verdict::Neutral {
            return None;
        }
        self.failures.record(now, verdict == Verdict::Failure);
        let excess = self.failures.excess(now, &self.params.settings().limits())?;
        Some(self.put_open(now, excess.into()))
    }

    /// Ends a half-open probe.
    fn end_probe(&mut self, now: Instant, lease: u64, verdict: Verdict) -> Option<Transition> {
        self.probes.give_back(lease);
        match verdict {
            Verdict::Neutral => None,
            Verdict::Failure => Some(self.put_open(now, Cause::HalfOpenFailure)),
            Verdict::Success => {
                self.successes += 1;
                if self.successes < self.params.settings().half_open_probes {
                    return None;
                }
                self.start_era();
                self.open = None;
                Some(Transition::Closed)
            }
        }
    }

    fn put_open(&mut self, now: Instant, cause: Cause) -> Transition {
        self.start_era();
        let until = now + self.params.settings().open;
        self.open = Some(Open { until, cause });
        Transition::Opened { cause, until }
    }

    /// Drops the whole history and everything that is still under way.
    fn start_era(&mut self) {
        self.era += 1;
        self.failures.clear();
        self.successes = 0;
        self.probes.reset();
    }
}

#[cfg(test)]
mod tests;
