//! The share controller's parameters.

use std::time::Duration;

use super::{
    bound,
    context::{Context, Whole},
    fallback::{Traits, on},
};
use crate::config::{
    Span, Strategy, StreamMode,
    diagnostic::Diagnostic,
    path::Path,
    raw::{self, Maybe},
};
use crate::policy::aimd;

/// The controller's parameters, if it is to run.
pub(super) fn controller(
    cx: &mut Context<'_>,
    at: &Path,
    raw: &raw::Model,
    traits: Traits,
    fallback_enabled: bool,
) -> Option<aimd::Params> {
    let at = at.key("aimd");
    let written = raw.fallback.as_ref().and_then(|fallback| fallback.aimd.as_ref());
    let nothing = raw::Aimd::default();
    let (enabled, settings) = settings(cx, &at, written.map_or(&nothing, |written| &written.value));
    let obstacle = obstacle(raw, traits, fallback_enabled, settings.scope);
    let params = aimd::Params::new(settings);
    for fault in params.as_ref().err().into_iter().flatten() {
        bound::report(cx, &at, fault, code_of(fault.field));
    }
    match (written, &obstacle) {
        (Some(written), Some((why, other))) if enabled => {
            let span = written
                .value
                .enabled
                .as_ref()
                .map_or(written.span, |enabled| enabled.span);
            let diagnostic =
                Diagnostic::error("E213", span, format!("no share can be controlled here: {why}"))
                    .at(at.to_string())
                    .help("remove `aimd`, or write `aimd: { enabled: false }`");
            cx.report(match other {
                Some(other) => diagnostic.also(*other, "because of this"),
                None => diagnostic,
            });
        }
        (Some(written), None) if enabled && traits.targets < 2 => {
            let message = "with one target there is nothing to share: the controller is inert";
            cx.report(Diagnostic::warning("W215", written.span, message).at(at.to_string()));
        }
        _ => {}
    }
    params.ok().filter(|_| enabled && obstacle.is_none())
}

/// Why a model's pool cannot have a controller, and what of the file says so.
fn obstacle(
    raw: &raw::Model,
    traits: Traits,
    fallback_enabled: bool,
    scope: aimd::Scope,
) -> Option<(&'static str, Option<Span>)> {
    if traits.strategy == Strategy::Weighted {
        let place = raw.strategy.as_ref().map(|strategy| strategy.span);
        Some(("a weighted strategy has no preferred target", place))
    } else if !fallback_enabled {
        let enabled = raw
            .fallback
            .as_ref()
            .and_then(|fallback| fallback.enabled.as_ref());
        Some(("fallback is off", enabled.map(|enabled| enabled.span)))
    } else if traits.stream_mode == StreamMode::Passthrough && scope == aimd::Scope::Strict {
        let place = raw.stream_mode.as_ref().map(|mode| mode.span);
        Some((
            "the model's streams are passed through, and `scope: strict` takes no such",
            place,
        ))
    } else {
        None
    }
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
        breach_rate_target: bound::ratio(
            cx,
            at,
            "breach_rate_target",
            &raw.breach_rate_target,
            default.breach_rate_target,
        ),
        recovery_breach_rate: bound::ratio(
            cx,
            at,
            "recovery_breach_rate",
            &raw.recovery_breach_rate,
            default.recovery_breach_rate,
        ),
        window_samples: count(cx, "window_samples", &raw.window_samples, default.window_samples),
        min_samples: count(cx, "min_samples", &raw.min_samples, default.min_samples),
        share_step: bound::ratio(cx, at, "share_step", &raw.share_step, default.share_step),
        share_decay: bound::ratio(cx, at, "share_decay", &raw.share_decay, default.share_decay),
        share_floor: bound::ratio(cx, at, "share_floor", &raw.share_floor, default.share_floor),
        dwell: time(cx, "dwell_ms", &raw.dwell_ms, default.dwell),
        idle_recovery: on(idle),
        overload_statuses: overload_statuses(cx, at, raw, default.overload_statuses),
        scope,
    };
    (enabled, settings)
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
