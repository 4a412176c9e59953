//! How many requests a second.

use std::time::Duration;

use super::time::Instant;
use super::{Bounds, OutOfBounds};

/// Settings of a token bucket, not yet checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Requests a second in the long run; above 0.
    pub requests_per_second: f64,
    /// Requests at once after a pause; at least 1.
    pub burst: u32,
}

/// Settings within their bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params(Settings);

impl Params {
    /// Checks `settings`; every setting that is out of bounds is named.
    pub fn new(settings: Settings) -> Result<Self, Vec<OutOfBounds>> {
        let mut bounds = Bounds::default();
        let rate = settings.requests_per_second;
        bounds.require(
            rate.is_finite() && rate > 0.0,
            "requests_per_second",
            "be above 0",
        );
        bounds.require(settings.burst >= 1, "burst", "be at least 1");
        bounds.finish(Self(settings))
    }
}

/// A token bucket: full at first, one token a request, refilled at the rate.
///
/// The rate may be lowered to a part of itself ([`super::limiter`]); the size is not, since a burst after a pause is not
/// what overloads anyone for long.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    params: Params,
    /// What is in it at `at`.
    tokens: f64,
    at: Instant,
}

impl Bucket {
    /// A full one.
    pub fn new(params: Params, now: Instant) -> Self {
        let tokens = f64::from(params.0.burst);
        Self {
            params,
            tokens,
            at: now,
        }
    }

    /// Takes other settings on at once. What is in it stays, but for what no longer fits; `factor` is the part of the
    /// rate that held until now.
    pub fn set_params(&mut self, params: Params, now: Instant, factor: f64) {
        self.fill(now, factor);
        self.tokens = self.tokens.min(f64::from(params.0.burst));
        self.params = params;
    }

    /// How long until there is a token, at this part of the rate; zero where there is one.
    pub fn wait(&self, now: Instant, factor: f64) -> Duration {
        let missing = 1.0 - self.level(now, factor);
        if missing <= TINY {
            return Duration::ZERO;
        }
        Duration::try_from_secs_f64(missing / (self.rate() * factor)).unwrap_or(Duration::MAX)
    }

    /// Takes a token, if there is one.
    pub fn take(&mut self, now: Instant, factor: f64) -> bool {
        self.fill(now, factor);
        let is_there = 1.0 - self.tokens <= TINY;
        if is_there {
            self.tokens = (self.tokens - 1.0).max(0.0);
        }
        is_there
    }

    /// Puts a token back, of a request that was not sent after all.
    pub fn give_back(&mut self) {
        self.tokens = (self.tokens + 1.0).min(f64::from(self.params.0.burst));
    }

    /// Tokens in it.
    pub fn level(&self, now: Instant, factor: f64) -> f64 {
        let gained = now.since(self.at).as_secs_f64() * self.rate() * factor;
        (self.tokens + gained).min(f64::from(self.params.0.burst))
    }

    /// What has come in since the last time, which was at this part of the rate, is from now on counted as there: a
    /// factor that changes later does not change what was.
    pub fn fill(&mut self, now: Instant, factor: f64) {
        self.tokens = self.level(now, factor);
        self.at = self.at.max(now);
    }

    const fn rate(&self) -> f64 {
        self.params.0.requests_per_second
    }
}

/// What sums of fractions are off by at most: a request a hundred millionth too early is not worth a wait.
const TINY: f64 = 1e-9;

#[cfg(test)]
mod tests;
