//! What a breaker may be set to.

use std::time::Duration;

use crate::policy::failures::Limits;
use crate::policy::{Bounds, OutOfBounds};

/// Settings of a breaker, not yet checked. The default is the documented one.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Failures in a row that open it; at least 1.
    pub consecutive_failures: u32,
    /// The part of failures within the window that opens it; in (0, 1].
    pub failure_ratio: f64,
    /// With fewer results within the window the ratio says nothing; at least 1.
    pub failure_min_volume: u32,
    /// The span the ratio is taken over; 1 s to 1 h.
    pub window: Duration,
    /// How long requests are refused; 1 ms to a day.
    pub open: Duration,
    /// Requests at a time that try a half-open provider, and how many of them have to succeed; 1 to 100.
    pub half_open_probes: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            consecutive_failures: 10,
            failure_ratio: 0.5,
            failure_min_volume: 20,
            window: Duration::from_mins(1),
            open: Duration::from_secs(30),
            half_open_probes: 3,
        }
    }
}

impl Settings {
    /// When failures are too many.
    pub(super) fn limits(&self) -> Limits {
        Limits {
            consecutive_failures: self.consecutive_failures,
            failure_ratio: self.failure_ratio,
            failure_min_volume: self.failure_min_volume,
            window: self.window,
        }
    }
}

/// Settings within their bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Params(Settings);

impl Params {
    /// Checks `settings`; every setting that is out of bounds is named.
    pub fn new(settings: Settings) -> Result<Self, Vec<OutOfBounds>> {
        let mut bounds = Bounds::default();
        settings.limits().check(&mut bounds);
        let open = Duration::from_millis(1)..=Duration::from_hours(24);
        bounds.require(open.contains(&settings.open), "open_ms", "lie in [1, 86400000]");
        bounds.require(
            (1..=100).contains(&settings.half_open_probes),
            "half_open_probes",
            "lie in [1, 100]",
        );
        bounds.finish(Self(settings))
    }

    /// The settings.
    pub const fn settings(&self) -> &Settings {
        &self.0
    }
}

impl Default for Params {
    fn default() -> Self {
        Self::new(Settings::default()).expect("the defaults are within their own bounds, as a test shows")
    }
}
