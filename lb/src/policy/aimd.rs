//! The share of requests that try the preferred provider first.
//!
//! A provider of one's own gets slower as it gets busier, and a switch cannot answer that: thrown to the alternates, it
//! measures an idle provider, is thrown back, and hunts for ever. The stable answer is a split, so one number is
//! controlled instead: the share f in \[floor, 1\]. It falls by a factor when too many of the latest samples breached
//! the latency budget and rises by a step when few have for a whole dwell; between the two thresholds it holds, so that
//! noise does not move it.
//!
//! ```text
//!    rate > target              recovery < rate <= target         rate <= recovery for a dwell
//!    f := max(f·decay, floor)   hold                              f := min(f + step, 1)
//!    window cleared, gen. + 1                                     window kept
//! ```
//!
//! Every change up or down is followed by a dwell without another. Samples of attempts that began before a decrease say
//! nothing about the share after it: each attempt carries the [`Generation`] it began in, and one that ends in a later
//! generation is dropped. The floor keeps real traffic measuring; a pool with too little traffic to be judged is led
//! back up by time alone (*idle recovery*), worked out when the next request asks.

use super::draw::{Draw, Weyl};
use super::time::{Instant, nanos};

mod evidence;
mod params;
mod report;

use evidence::Evidence;
pub use params::{Params, Scope, Settings};
pub use report::{Change, Counted, Direction, Snapshot};

/// Which target a request begins at.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Start {
    /// At the first other target that can be attempted now.
    Alternate,
    /// At the preferred target, as without a controller.
    Preferred,
}

/// How an attempt on the preferred target ended, as far as the share goes.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Outcome {
    /// The first data frame came later than the latency budget, surely did not come within it, or the provider said
    /// that it is overloaded.
    Breach,
    /// The first data frame came within the latency budget.
    Healthy,
    /// Neither can be said; in neither numerator nor denominator.
    Unknown,
}

/// The era an attempt began in; a decrease and a resumption begin a new one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Generation(u64);

/// The controller of one priority pool.
#[derive(Clone, Debug)]
pub struct Share {
    params: Params,
    positions: Weyl,
    share: f64,
    generation: Generation,
    evidence: Evidence,
    /// Since when every judged window was at or under the recovery rate, without a step in between.
    healthy_since: Option<Instant>,
    /// The last change up or down.
    adjusted: Option<Instant>,
    /// When the last idle step was due.
    stepped: Option<Instant>,
    in_flight: u64,
    parked: bool,
}

// === impl Share ===

impl Share {
    /// A controller that has seen nothing: the share is 1, so nothing is diverted.
    ///
    /// `origin` is where the sequence of request positions begins.
    pub fn new(params: Params, origin: Draw) -> Self {
        let evidence = Evidence::new(params.settings());
        Self {
            params,
            positions: Weyl::new(origin),
            share: 1.0,
            generation: Generation(0),
            evidence,
            healthy_since: None,
            adjusted: None,
            stepped: None,
            in_flight: 0,
            parked: false,
        }
    }

    /// What it was set to.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Where an eligible request begins, and the idle step that was due before it.
    ///
    /// To be asked once a request, before its first attempt: a retry keeps the request's answer.
    #[must_use]
    pub fn begin(&mut self, now: Instant) -> (Start, Option<Change>) {
        let position = self.positions.next();
        self.begin_at(now, position)
    }

    /// The same for a request whose position is its conversation's, and which takes none of the sequence. While the
    /// share stays, a conversation begins where it began; as the share moves, only those move whose positions it passes.
    #[must_use]
    pub fn begin_at(&mut self, now: Instant, position: Draw) -> (Start, Option<Change>) {
        let change = self.take_idle_steps(now);
        let start = if position.value() < self.share {
            Start::Preferred
        } else {
            Start::Alternate
        };
        self.check_invariants();
        (start, change)
    }

    /// An attempt on the preferred target has been committed to an endpoint.
    ///
    /// Each call is to be answered by one [`Self::on_outcome`] with what this returns.
    #[must_use]
    pub fn attempt(&mut self) -> Generation {
        self.in_flight += 1;
        self.generation
    }

    /// An attempt that began in `generation` has been decided.
    #[must_use]
    pub fn on_outcome(
        &mut self,
        now: Instant,
        generation: Generation,
        outcome: Outcome,
    ) -> (Counted, Option<Change>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        // While parked the preferred target is on its way out: what its last attempts say is about that.
        if self.parked || generation != self.generation {
            return (Counted::Stale, None);
        }
        let (counted, breach) = match outcome {
            Outcome::Breach => (Counted::Breach, true),
            Outcome::Healthy => (Counted::Healthy, false),
            Outcome::Unknown => return (Counted::Unknown, None),
        };
        self.evidence.record(now, breach);
        let change = self.decide(now);
        self.check_invariants();
        (counted, change)
    }

