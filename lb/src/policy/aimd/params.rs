//! What a controller may be set to.

use std::time::Duration;

use super::Outcome;
use crate::policy::{Bounds, OutOfBounds};

/// Which requests take part, beside those to strict models.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Scope {
    /// Only requests to strict models, whose responses are read up to their first data frame before they are passed on.
    #[default]
    Strict,
    /// Also streams of other models, watched as they pass.
    Streaming,
}

/// A controller's settings, not yet checked. The default is the documented one.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Within what time the first data frame should come; 1 ms to 1 h.
    pub latency_budget: Duration,
    /// Above this breach rate the share falls; in [0, 1).
    pub breach_rate_target: f64,
    /// At or below this breach rate it may rise; from 0 to the target.
    pub recovery_breach_rate: f64,
    /// How many of the latest samples are judged; from `min_samples` to 100000.
    pub window_samples: u32,
    /// With fewer samples nothing is decided; at least 2.
    pub min_samples: u32,
    /// By how much the share rises; in (0, 1].
    pub share_step: f64,
    /// By what factor it falls; in (0, 1).
    pub share_decay: f64,
    /// Below this it never falls; in (0, 1].
    pub share_floor: f64,
    /// The least time between two changes, and how long the rate has to have been low before a rise; 1 ms to 1 day.
    pub dwell: Duration,
    /// A step up for each such time with too little traffic to judge; up to 1 day, `None` or zero turns it off.
    pub idle_recovery: Option<Duration>,
    /// Statuses by which the provider says that it is overloaded: at most 32, each 400 to 599, none twice.
    pub overload_statuses: Vec<u16>,
    /// Which requests take part.
    pub scope: Scope,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            latency_budget: Duration::from_secs(10),
            breach_rate_target: 0.10,
            recovery_breach_rate: 0.03,
            window_samples: 100,
            min_samples: 20,
            share_step: 0.05,
            share_decay: 0.8,
            share_floor: 0.05,
            dwell: Duration::from_secs(30),
            idle_recovery: Some(Duration::from_mins(5)),
            overload_statuses: vec![429, 503, 529],
            scope: Scope::Strict,
        }
    }
}

/// Settings within their bounds. Two that mean the same are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Params(Settings);

impl Params {
    /// Checks `settings`; every setting that is out of bounds is named.
    pub fn new(mut settings: Settings) -> Result<Self, Vec<OutOfBounds>> {
        let mut bounds = Bounds::default();
        check_times(&settings, &mut bounds);
        check_rates(&settings, &mut bounds);
        check_statuses(&mut settings.overload_statuses, &mut bounds);
        settings.idle_recovery = settings.idle_recovery.filter(|span| !span.is_zero());
        bounds.finish(Self(settings))
    }

    /// The settings, with overload statuses in rising order and an idle recovery of zero as `None`.
    pub const fn settings(&self) -> &Settings {
        &self.0
    }

    /// Whether a request takes part: its body's `stream` is exactly `true`, its model is strict or the scope is wider,
    /// and it does not carry the exempt header.
    pub fn takes_part(&self, stream: bool, strict: bool, exempt: bool) -> bool {
        stream && !exempt && (strict || self.0.scope == Scope::Streaming)
    }

    /// Whether `status` says that the provider is overloaded.
    pub fn is_overload(&self, status: u16) -> bool {
        self.0.overload_statuses.binary_search(&status).is_ok()
    }

    /// What a first data frame `after` the attempt's start says.
    pub fn on_first_data(&self, after: Duration) -> Outcome {
        if after <= self.0.latency_budget {
            Outcome::Healthy
        } else {
            Outcome::Breach
        }
    }

    /// What a first-token deadline that ended the attempt `after` its start says.
    ///
    /// It is only a lower bound of the time to the first token: below the budget it says nothing.
    pub fn on_deadline(&self, after: Duration) -> Outcome {
        if after >= self.0.latency_budget {
            Outcome::Breach
        } else {
            Outcome::Unknown
        }
    }

    /// What a status says, on the response line or in an error event of the stream.
    pub fn on_status(&self, status: u16) -> Outcome {
        if self.is_overload(status) {
            Outcome::Breach
        } else {
            Outcome::Unknown
        }
    }
}

impl Default for Params {
    fn default() -> Self {
        Self::new(Settings::default()).expect("the defaults are within their own bounds, as a test shows")
    }
}

fn check_times(settings: &Settings, bounds: &mut Bounds) {
    let hour = Duration::from_hours(1);
    let day = 24 * hour;
    let millisecond = Duration::from_millis(1);
    bounds.require(
        (millisecond..=hour).contains(&settings.latency_budget),
        "latency_budget_ms",
        "lie in [1, 3600000]",
    );
    bounds.require(
        (millisecond..=day).contains(&settings.dwell),
        "dwell_ms",
        "lie in [1, 86400000]",
    );
    bounds.require(
        settings.idle_recovery.is_none_or(|span| span <= day),
        "idle_recovery_ms",
        "lie in [0, 86400000]",
    );
}

/// Written so that NaN, which lies in no range, is always out of bounds.
fn check_rates(settings: &Settings, bounds: &mut Bounds) {
    bounds.require(
        (0.0..1.0).contains(&settings.breach_rate_target),
        "breach_rate_target",
        "lie in [0, 1)",
    );
    bounds.require(
        (0.0..=settings.breach_rate_target).contains(&settings.recovery_breach_rate),
        "recovery_breach_rate",
        "lie in [0, breach_rate_target]",
    );
    bounds.require(
        (settings.min_samples..=100_000).contains(&settings.window_samples),
        "window_samples",
        "lie in [min_samples, 100000]",
    );
    bounds.require(settings.min_samples >= 2, "min_samples", "be at least 2");
    for (value, field) in [
        (settings.share_step, "share_step"),
        (settings.share_floor, "share_floor"),
    ] {
        bounds.require(value > 0.0 && value <= 1.0, field, "lie in (0, 1]");
    }
    bounds.require(
        settings.share_decay > 0.0 && settings.share_decay < 1.0,
        "share_decay",
        "lie in (0, 1)",
    );
}

/// Sorts `statuses` on the way: their order means nothing, so it must not make two settings differ.
fn check_statuses(statuses: &mut [u16], bounds: &mut Bounds) {
    statuses.sort_unstable();
    let within = statuses.len() <= 32 && statuses.iter().all(|status| (400..600).contains(status));
    bounds.require(
        within,
        "overload_statuses",
        "be at most 32 statuses, each in [400, 599]",
    );
    bounds.require(
        statuses.windows(2).all(|pair| pair[0] != pair[1]),
        "overload_statuses",
        "not repeat a status",
    );
}

#[cfg(test)]
mod tests;
