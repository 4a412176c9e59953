//! What an endpoint's health may be set to.

use std::time::Duration;

use super::active::Active;
use crate::policy::failures::Limits;
use crate::policy::{Bounds, OutOfBounds};

/// Settings of passive health, not yet checked. The default is the documented one.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Failures in a row that eject; at least 1.
    pub consecutive_failures: u32,
    /// The part of failures within the window that ejects; in (0, 1].
    pub failure_ratio: f64,
    /// With fewer results within the window the ratio says nothing; at least 1.
    pub failure_min_volume: u32,
    /// The span the ratio is taken over; 1 s to 1 h.
    pub window: Duration,
    /// How long the first ejection lasts; the n-th in a row lasts n times as long. From 1 ms to `max_ejection`.
    pub ejection: Duration,
    /// The longest ejection, before its jitter of up to a tenth.
    pub max_ejection: Duration,
    /// Requests at a time that try a half-open endpoint; 1 to 100.
    pub half_open_probes: u32,
    /// How much of a provider's endpoints may be out at once, in percent; 0 to 100.
    pub max_ejection_percent: u32,
    /// How long an endpoint that came back takes to its whole weight; `None` has it at once.
    pub slow_start: Option<Duration>,
    /// What becomes of probes; `None` where there are none.
    pub active: Option<Active>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            consecutive_failures: 5,
            failure_ratio: 0.5,
            failure_min_volume: 20,
            window: Duration::from_mins(1),
            ejection: Duration::from_secs(30),
            max_ejection: Duration::from_mins(5),
            half_open_probes: 1,
            max_ejection_percent: 100,
            slow_start: None,
            active: None,
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
        let ejection = Duration::from_millis(1)..=settings.max_ejection;
        bounds.require(
            ejection.contains(&settings.ejection),
            "ejection_ms",
            "lie in [1, max_ejection_ms]",
        );
        bounds.require(
            (1..=100).contains(&settings.half_open_probes),
            "half_open_probes",
            "lie in [1, 100]",
        );
        bounds.require(
            settings.max_ejection_percent <= 100,
            "max_ejection_percent",
            "lie in [0, 100]",
        );
        bounds.finish(Self(settings))
    }

    /// The settings.
    pub const fn settings(&self) -> &Settings {
        &self.0
    }

    /// Whether a provider of `endpoints` endpoints, `out` of which are ejected or half-open, can spare one more.
    pub fn may_eject(&self, out: usize, endpoints: usize) -> bool {
        // In 128 bits, where no count of endpoints overflows.
        (out as u128 + 1) * 100 <= endpoints as u128 * u128::from(self.0.max_ejection_percent)
    }
}

impl Default for Params {
    fn default() -> Self {
        Self::new(Settings::default()).expect("the defaults are within their own bounds, as a test shows")
    }
}

#[cfg(test)]
mod tests;
