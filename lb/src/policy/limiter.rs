//! Lowers a limit while the provider is in trouble, and raises it again slowly.
//!
//! Two averages are kept, of the part of attempts that failed and of the time to their commit, each weighed by how long
//! ago: w = exp(−Δt/τ), average = average·w + value·(1−w). While either is too high the *factor* is multiplied by
//! `decrease_factor`, once a second at most; while neither is, it rises with time. What is limited is the configured
//! rate times the factor.
//!
//! A provider that says with a 429 when to come back is taken at its word: until then the factor is `min_factor`,
//! whatever the averages say, and from there it rises.

use std::time::Duration;

use super::time::Instant;

mod params;

pub use params::{Params, Settings};

/// The factor of one limit.
#[derive(Clone, Debug)]
pub struct Limiter {
    params: Params,
    /// Part of attempts that failed.
    errors: f64,
    /// Seconds to the commit; `None` before the first.
    latency: Option<f64>,
    /// When the averages were last brought up to date.
    at: Instant,
    /// The factor, as it was at `set`.
    factor: f64,
    set: Instant,
    decreased: Option<Instant>,
    /// Until when the provider asked to be left alone.
    until: Instant,
}

/// What one attempt said about the load on its provider.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    /// It was committed after this time.
    Committed(Duration),
    /// It failed, or there was no room for it.
    Failed,
}

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Snapshot {
    /// Part of the configured limit that holds.
    pub factor: f64,
    /// Average part of attempts that failed.
    pub error_rate: f64,
    /// Average time to the commit, if there was one.
    pub latency: Option<Duration>,
    /// Until when the provider asked to be left alone, while it lasts.
    pub asked_until: Option<Instant>,
}

impl Limiter {
    /// The whole limit, with nothing known.
    pub fn new(params: Params, now: Instant) -> Self {
        Self {
            params,
            errors: 0.0,
            latency: None,
            at: now,
            factor: 1.0,
            set: now,
            decreased: None,
            until: Instant::default(),
        }
    }

    /// Takes other settings on at once and keeps what was learned.
    pub fn set_params(&mut self, params: Params, now: Instant) {
        self.settle(now);
        self.params = params;
        self.factor = self.factor.max(params.settings().min_factor);
    }

    /// The part of the configured limit that holds at `now`.
    pub fn factor(&self, now: Instant) -> f64 {
        let settings = self.params.settings();
        if now < self.until {
            return settings.min_factor;
        }
        if self.is_in_trouble() {
            return self.factor;
        }
        let since = self.set.max(self.until);
        (self.factor + settings.recover_per_second * now.since(since).as_secs_f64()).min(1.0)
    }

    /// Learns from an attempt that ended or was committed.
    pub fn on_sample(&mut self, now: Instant, sample: Sample) {
        // What time has changed was under the averages as they were.
        self.settle(now);
        let settings = *self.params.settings();
        let left = (-now.since(self.at).as_secs_f64() / settings.tau.as_secs_f64()).exp();
        self.at = self.at.max(now);
        let failed = f64::from(u8::from(sample == Sample::Failed));
        self.errors = self.errors * left + failed * (1.0 - left);
        if let Sample::Committed(latency) = sample {
            let latency = latency.as_secs_f64();
            self.latency = Some(
                self.latency
                    .map_or(latency, |before| before * left + latency * (1.0 - left)),
            );
        }
        let may = self.decreased.is_none_or(|before| now.since(before) >= PACE);
        if may && now >= self.until && self.is_in_trouble() {
            self.factor = (self.factor * settings.decrease_factor).max(settings.min_factor);
            self.decreased = Some(now);
        }
    }

    /// The provider answered 429 and asked to be left alone for `span`. Nothing where that is not to be heeded.
    pub fn on_retry_after(&mut self, now: Instant, span: Duration) {
        let settings = self.params.settings();
        if !settings.honor_retry_after || span.is_zero() {
            return;
        }
        let span = settings.max_retry_after.map_or(span, |most| span.min(most));
        self.factor = settings.min_factor;
        self.set = self.set.max(now);
        self.until = self.until.max(now + span);
    }

    /// How it stands at `now`.
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        Snapshot {
            factor: self.factor(now),
            error_rate: self.errors,
            latency: self.latency.map(Duration::from_secs_f64),
            asked_until: Some(self.until).filter(|until| now < *until),
        }
    }

    fn is_in_trouble(&self) -> bool {
        let settings = self.params.settings();
        let slow = settings.max_latency.zip(self.latency);
        self.errors > settings.max_error_rate
            || slow.is_some_and(|(most, latency)| latency > most.as_secs_f64())
    }

    fn settle(&mut self, now: Instant) {
        self.factor = self.factor(now);
        self.set = self.set.max(now);
    }
}

/// The shortest time between two decreases.
const PACE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
