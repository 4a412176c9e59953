//! What happens when a target fails, and the share controller.

use std::time::Duration;

use super::{
    check,
    context::{Context, DAY_MS, HOUR_MS, NULL, Whole},
    provider::report_bound,
    status,
};
use crate::config::{
    Fallback, Strategy, StreamMode,
    diagnostic::Diagnostic,
    path::Path,
    raw::{self, Maybe},
};
use crate::policy::aimd;

/// Defaults of models and presets; `None` is off.
#[derive(Debug)]
pub(super) struct Defaults {
    pub(super) first_token_timeout: Option<Duration>,
    pub(super) stream_idle_timeout: Option<Duration>,
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
    cx.bounds(&raw.cooldown_ms, "E252", 0..=DAY_MS);
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
    let aimd = controller(cx, at, raw, traits, enabled);
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

/// The controller's parameters, if it is to run.
fn controller(
    cx: &mut Context<'_>,
    at: &Path,
    raw: &raw::Model,
    traits: Traits,
    fallback_enabled: bool,
) -> Option<aimd::Params> {
    let written = raw.fallback.as_ref().and_then(|fallback| fallback.aimd.as_ref());
    let nothing = raw::Aimd::default();
    let (enabled, settings) = settings(
        cx,
        &at.key("aimd"),
        written.map_or(&nothing, |written| &written.value),
    );
    let scope = settings.scope;
    let obstacle = match () {
        () if traits.strategy == Strategy::Weighted => Some((
            "the strategy is weighted: there is no preferred target",
            raw.strategy.as_ref().map(|s| s.span),
        )),
        () if !fallback_enabled => {
            let enabled = raw
                .fallback
                .as_ref()
                .and_then(|fallback| fallback.enabled.as_ref());
            Some((
                "fallback is off: there is nowhere to go",
                enabled.map(|enabled| enabled.span),
            ))
        }
        () if traits.stream_mode == StreamMode::Passthrough && scope == aimd::Scope::Strict => Some((
            "the model's streams are not strict, and `scope: strict` takes no others",
            raw.stream_mode.as_ref().map(|mode| mode.span),
        )),
        () => None,
    };
    let params = match aimd::Params::new(settings) {
        Ok(params) => Some(params),
        Err(faults) => {
            for fault in faults {
                report_bound(cx, &at.key("aimd"), &fault, code_of(fault.field));
            }
            None
        }
    };
    match (written, obstacle) {
        (Some(written), Some((why, other))) if enabled => {
            let message = "a share cannot be controlled here";
            let span = written
                .value
                .enabled
                .as_ref()
                .map_or(written.span, |enabled| enabled.span);
            let mut diagnostic = Diagnostic::error("E213", span, message)
                .at(at.key("aimd").to_string())
                .help(format!(
                    "{why}; remove `aimd`, or write `aimd: {{ enabled: false }}`"
                ));
            if let Some(other) = other {
                diagnostic = diagnostic.also(other, "because of this");
            }
            cx.report(diagnostic);
        }
        (Some(written), None) if enabled && traits.targets < 2 => cx.report(
            Diagnostic::warning(
                "W215",
                written.span,
                "with one target there is nothing to share: the controller is inert",
            )
            .at(at.key("aimd").to_string()),
        ),
        _ => {}
    }
    params.filter(|_| enabled && obstacle.is_none())
}

fn settings(cx: &mut Context<'_>, at: &Path, raw: &raw::Aimd) -> (bool, aimd::Settings) {
    let default = aimd::Settings::default();
    let enabled = cx.flag(at, "enabled", &raw.enabled, true);
    let time = |cx: &mut Context<'_>, key: &str, written: &Maybe<u64>, default: Duration| {
        let default = u64::try_from(default.as_millis()).unwrap_or(u64::MAX);
        // The policy knows the bounds; these only keep the sum in its type.
        cx.time(at, key, written, Whole::new(default, 0..=u64::MAX))
    };
    let count = |cx: &mut Context<'_>, key: &str, written: &Maybe<u64>, default: u32| {
        cx.count(at, key, written, Whole::new(default.into(), 0..=u64::MAX))
    };
    let scope = match cx.word(at, "scope", &raw.scope, ("strict", raw::Scope::Strict)) {
        raw::Scope::Strict => aimd::Scope::Strict,
        raw::Scope::Streaming => aimd::Scope::Streaming,
    };
    let idle = time(
        cx,
        "idle_recovery_ms",
        &raw.idle_recovery_ms,
        default.idle_recovery.unwrap_or_default(),
    );
    let settings = aimd::Settings {
        latency_budget: time(
            cx,
            "latency_budget_ms",
            &raw.latency_budget_ms,
            default.latency_budget,
        ),
        breach_rate_target: ratio(
            cx,
            at,
            "breach_rate_target",
            &raw.breach_rate_target,
            default.breach_rate_target,
        ),
        recovery_breach_rate: ratio(
            cx,
            at,
            "recovery_breach_rate",
            &raw.recovery_breach_rate,
            default.recovery_breach_rate,
        ),
        window_samples: count(cx, "window_samples", &raw.window_samples, default.window_samples),
        min_samples: count(cx, "min_samples", &raw.min_samples, default.min_samples),
        share_step: ratio(cx, at, "share_step", &raw.share_step, default.share_step),
        share_decay: ratio(cx, at, "share_decay", &raw.share_decay, default.share_decay),
        share_floor: ratio(cx, at, "share_floor", &raw.share_floor, default.share_floor),
        dwell: time(cx, "dwell_ms", &raw.dwell_ms, default.dwell),
        idle_recovery: on(idle),
        overload_statuses: overload_statuses(cx, at, raw, default.overload_statuses),
        scope,
    };
    (enabled, settings)
}

/// A number of which the policy knows the bounds.
pub(super) fn ratio(cx: &mut Context<'_>, at: &Path, key: &str, written: &Maybe<f64>, default: f64) -> f64 {
    cx.setting(at, key, written, Some(default.to_string()));
    written.as_ref().map_or(default, |written| written.value)
}

fn overload_statuses(cx: &mut Context<'_>, at: &Path, raw: &raw::Aimd, default: Vec<u16>) -> Vec<u16> {
    let shown = default.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    cx.setting(
        at,
        "overload_statuses",
        &raw.overload_statuses,
        Some(format!("[{shown}]")),
    );
    raw.overload_statuses.as_ref().map_or(default, |written| {
        written
            .value
            .iter()
            .map(|status| u16::try_from(status.value).unwrap_or(u16::MAX))
            .collect()
    })
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

/// The code of a controller's bound.
fn code_of(field: &str) -> &'static str {
    match field {
        "latency_budget_ms" => "E200",
        "dwell_ms" => "E201",
        "idle_recovery_ms" => "E202",
        "breach_rate_target" => "E203",
        "share_decay" => "E204",
        "share_step" | "share_floor" => "E205",
        "overload_statuses" => "E206",
        "recovery_breach_rate" => "E211",
        _ => "E212",
    }
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
