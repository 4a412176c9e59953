//! Named entry points with fallback chains.

use std::time::Duration;

use super::{
    context::{Context, DAY_MS, NULL},
    fallback::{self, Defaults},
    model::{check_name, read},
    status,
};
use crate::config::{
    Model, Preset, Read, Span, diagnostic::Diagnostic, path::Path, raw, raw::Maybe, span::Spanned,
    suggest::did_you_mean,
};

pub(super) fn presets(
    cx: &mut Context<'_>,
    file: &raw::File,
    models: &[Model],
    defaults: &Defaults,
) -> Vec<Preset> {
    let entries = &file.presets.0;
    let at = Path::top("presets");
    let mut presets = Vec::new();
    for (name, raw) in entries {
        check_name(cx, name, "preset");
        let model = file
            .models
            .as_ref()
            .and_then(|models| models.value.0.iter().find(|(m, _)| m.value == name.value));
        if let Some((model, _)) = model {
            cx.report(
                Diagnostic::error("E105", name.span, "a preset and a model have the same name")
                    .label("clients send both as \"model\"")
                    .also(model.span, "the model")
                    .help("rename one of them"),
            );
        }
        let at = at.key(&name.value);
        let fallbacks = fallbacks(cx, &at, name, &raw.value, entries);
        presets.push(preset(cx, &at, name, &raw.value, models, defaults, fallbacks));
    }
    presets
}

#[expect(clippy::too_many_arguments, reason = "each is another part of the file")]
fn preset(
    cx: &mut Context<'_>,
    at: &Path,
    name: &Spanned<String>,
    raw: &raw::Preset,
    models: &[Model],
    defaults: &Defaults,
    fallbacks: Vec<usize>,
) -> Preset {
    cx.written(at, "model", raw.model.span, None);
    let index = models.iter().position(|model| model.name == raw.model.value);
    if index.is_none() {
        unknown(
            cx,
            "E102",
            "model",
            &raw.model,
            models.iter().map(|model| model.name.as_str()),
        );
    }
    let model = index.and_then(|index| models.get(index));
    cx.bounds(&raw.cooldown_ms, "E252", 0..=DAY_MS);
    cx.bounds(&raw.stream_idle_timeout_ms, "E252", 0..=DAY_MS);
    let (from, inherited) = match model {
        Some(model) => (
            format!("{}.fallback", Path::top("models").key(&model.name)),
            model.fallback.first_token_timeout,
        ),
        None => ("failover".to_owned(), defaults.first_token_timeout),
    };
    let own = fallback::deadline(
        cx,
        at,
        "first_token_timeout_ms",
        &raw.first_token_timeout_ms,
        &from,
        inherited,
    );
    if let (Some(written), Some(model)) = (&raw.first_token_timeout_ms, model) {
        warn_of_short(cx, at, written.span, own.and_then(fallback::on), model);
    }
    let idle = timer(
        cx,
        at,
        "stream_idle_timeout_ms",
        &raw.stream_idle_timeout_ms,
        defaults.stream_idle_timeout,
    );
    let cooldown = timer(cx, at, "cooldown_ms", &raw.cooldown_ms, defaults.cooldown);
    Preset {
        name: name.value.clone(),
        model: index.unwrap_or_default(),
        fallbacks,
        on_status: status::list(cx, at, "on_status", &raw.on_status, &PRESET_STATUSES),
        first_token_timeout: own.map_or(inherited, fallback::on),
        read: read(
            cx,
            at,
            &raw.read_ms,
            model.map_or(Read::Provider, |model| model.read),
            "the model's read_ms",
        ),
        stream_idle_timeout: idle,
        cooldown,
    }
}

/// A time that is `failover`'s where the preset says nothing; zero is off.
fn timer(
    cx: &mut Context<'_>,
    at: &Path,
    key: &str,
    written: &Maybe<u64>,
    inherited: Option<Duration>,
) -> Option<Duration> {
    if let Some(ms) = written {
        cx.setting(at, key, written, Some(NULL.to_owned()));
        return fallback::on(Duration::from_millis(ms.value));
    }
    let from = format!("failover.{key}");
    cx.inherited(at, key, fallback::millis(inherited), &from);
    inherited
}

/// The presets that a preset goes on with, each once.
fn fallbacks(
    cx: &mut Context<'_>,
    at: &Path,
    name: &Spanned<String>,
    raw: &raw::Preset,
    entries: &[(Spanned<String>, Spanned<raw::Preset>)],
) -> Vec<usize> {
    cx.setting(at, "fallbacks", &raw.fallbacks, Some("[]".to_owned()));
    let mut indices: Vec<usize> = Vec::new();
    let mut places: Vec<Span> = Vec::new();
    for fallback in raw.fallbacks.iter().flat_map(|fallbacks| &fallbacks.value) {
        let Some(index) = entries
            .iter()
            .position(|(preset, _)| preset.value == fallback.value)
        else {
            unknown(
                cx,
                "E103",
                "preset",
                fallback,
                entries.iter().map(|(preset, _)| preset.value.as_str()),
            );
            continue;
        };
        if fallback.value == name.value {
            cx.report(
                Diagnostic::error("E104", fallback.span, "a preset cannot fall back to itself")
                    .help("remove it here"),
            );
        } else if let Some(first) = indices.iter().position(|known| *known == index) {
            cx.report(
                Diagnostic::error(
                    "E104",
                    fallback.span,
                    "a preset cannot stand twice among the fallbacks",
                )
                .label("the second time")
                .also(places[first], "the first time"),
            );
        } else {
            indices.push(index);
            places.push(fallback.span);
            let theirs = entries[index]
                .1
                .value
                .fallbacks
                .as_ref()
                .filter(|theirs| !theirs.value.is_empty());
            if let Some(theirs) = theirs {
                let message = "a fallback's own fallbacks are not followed";
                let first = theirs.value.first().map_or(theirs.span, |first| first.span);
                cx.report(
                    Diagnostic::warning("W107", fallback.span, message)
                        .also(first, "these")
                        .help("name them here as well if they are wanted"),
                );
            }
        }
    }
    indices
}

fn warn_of_short(cx: &mut Context<'_>, at: &Path, span: Span, deadline: Option<Duration>, model: &Model) {
    let budget = model.fallback.aimd.as_ref().filter(|_| model.targets.len() > 1);
    let budget = budget.map(|aimd| aimd.settings().latency_budget);
    if let (Some(deadline), Some(budget)) = (deadline, budget)
        && deadline < budget
    {
        fallback::warn_short(cx, span, at, deadline, budget);
    }
}

fn unknown<'n>(
    cx: &mut Context<'_>,
    code: &'static str,
    what: &str,
    written: &Spanned<String>,
    known: impl Iterator<Item = &'n str>,
) {
    let help =
        did_you_mean(&written.value, known).unwrap_or_else(|| format!("name a {what} that the file has"));
    let message = format!("there is no {what} `{}`", cx.shown(written.span));
    cx.report(Diagnostic::error(code, written.span, message).help(help));
}

const PRESET_STATUSES: [u16; 12] = [400, 401, 403, 404, 408, 429, 499, 500, 502, 503, 504, 529];
