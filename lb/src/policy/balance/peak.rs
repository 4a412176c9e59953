//! How fast an endpoint has been of late, with its peaks.

use std::time::Duration;

use crate::policy::select::Candidate;
use crate::policy::time::Instant;

/// A moving average of one endpoint's latency that takes a peak over at once and forgets it slowly.
///
/// Quick to rise, because by the time an average has followed, the requests that should have gone elsewhere are
/// queueing. It falls with time alone as well, or an endpoint that was slow once and is chosen no more would never be
/// measured again.
///
/// A failure costs as much as an answer after [`PENALTY`], and fades likewise: what fails in a millisecond must not
/// look like what answers in one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peak {
    /// In seconds, as it was at `at`.
    latency: f64,
    at: Instant,
    /// In seconds, as it was at `failed`.
    penalty: f64,
    failed: Instant,
}

/// How long it takes a measurement, and a penalty, to fade to a third.
const TAU: Duration = Duration::from_secs(10);

/// What a failure counts as: longer than anybody waits for a first token.
const PENALTY: Duration = Duration::from_secs(30);

impl Peak {
    /// An answer was there `latency` after its attempt began.
    pub fn on_latency(&mut self, now: Instant, latency: Duration) {
        let (latency, left) = (latency.as_secs_f64(), fading(now.since(self.at)));
        self.latency = latency.max(self.latency * left + latency * (1.0 - left));
        self.at = self.at.max(now);
    }

    /// An attempt failed.
    pub fn on_failure(&mut self, now: Instant) {
        self.penalty = PENALTY.as_secs_f64();
        self.failed = self.failed.max(now);
    }

    /// What a request more would cost here, in seconds for a weight of 1; only to be compared.
    pub fn cost(&self, now: Instant, candidate: Candidate) -> f64 {
        let latency = self.latency * fading(now.since(self.at));
        let penalty = self.penalty * fading(now.since(self.failed));
        // Where nothing is known yet the load alone decides.
        let each = (latency + penalty).max(LEAST);
        each * (f64::from(candidate.in_flight) + 1.0) / f64::from(candidate.weight.max(1))
    }
}

/// What is taken for no latency at all, in seconds, so that load always counts.
const LEAST: f64 = 1e-6;

/// What is left of something after `span`.
fn fading(span: Duration) -> f64 {
    (-span.as_secs_f64() / TAU.as_secs_f64()).exp()
}

#[cfg(test)]
mod tests;
