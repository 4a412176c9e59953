//! Trying again inside a provider.

use std::time::Duration;

use super::{
    bound, check,
    context::{Context, DAY_MS, HOUR_MS, NULL, Whole},
    fallback, status,
};
use crate::config::{
    Retries,
    diagnostic::Diagnostic,
    path::Path,
    raw::{self, Maybe},
};
use crate::policy::budget;

pub(super) fn retries(cx: &mut Context<'_>, at: &Path, raw: &raw::Provider) -> Retries {
    let nothing = raw::Retries::default();
    let endpoints = raw.endpoints.as_ref().map_or(0, |all| all.value.len());
    let raw = raw.retries.as_ref().unwrap_or(&nothing);
    check::total_deadline(cx, &raw.total_deadline_ms);
    let (base, cap) = backoff(cx, at, raw);
    let max_attempts = cx.count(
        at,
        "max_attempts",
        &raw.max_attempts,
        Whole::new(2, 1..=10).code("E221"),
    );
    let retries = Retries {
        max_attempts,
        budget: budget(cx, at, raw),
        base,
        cap,
        on_status: status::list(cx, at, "on_status", &raw.on_status, &STATUSES),
        unanswered_posts: cx.flag(at, "retry_unanswered_posts", &raw.retry_unanswered_posts, true),
        hedge_after: hedge_after(cx, at, &raw.hedge_after_ms, (endpoints, max_attempts)),
        max_retry_after: fallback::on(cx.time(
            at,
            "max_retry_after_ms",
            &raw.max_retry_after_ms,
            Whole::new(300_000, 0..=DAY_MS),
        )),
        total_deadline: raw
            .total_deadline_ms
            .as_ref()
            .and_then(|ms| fallback::on(Duration::from_millis(ms.value))),
    };
    let deadline = Some(NULL.to_owned());
    cx.setting(at, "total_deadline_ms", &raw.total_deadline_ms, deadline);
    retries
}

/// When a second attempt begins beside a slow one; said to be idle where there can be none.
fn hedge_after(
    cx: &mut Context<'_>,
    at: &Path,
    written: &Maybe<u64>,
    (endpoints, max_attempts): (usize, u32),
) -> Option<Duration> {
    cx.bounds(written, "E256", 1..=HOUR_MS);
    cx.setting(at, "hedge_after_ms", written, Some(NULL.to_owned()));
    let after = written.as_ref()?;
    let why = match () {
        () if endpoints < 2 => Some("the provider has no other endpoint"),
        () if max_attempts < 2 => Some("`max_attempts` leaves no second try"),
        () => None,
    };
    if let Some(why) = why {
        let message = format!("no second attempt can begin: {why}");
        cx.report(Diagnostic::warning("W224", after.span, message).at(at.key("hedge_after_ms").to_string()));
    }
    Some(Duration::from_millis(after.value))
}

fn budget(cx: &mut Context<'_>, at: &Path, raw: &raw::Retries) -> budget::Params {
    let default = budget::Settings::default();
    let any = 0..=u64::from(u32::MAX);
    let window = u64::try_from(default.window.as_millis()).unwrap_or(u64::MAX);
    let settings = budget::Settings {
        percent: cx.count(
            at,
            "budget_percent",
            &raw.budget_percent,
            Whole::new(default.percent.into(), any.clone()),
        ),
        window: cx.time(
            at,
            "budget_window_ms",
            &raw.budget_window_ms,
            Whole::new(window, any.clone()),
        ),
        min_per_window: cx.count(
            at,
            "budget_min_per_window",
            &raw.budget_min_per_window,
            Whole::new(default.min_per_window.into(), any),
        ),
    };
    budget::Params::new(settings).unwrap_or_else(|faults| {
        for fault in faults {
            let code = if fault.field == "budget_percent" {
                "E222"
            } else {
                "E256"
            };
            bound::report(cx, at, &fault, code);
        }
        budget::Params::default()
    })
}

/// The longest backoff before the first retry, and the longest of any.
fn backoff(cx: &mut Context<'_>, at: &Path, raw: &raw::Retries) -> (Duration, Duration) {
    let whole = |default: u64| Whole::new(default, 1..=60_000).code("E223");
    let base = cx.time(at, "base_ms", &raw.base_ms, whole(25));
    let cap = cx.time(at, "cap_ms", &raw.cap_ms, whole(250));
    if base > cap {
        let written = raw.base_ms.as_ref().or(raw.cap_ms.as_ref());
        let span = written.map_or(cx.document.root.span, |written| written.span);
        let message = format!(
            "the first backoff (base_ms, {}) is longer than the longest (cap_ms, {})",
            base.as_millis(),
            cap.as_millis()
        );
        let diagnostic = Diagnostic::error("E223", span, message).help("raise cap_ms, or lower base_ms");
        let other = raw.cap_ms.as_ref().filter(|cap| cap.span != span);
        cx.report(match other {
            Some(cap) => diagnostic.also(cap.span, "the longest"),
            None => diagnostic,
        });
    }
    (base, cap)
}

const STATUSES: [u16; 7] = [500, 502, 503, 504, 408, 499, 429];
