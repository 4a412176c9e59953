//! What an adaptive limit may be set to.

use std::time::Duration;

use crate::policy::{Bounds, OutOfBounds};

/// Settings of an adaptive limit, not yet checked. The default is the documented one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Time constant of the averages; 100 ms to 1 h.
    pub tau: Duration,
    /// Part of failures above which the factor falls; in (0, 1].
    pub max_error_rate: f64,
    /// Time to the commit above which the factor falls; `None` is no bound.
    pub max_latency: Option<Duration>,
    /// The smallest factor; in (0, 1].
    pub min_factor: f64,
    /// What the factor is multiplied by when it falls; in (0, 1).
    pub decrease_factor: f64,
    /// What is added to the factor each second when all is well; in (0, 1].
    pub recover_per_second: f64,
    /// Whether a 429 with a time to come back lowers the factor until then.
    pub honor_retry_after: bool,
    /// The longest such time that is followed; `None` is any.
    pub max_retry_after: Option<Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tau: Duration::from_secs(10),
            max_error_rate: 0.1,
            max_latency: None,
            min_factor: 0.1,
            decrease_factor: 0.8,
            recover_per_second: 0.02,
            honor_retry_after: true,
            max_retry_after: None,
        }
    }
}

/// Settings within their bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Params(Settings);

impl Params {
    /// Checks `settings`; every setting that is out of bounds is named.
    pub fn new(settings: Settings) -> Result<Self, Vec<OutOfBounds>> {
        let mut bounds = Bounds::default();
        let tau = Duration::from_millis(100)..=Duration::from_hours(1);
        bounds.require(tau.contains(&settings.tau), "tau_ms", "lie in [100, 3600000]");
        let parts = [
            (settings.max_error_rate, "max_error_rate"),
            (settings.min_factor, "min_factor"),
            (settings.recover_per_second, "recover_per_second"),
        ];
        for (part, field) in parts {
            bounds.require(part > 0.0 && part <= 1.0, field, "lie in (0, 1]");
        }
        let decrease = settings.decrease_factor;
        bounds.require(
            decrease > 0.0 && decrease < 1.0,
            "decrease_factor",
            "lie in (0, 1)",
        );
        bounds.finish(Self(settings))
    }

    /// The settings.
    pub const fn settings(&self) -> &Settings {
        &self.0
    }
}
