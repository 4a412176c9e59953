//! When an endpoint is ejected, and when a whole provider is left alone.

use std::time::Duration;

use super::{
    bound,
    context::{Context, HOUR_MS, Whole},
    traffic::active,
};
use crate::config::{
    Probe,
    path::Path,
    raw::{self, Maybe},
};
use crate::policy::{OutOfBounds, breaker, health};

/// What a provider's `health` says.
pub(super) struct Found {
    /// `None` never ejects.
    pub(super) params: Option<health::Params>,
    pub(super) probe: Option<Probe>,
    /// Whether backpressure counts.
    pub(super) count_backpressure: bool,
    pub(super) fail_open: bool,
}

pub(super) fn health(cx: &mut Context<'_>, at: &Path, raw: &raw::Provider) -> Found {
    let nothing = raw::Health::default();
    let raw = raw.health.as_ref().unwrap_or(&nothing);
    let default = health::Settings::default();
    let enabled = cx.flag(at, "enabled", &raw.enabled, true);
    let active = active(cx, at, raw.active.as_ref());
    let slow_start = cx.time(
        at,
        "slow_start_ms",
        &raw.slow_start_ms,
        Whole::new(0, 0..=HOUR_MS),
    );
    let settings = health::Settings {
        slow_start: Some(slow_start).filter(|span| !span.is_zero()),
        active: active.as_ref().map(|(_, verdicts)| *verdicts),
        consecutive_failures: whole(
            cx,
            at,
            "consecutive_failures",
            &raw.consecutive_failures,
            default.consecutive_failures,
        ),
        failure_ratio: bound::ratio(cx, at, "failure_ratio", &raw.failure_ratio, default.failure_ratio),
        failure_min_volume: whole(
            cx,
            at,
            "failure_min_volume",
            &raw.failure_min_volume,
            default.failure_min_volume,
        ),
        window: time(cx, at, "window_ms", &raw.window_ms, default.window),
        ejection: time(cx, at, "ejection_ms", &raw.ejection_ms, default.ejection),
        max_ejection: time(
            cx,
            at,
            "max_ejection_ms",
            &raw.max_ejection_ms,
            default.max_ejection,
        ),
        half_open_probes: whole(
            cx,
            at,
            "half_open_probes",
            &raw.half_open_probes,
            default.half_open_probes,
        ),
        max_ejection_percent: whole(
            cx,
            at,
            "max_ejection_percent",
            &raw.max_ejection_percent,
            default.max_ejection_percent,
        ),
    };
    let params = within(cx, at, health::Params::new(settings)).filter(|_| enabled);
    Found {
        // Without a health there is nobody to tell what came of a probe.
        probe: active.map(|(probe, _)| probe).filter(|_| enabled),
        params,
        count_backpressure: cx.flag(at, "count_backpressure", &raw.count_backpressure, false),
        fail_open: cx.flag(at, "fail_open", &raw.fail_open, true),
    }
}

/// The circuit breaker; `None` where it is off.
pub(super) fn breaker(cx: &mut Context<'_>, at: &Path, raw: &raw::Provider) -> Option<breaker::Params> {
    let nothing = raw::Breaker::default();
    let raw = raw.circuit_breaker.as_ref().unwrap_or(&nothing);
    let default = breaker::Settings::default();
    let enabled = cx.flag(at, "enabled", &raw.enabled, true);
    let settings = breaker::Settings {
        consecutive_failures: whole(
            cx,
            at,
            "consecutive_failures",
            &raw.consecutive_failures,
            default.consecutive_failures,
        ),
        failure_ratio: bound::ratio(cx, at, "failure_ratio", &raw.failure_ratio, default.failure_ratio),
        failure_min_volume: whole(
            cx,
            at,
            "failure_min_volume",
            &raw.failure_min_volume,
            default.failure_min_volume,
        ),
        window: time(cx, at, "window_ms", &raw.window_ms, default.window),
        open: time(cx, at, "open_ms", &raw.open_ms, default.open),
        half_open_probes: whole(
            cx,
            at,
            "half_open_probes",
            &raw.half_open_probes,
            default.half_open_probes,
        ),
    };
    within(cx, at, breaker::Params::new(settings)).filter(|_| enabled)
}

/// Parameters, or a report of each setting that is out of bounds.
fn within<T>(cx: &mut Context<'_>, at: &Path, params: Result<T, Vec<OutOfBounds>>) -> Option<T> {
    match params {
        Ok(params) => Some(params),
        Err(faults) => {
            for fault in faults {
                bound::report(cx, at, &fault, "E230");
            }
            None
        }
    }
}

/// A number whose bounds are the policy's to know; these only keep it in its type.
fn whole(cx: &mut Context<'_>, at: &Path, key: &str, written: &Maybe<u64>, default: u32) -> u32 {
    let whole = Whole::new(default.into(), 0..=u64::from(u32::MAX));
    cx.count(at, key, written, whole.code("E230"))
}

/// A time whose bounds are the policy's to know.
fn time(cx: &mut Context<'_>, at: &Path, key: &str, written: &Maybe<u64>, default: Duration) -> Duration {
    let default = u64::try_from(default.as_millis()).unwrap_or(u64::MAX);
    let whole = Whole::new(default, 0..=u64::from(u32::MAX));
    cx.time(at, key, written, whole.code("E230"))
}

/// Whether what the kernel sees of a connection counts.
pub(super) fn kernel_signals(cx: &mut Context<'_>, at: &Path, raw: &raw::Provider) -> bool {
    let written = raw.health.as_ref().and_then(|health| health.kernel_signals);
    cx.flag(at, "kernel_signals", &written, true)
}
