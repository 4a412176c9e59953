//! What happens when a target fails, and the share controller.

use std::time::Duration;

use super::{
    aimd, check,
    context::{Context, DAY_MS, HOUR_MS, NULL, Whole},
    status,
};
use crate::config::{
    Fallback, Strategy, StreamMode,
    diagnostic::Diagnostic,
    path::Path,
    raw::{self, Maybe},
};

/// Defaults of models and presets; `None` is off.
#[derive(Debug)]
pub(super) struct Defaults {
    pub(super) first_token_timeout: Option<Duration>,
    pub(super) stream_idle_timeout: Option<Duration>,
    pub(super) cooldown: Option<Duration>,
    pub(super) total_deadline: Option<Duration>,
}

pub(super) fn failover(cx: &mut Context<'_>, raw: Option<&raw::Failover>) -> Defaults {
    let at = Path::top("failover");
    let nothing = raw::Failover::default();
    let raw = raw.unwrap_or(&nothing);
    let first = Whole::new(20_000, 0..=HOUR_MS).code("E252");
    let idle = Whole::new(120_000, 0..=DAY_MS).code("E252");
    let first_token_timeout = cx.time(&at, "first_token_timeout_ms", &raw.first_token_timeout_ms, first);
    let stream_idle_timeout = cx.time(&at, "stream_idle_timeout_ms", &raw.stream_idle_timeout_ms, idle);
    let cooldown = Whole::new(30_000, 0..=DAY_MS).code("E252");
    let cooldown = cx.time(&at, "cooldown_ms", &raw.cooldown_ms, cooldown);
    check::total_deadline(cx, &raw.total_deadline_ms);
    cx.setting(
        &at,
        "total_deadline_ms",
        &raw.total_deadline_ms,
        Some(NULL.to_owned()),
    );
    Defaults {
        first_token_timeout: on(first_token_timeout),
        stream_idle_timeout: on(stream_idle_timeout),
        cooldown: on(cooldown),
        total_deadline: raw
            .total_deadline_ms
            .as_ref()
            .and_then(|ms| on(Duration::from_millis(ms.value))),
    }
}

/// What a model says of itself that its controller depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traits {
    pub(super) strategy: Strategy,
    pub(super) stream_mode: StreamMode,
    /// Targets of the default pool, in force or not.
    pub(super) targets: usize,
}

pub(super) fn fallback(
    cx: &mut Context<'_>,
    at: &Path,
    raw: &raw::Model,
    traits: Traits,
    defaults: &Defaults,
) -> Fallback {
    let nothing = raw::Fallback::default();
    let written = raw.fallback.as_ref().unwrap_or(&nothing);
    let enabled = cx.flag(at, "enabled", &written.enabled, true);
    cx.bounds(&written.max_attempts, "E221", 1..=10);
    cx.setting(at, "max_attempts", &written.max_attempts, Some(NULL.to_owned()));
    let explicit = deadline(
        cx,
        at,
        "first_token_timeout_ms",
        &written.first_token_timeout_ms,
        "failover",
        defaults.first_token_timeout,
    );
    let aimd = aimd::controller(cx, at, raw, traits, enabled);
    let fallback = Fallback {
        enabled,
        max_attempts: written
            .max_attempts
            .as_ref()
            .and_then(|attempts| u32::try_from(attempts.value).ok()),
        on_status: status::list(cx, at, "on_status", &written.on_status, &MODEL_STATUSES),
        realtime_on_status: status::list(cx, at, "realtime_on_status", &written.realtime_on_status, &[529]),
        first_token_timeout: explicit.map_or(defaults.first_token_timeout, on),
        explicit_first_token_timeout: explicit,
        aimd,
    };
    check_deadline(cx, at, raw, traits, &fallback);
    fallback
}

/// A first-token deadline that may be left to `from`; zero is off.
pub(super) fn deadline(
    cx: &mut Context<'_>,
    at: &Path,
    key: &str,
    written: &Maybe<u64>,
    from: &str,
    inherited: Option<Duration>,
) -> Option<Duration> {
    cx.bounds(written, "E252", 0..=HOUR_MS);
    match written {
        Some(_) => cx.setting(at, key, written, Some(NULL.to_owned())),
        None => cx.inherited(at, key, millis(inherited), &format!("{from}.{key}")),
    }
    written
        .as_ref()
        .map(|written| Duration::from_millis(written.value))
}

/// A deadline that ends attempts before they can count as too slow blinds the controller.
fn check_deadline(cx: &mut Context<'_>, at: &Path, raw: &raw::Model, traits: Traits, fallback: &Fallback) {
    let Some(params) = fallback.aimd.as_ref().filter(|_| traits.targets > 1) else {
        return;
    };
    let budget = params.settings().latency_budget;
    let written = raw.fallback.as_ref();
    let deadline = written.and_then(|fallback| fallback.first_token_timeout_ms.as_ref());
    let aimd = written.and_then(|fallback| fallback.aimd.as_ref());
    let short = fallback.first_token_timeout.filter(|deadline| *deadline < budget);
    match (aimd, deadline, short) {
        (Some(aimd), None, _) => cx.report(
            Diagnostic::error(
                "E210",
                aimd.span,
                "a controller with settings of its own needs a first-token deadline of its own",
            )
            .at(at.key("first_token_timeout_ms").to_string())
            .help(format!(
                "write `first_token_timeout_ms: {}` beside `aimd`, or more, or 0 for no deadline",
                budget.as_millis()
            )),
        ),
        (Some(aimd), Some(deadline), Some(_)) => {
            let budget_span = aimd
                .value
                .latency_budget_ms
                .as_ref()
                .map_or(aimd.span, |budget| budget.span);
            cx.report(
                Diagnostic::error("E210", deadline.span, "the first-token deadline is shorter than the latency budget")
                    .label("attempts are cut off here...")
                    .also(budget_span, format!("...before they can count as over this budget of {} ms", budget.as_millis()))
                    .help("raise first_token_timeout_ms to at least the budget, or set it to 0 to switch the deadline off"),
            );
        }
        (None, _, Some(short)) => {
            let span = deadline.map(|deadline| deadline.span).or_else(|| {
                cx.document
                    .root
                    .find("failover.first_token_timeout_ms")
                    .map(|node| node.span)
            });
            let span = span.unwrap_or(cx.document.root.span);
            warn_short(cx, span, at, short, budget);
        }
        _ => {}
    }
}

/// Says that a deadline is too short for cut-offs to say anything.
pub(super) fn warn_short(
    cx: &mut Context<'_>,
    span: crate::config::Span,
    at: &Path,
    short: Duration,
    budget: Duration,
) {
    let message = format!(
        "cut-offs after {} ms count as unknown, since the latency budget is {} ms",
        short.as_millis(),
        budget.as_millis()
    );
    cx.report(
        Diagnostic::warning("W214", span, message)
            .at(at.key("first_token_timeout_ms").to_string())
            .label(format!("seen from `{at}`"))
            .help("raise the deadline to the budget, or switch the controller off with `aimd: { enabled: false }`"),
    );
}

/// A time that is off when it is zero.
pub(super) fn on(time: Duration) -> Option<Duration> {
    Some(time).filter(|time| !time.is_zero())
}

/// A time as the file would say it.
pub(super) fn millis(time: Option<Duration>) -> String {
    time.map_or_else(|| "0".to_owned(), |time| time.as_millis().to_string())
}

const MODEL_STATUSES: [u16; 6] = [429, 499, 500, 502, 503, 504];