    /// Puts the controller out of use, keeping what it has learned.
    pub const fn park(&mut self) {
        self.parked = true;
    }

    /// Puts a parked controller back into use: the share and the last adjustment are kept, the samples are not.
    ///
    /// Time spent parked counts for idle recovery. One that is not parked is left alone.
    pub fn resume(&mut self) {
        if self.parked {
            self.parked = false;
            self.start_generation();
        }
    }

    /// What it looks like at `now`; idle steps that are due are worked out but not taken.
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        Snapshot {
            share: self.idle_steps(now).map_or(self.share, |(share, _)| share),
            generation: self.generation.0,
            window_samples: self.evidence.samples(),
            window_breach_rate: self.evidence.breach_rate(),
            in_flight: self.in_flight,
            parked: self.parked,
            since_adjustment: self.adjusted.map(|at| now.since(at)),
        }
    }

    /// Judges the window after a sample.
    fn decide(&mut self, now: Instant) -> Option<Change> {
        let settings = self.params.settings();
        let rate = self.evidence.breach_rate()?;
        if self.evidence.samples() < settings.min_samples as usize {
            return None;
        }
        let settled = self.adjusted.is_none_or(|at| now.since(at) >= settings.dwell);
        if rate > settings.breach_rate_target {
            self.healthy_since = None;
            let lower = (self.share * settings.share_decay).max(settings.share_floor);
            if !settled || lower >= self.share {
                return None;
            }
            self.adjusted = Some(now);
            self.start_generation();
            return Some(self.set(Direction::Down, lower, Some(rate)));
        }
        if rate > settings.recovery_breach_rate {
            self.healthy_since = None;
            return None;
        }
        let since = *self.healthy_since.get_or_insert(now);
        if self.share >= 1.0 || !settled || now.since(since) < settings.dwell {
            return None;
        }
        let higher = raised(self.share, settings.share_step, 1);
        self.adjusted = Some(now);
        self.healthy_since = Some(now);
        Some(self.set(Direction::Up, higher, Some(rate)))
    }

    /// Takes the idle steps that are due.
    fn take_idle_steps(&mut self, now: Instant) -> Option<Change> {
        let (share, due) = self.idle_steps(now)?;
        self.stepped = Some(due);
        // No sample stood behind this step, so a run of healthy windows has to prove itself from here again; where
        // there was no run, silence does not begin one.
        self.healthy_since = self.healthy_since.map(|_| now);
        Some(self.set(Direction::Idle, share, None))
    }

    /// The share after the idle steps due at `now`, and when the last of them was due; `None` if none is.
    fn idle_steps(&self, now: Instant) -> Option<(f64, Instant)> {
        let settings = self.params.settings();
        let period = settings.idle_recovery.filter(|_| self.share < 1.0)?;
        // A share below 1 was lowered by an adjustment, so there is always something to count from.
        let from = self
            .adjusted
            .max(self.stepped)
            .max(self.evidence.enough_until())?;
        let steps = nanos(now.since(from)) / nanos(period);
        if steps == 0 {
            return None;
        }
        // Counted from when the last step was due, not from when it is noticed, so that the phase is kept.
        let due = Instant::from_nanos(from.as_nanos() + steps * nanos(period));
        Some((raised(self.share, settings.share_step, steps), due))
    }

    /// Moves the share and says so.
    fn set(&mut self, direction: Direction, to: f64, breach_rate: Option<f64>) -> Change {
        let from = std::mem::replace(&mut self.share, to);
        Change {
            direction,
            from,
            to,
            breach_rate,
        }
    }

    /// Drops the samples and everything that is still under way.
    fn start_generation(&mut self) {
        self.evidence.clear_window();
        self.healthy_since = None;
        self.generation.0 += 1;
    }

    /// Relations that hold between any two calls.
    fn check_invariants(&self) {
        let settings = self.params.settings();
        debug_assert!(
            self.share >= settings.share_floor && self.share <= 1.0,
            "the share left its bounds"
        );
        debug_assert!(
            self.share >= 1.0 || self.adjusted.is_some(),
            "the share fell without an adjustment"
        );
        debug_assert!(
            self.evidence.samples() <= settings.window_samples as usize,
            "the window is over-full"
        );
    }
}

/// `share` after `steps` steps up, at most 1.
fn raised(share: f64, step: f64, steps: u64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact up to 2^53 steps, and the sum stops at 1 long before"
    )]
    let sum = share + step * steps as f64;
    // Twenty steps of 0.05 add up to a hair under 1, which would divert one request in 10^15 and read as "not back".
    if sum > 1.0 - 1e-9 { 1.0 } else { sum }
}

#[cfg(test)]
mod tests;
