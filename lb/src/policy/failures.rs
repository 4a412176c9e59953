//! The failures of an endpoint or of a provider: their run, their part of all results, and when either is too much.

use std::time::Duration;

use super::time::Instant;
use super::window::{Counts, Window};
use super::{Bounds, breaker, health};

#[cfg(test)]
mod tests;

/// When failures are too many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limits {
    /// So many in a row; at least 1.
    pub(super) consecutive_failures: u32,
    /// This part of the results within the window; above 0, at most 1.
    pub(super) failure_ratio: f64,
    /// With fewer results within the window the ratio says nothing; at least 1.
    pub(super) failure_min_volume: u32,
    /// The span the ratio is taken over; 1 s to 1 h.
    pub(super) window: Duration,
}

impl Limits {
    /// Names each that is out of bounds by its key.
    pub(super) fn check(&self, bounds: &mut Bounds) {
        bounds.require(
            self.consecutive_failures >= 1,
            "consecutive_failures",
            "be at least 1",
        );
        let ratio = self.failure_ratio;
        bounds.require(ratio > 0.0 && ratio <= 1.0, "failure_ratio", "lie in (0, 1]");
        bounds.require(
            self.failure_min_volume >= 1,
            "failure_min_volume",
            "be at least 1",
        );
        let window = Duration::from_secs(1)..=Duration::from_hours(1);
        bounds.require(
            window.contains(&self.window),
            "window_ms",
            "lie in [1000, 3600000]",
        );
    }
}

/// What there is too much of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Excess {
    /// A run of failures.
    Consecutive,
    /// Their part within the window.
    Ratio,
}

impl From<Excess> for health::Cause {
    fn from(excess: Excess) -> Self {
        match excess {
            Excess::Consecutive => Self::Consecutive,
            Excess::Ratio => Self::Ratio,
        }
    }
}

impl From<Excess> for breaker::Cause {
    fn from(excess: Excess) -> Self {
        match excess {
            Excess::Consecutive => Self::Consecutive,
            Excess::Ratio => Self::Ratio,
        }
    }
}

/// What has been counted since the state that it judges began.
#[derive(Clone, Debug)]
pub(super) struct Failures {
    run: u32,
    /// Whether anything failed at all; until then nothing can be too much.
    any: bool,
    window: Window,
}

impl Failures {
    /// None yet, for a ratio over `window`.
    pub(super) fn new(window: Duration) -> Self {
        Self {
            run: 0,
            any: false,
            window: Window::new(window),
        }
    }

    /// Takes another window on at once and keeps what it can of the counts.
    pub(super) fn resize(&mut self, window: Duration) {
        self.window.resize(window);
    }

    /// Counts a result.
    pub(super) fn record(&mut self, now: Instant, failed: bool) {
        self.window.record(now, failed);
        if failed {
            self.run = self.run.saturating_add(1);
            self.any = true;
        }
    }

    /// A response has ended as it should: the run is over.
    pub(super) fn clean_end(&mut self) {
        self.run = 0;
    }

    /// Failures since the last clean end.
    pub(super) fn run(&self) -> u32 {
        self.run
    }

    /// What the window holds.
    pub(super) fn counts(&self, now: Instant) -> Counts {
        self.window.counts(now)
    }

    /// What of `limits` is reached. To be asked after a success too: it may be the one that makes the volume enough to
    /// judge the ratio by.
    pub(super) fn excess(&self, now: Instant, limits: &Limits) -> Option<Excess> {
        if !self.any {
            return None;
        }
        if self.run >= limits.consecutive_failures {
            return Some(Excess::Consecutive);
        }
        let counts = self.window.counts(now);
        let ratio = f64::from(counts.failures) / f64::from(counts.volume.max(1));
        let judged = counts.volume >= limits.failure_min_volume && ratio >= limits.failure_ratio;
        judged.then_some(Excess::Ratio)
    }

    /// Forgets all of it.
    pub(super) fn clear(&mut self) {
        self.run = 0;
        self.any = false;
        self.window.clear();
    }
}
