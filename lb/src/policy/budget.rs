//! How many retries a provider gets beside its requests.
//!
//! Retries are what turns a provider that is slow into one that is down. So they are held to a part of the requests of
//! the latest window, whoever makes them; a few are always allowed, or a quiet provider would get none at all. A failover
//! is an original request of its new provider and no retry.

use std::time::Duration;

use super::time::Instant;
use super::window::{Counts, Window};
use super::{Bounds, OutOfBounds};

/// Settings of a budget, not yet checked. The default is the documented one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Settings {
    /// Retries allowed, in percent of requests; 0 to 100.
    pub percent: u32,
    /// The span over which both are counted; 1 s to 1 h.
    pub window: Duration,
    /// Retries within the window that are allowed however few requests there were; at most a million.
    pub min_per_window: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            percent: 20,
            window: Duration::from_secs(10),
            min_per_window: 3,
        }
    }
}

/// Settings within their bounds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Params(Settings);

impl Params {
    /// Checks `settings`; every setting that is out of bounds is named.
    pub fn new(settings: Settings) -> Result<Self, Vec<OutOfBounds>> {
        let mut bounds = Bounds::default();
        bounds.require(settings.percent <= 100, "budget_percent", "lie in [0, 100]");
        let window = Duration::from_secs(1)..=Duration::from_hours(1);
        bounds.require(
            window.contains(&settings.window),
            "budget_window_ms",
            "lie in [1000, 3600000]",
        );
        bounds.require(
            settings.min_per_window <= 1_000_000,
            "budget_min_per_window",
            "lie in [0, 1000000]",
        );
        bounds.finish(Self(settings))
    }

    /// The settings.
    pub const fn settings(&self) -> &Settings {
        &self.0
    }
}

/// What one retry has cost; [`Budget::refund`] takes it back if it was not made after all.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct Charge {
    at: Instant,
}

/// What a budget looks like at an instant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Snapshot {
    /// Requests within the window.
    pub requests: u32,
    /// Retries within the window.
    pub retries: u32,
}

/// The retry budget of one provider.
#[derive(Clone, Debug)]
pub struct Budget {
    params: Params,
    /// Requests as its volume, retries as its failures.
    window: Window,
}

impl Budget {
    /// The budget of a provider that was asked for nothing yet.
    pub fn new(params: Params) -> Self {
        Self {
            window: Window::new(params.0.window),
            params,
        }
    }

    /// What it was set to.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Takes other settings on at once and keeps what was counted.
    pub fn set_params(&mut self, params: Params) {
        self.window.resize(params.0.window);
        self.params = params;
    }

    /// Counts an original request.
    pub fn on_request(&mut self, now: Instant) {
        self.window.add(
            now,
            Counts {
                volume: 1,
                failures: 0,
            },
        );
    }

    /// Whether a retry at `now` would be within the budget.
    pub fn allows(&self, now: Instant) -> bool {
        let Snapshot { requests, retries } = self.snapshot(now);
        let within = (u64::from(retries) + 1) * 100 <= u64::from(self.params.0.percent) * u64::from(requests);
        within || retries < self.params.0.min_per_window
    }

    /// Pays for a retry; `None` if there is no budget left for it.
    pub fn withdraw(&mut self, now: Instant) -> Option<Charge> {
        if !self.allows(now) {
            return None;
        }
        self.window.add(
            now,
            Counts {
                volume: 0,
                failures: 1,
            },
        );
        Some(Charge { at: now })
    }

    /// Takes back what a retry cost that was not made.
    pub fn refund(&mut self, charge: Charge) {
        self.window.forget_failure(charge.at);
    }

    /// What it looks like at `now`.
    pub fn snapshot(&self, now: Instant) -> Snapshot {
        let counts = self.window.counts(now);
        Snapshot {
            requests: counts.volume,
            retries: counts.failures,
        }
    }
}

#[cfg(test)]
mod tests;
