//! What a client may put in `model`.

use std::time::Duration;

use super::{
    check,
    context::{Context, DAY_MS, NULL, Whole},
    fallback::{self, Defaults, Traits, fallback},
    front::duplicates,
};
use crate::config::{
    FirstToken, Kind, Model, NamedPool, Peek, Provider, Read, Strategy, StreamMode, Target,
    diagnostic::Diagnostic,
    model_name_fault,
    path::Path,
    raw::{self, Maybe},
    span::Spanned,
    suggest::did_you_mean,
};

pub(super) fn models(
    cx: &mut Context<'_>,
    file: &raw::File,
    providers: &[Provider],
    defaults: &Defaults,
) -> Vec<Model> {
    let entries = file.models.as_ref().map_or(&[][..], |written| &written.value.0);
    if entries.is_empty() {
        let span = file
            .models
            .as_ref()
            .map_or(cx.document.root.span, |written| written.span);
        cx.report(
            Diagnostic::error("E100", span, "there is no model")
                .at("models")
                .help("add `models: { \"*\": { targets: [{ provider: … }] } }` to send every name to one provider"),
        );
    }
    let at = Path::top("models");
    let models: Vec<Model> = entries
        .iter()
        .map(|(name, raw)| {
            check_name(cx, name, "model");
            model(cx, &at.key(&name.value), &name.value, raw, providers, defaults)
        })
        .collect();
    warn_of_idle(cx, file, providers, &models);
    models
}

/// Reports a name that no client could send.
pub(super) fn check_name(cx: &mut Context<'_>, name: &Spanned<String>, what: &str) {
    if let Some(fault) = model_name_fault(&name.value) {
        let message = format!("the name of this {what} {fault}");
        cx.report(Diagnostic::error("E110", name.span, message));
    }
}

fn model(
    cx: &mut Context<'_>,
    at: &Path,
    name: &str,
    raw: &Spanned<raw::Model>,
    providers: &[Provider],
    defaults: &Defaults,
) -> Model {
    let span = raw.span;
    let raw = &raw.value;
    cx.bounds(&raw.cooldown_ms, "E252", 0..=DAY_MS);
    cx.bounds(&raw.concurrency, "E256", 0..=u64::from(u32::MAX));
    if let Some(limit) = &raw.rate_limit {
        check::rate_limit(cx, limit);
    }
    cx.setting(at, "notice", &raw.notice, Some("header".to_owned()));
    let kind = kind(cx, at, raw);
    let strategy = cx.word(at, "strategy", &raw.strategy, ("priority", Strategy::Priority));
    let stream_mode = cx.word(
        at,
        "stream_mode",
        &raw.stream_mode,
        ("strict", StreamMode::Strict),
    );
    let peek = peek(cx, &at.key("peek"), raw);
    let written = raw.targets.as_ref().map_or(&[][..], |targets| &targets.value);
    if written.is_empty() {
        no_targets(cx, at, raw.targets.as_ref().map_or(span, |targets| targets.span));
    }
    let targets = targets(cx, at, written, providers);
    let traits = Traits {
        strategy,
        stream_mode,
        targets: targets.len(),
    };
    Model {
        name: name.to_owned(),
        kind,
        strategy,
        stream_mode,
        first_token: cx.word(at, "first_token", &raw.first_token, ("data", FirstToken::Data)),
        peek,
        max_event_bytes: bytes(
            cx,
            at,
            "max_event_bytes",
            &raw.max_event_bytes,
            Whole::new(1 << 20, 1024..=1 << 30),
        ),
        read: read(cx, at, &raw.read_ms, Read::Provider, NULL),
        stream_idle_timeout: defaults.stream_idle_timeout,
        pools: pools(cx, at, raw, providers),
        targets,
        fallback: fallback(cx, &at.key("fallback"), raw, traits, defaults),
    }
}

fn kind(cx: &mut Context<'_>, at: &Path, raw: &raw::Model) -> Kind {
    cx.bounds(&raw.dimensions, "E256", 1..=1_000_000);
    cx.setting(at, "dimensions", &raw.dimensions, Some(NULL.to_owned()));
    match cx.word(at, "kind", &raw.kind, ("chat", raw::Kind::Chat)) {
        raw::Kind::Embedding => Kind::Embedding {
            dimensions: raw
                .dimensions
                .as_ref()
                .and_then(|dimensions| u32::try_from(dimensions.value).ok()),
        },
        raw::Kind::Chat => {
            if let Some(dimensions) = &raw.dimensions {
                cx.report(
                    Diagnostic::error("E109", dimensions.span, "only an embedding has dimensions")
                        .help("add `kind: embedding`, or remove `dimensions`"),
                );
            }
            Kind::Chat
        }
    }
}

fn peek(cx: &mut Context<'_>, at: &Path, raw: &raw::Model) -> Peek {
    let nothing = raw::Peek::default();
    let raw = raw.peek.as_ref().unwrap_or(&nothing);
    Peek {
        max_wait: cx.time(at, "max_wait_ms", &raw.max_wait_ms, Whole::new(2_000, 1..=DAY_MS)),
        max_bytes: bytes(
            cx,
            at,
            "max_bytes",
            &raw.max_bytes,
            Whole::new(1 << 16, 1..=1 << 30),
        ),
        past_preamble: cx.flag(at, "past_preamble", &raw.past_preamble, true),
        preamble_wait: cx.time(
            at,
            "preamble_wait_ms",
            &raw.preamble_wait_ms,
            Whole::new(300, 1..=DAY_MS),
        ),
    }
}

fn bytes(cx: &mut Context<'_>, at: &Path, key: &str, written: &Maybe<u64>, whole: Whole) -> usize {
    usize::try_from(cx.whole(at, key, written, whole)).unwrap_or(usize::MAX)
}

/// A read timeout that may be left to `inherited`, which is shown as `shown`.
pub(super) fn read(
    cx: &mut Context<'_>,
    at: &Path,
    written: &Maybe<u64>,
    inherited: Read,
    shown: &str,
) -> Read {
    cx.bounds(written, "E256", 0..=DAY_MS);
    match written {
        Some(ms) => {
            cx.setting(at, "read_ms", written, Some(NULL.to_owned()));
            fallback::on(Duration::from_millis(ms.value)).map_or(Read::Off, Read::After)
        }
        None => {
            let from = if shown == NULL {
                "the provider's timeouts.read_ms"
            } else {
                shown
            };
            cx.inherited(at, "read_ms", NULL, from);
            inherited
        }
    }
}

fn no_targets(cx: &mut Context<'_>, at: &Path, span: crate::config::Span) {
    let message = format!("`{at}` has no target: nobody could answer");
    cx.report(
        Diagnostic::error("E100", span, message)
            .at(at.key("targets").to_string())
            .help("add `targets: [{ provider: … }]`"),
    );
}

fn targets(
    cx: &mut Context<'_>,
    at: &Path,
    written: &[Spanned<raw::Target>],
    providers: &[Provider],
) -> Vec<Target> {
    let mut targets = Vec::new();
    for (index, raw) in written.iter().enumerate() {
        let at = at.key("targets").item(index);
        let raw = &raw.value;
        cx.written(&at, "provider", raw.provider.span, None);
        let weight = cx.count(&at, "weight", &raw.weight, Whole::new(1, 0..=1000).code("E251"));
        let enabled = cx.flag(&at, "enabled", &raw.enabled, true);
        let upstream_model = cx.text(&at, "upstream_model", &raw.upstream_model);
        if let Some(written) = &raw.upstream_model {
            check_name(cx, written, "upstream model");
        }
        match providers
            .iter()
            .position(|provider| provider.name.as_str() == raw.provider.value)
        {
            Some(provider) => targets.push(Target {
                provider,
                upstream_model,
                weight,
                enabled,
            }),
            None => {
                let word = cx.shown(raw.provider.span);
                let known = providers.iter().map(|provider| provider.name.as_str());
                let help = did_you_mean(&raw.provider.value, known)
                    .unwrap_or_else(|| "name a provider that stands under `providers`".to_owned());
                cx.report(
                    Diagnostic::error("E101", raw.provider.span, format!("there is no provider {word}"))
                        .help(help),
                );
            }
        }
    }
    let identity = |raw: &Spanned<raw::Target>| {
        let model = raw.value.upstream_model.as_ref().map(|model| model.value.clone());
        (raw.value.provider.value.clone(), model)
    };
    duplicates(
        cx,
        "target",
        written.iter().map(|raw| (&raw.value.provider, identity(raw))),
    );
    targets
}

fn pools(cx: &mut Context<'_>, at: &Path, raw: &raw::Model, providers: &[Provider]) -> Vec<NamedPool> {
    let at = at.key("pools");
    let mut pools = Vec::new();
    for (name, pool) in &raw.pools.0 {
        let at = at.key(&name.value);
        cx.written(&at, "paths", pool.value.paths.span, None);
        if let Some(aimd) = &pool.value.aimd {
            cx.report(
                Diagnostic::error("E216", aimd.span, "a named pool has no share controller")
                    .at(at.key("aimd").to_string())
                    .help("remove `aimd` here; the model's own is under `fallback`"),
            );
        }
        let paths = &pool.value.paths.value;
        if paths.is_empty() {
            let message = format!("`{at}` has no path: no request could use it");
            cx.report(
                Diagnostic::error("E100", pool.value.paths.span, message).at(at.key("paths").to_string()),
            );
        }
        for path in paths.iter().filter(|path| !path.value.starts_with('/')) {
            cx.out_of_bounds(path.span, "E111", "begin with /");
        }
        let written = pool
            .value
            .targets
            .as_ref()
            .map_or(&[][..], |targets| &targets.value);
        if written.is_empty() {
            no_targets(
                cx,
                &at,
                pool.value
                    .targets
                    .as_ref()
                    .map_or(pool.span, |targets| targets.span),
            );
        }
        pools.push(NamedPool {
            name: cx.name(name),
            paths: paths.iter().map(|path| path.value.clone()).collect(),
            targets: targets(cx, &at, written, providers),
        });
    }
    if raw.pools.0.is_empty() {
        let value = "{}".to_owned();
        cx.note(
            &Path::default(),
            &at.to_string(),
            value.clone(),
            Some(value),
            crate::config::explain::Origin::Default,
        );
    }
    let names = raw
        .pools
        .0
        .iter()
        .map(|(name, _)| name)
        .filter(|name| name.value == "default");
    for name in names.collect::<Vec<_>>() {
        cx.report(
            Diagnostic::error(
                "E106",
                name.span,
                "the model's own targets are already the pool `default`",
            )
            .help("give this pool another name"),
        );
    }
    pools
}

/// Warns of providers that nothing uses, and of models that nobody can answer.
fn warn_of_idle(cx: &mut Context<'_>, file: &raw::File, providers: &[Provider], models: &[Model]) {
    let all = |model: &Model| -> Vec<Target> {
        model
            .targets
            .iter()
            .chain(model.pools.iter().flat_map(|pool| &pool.targets))
            .cloned()
            .collect()
    };
    let used: Vec<usize> = models
        .iter()
        .flat_map(all)
        .map(|target| target.provider)
        .collect();
    let entries = file
        .providers
        .as_ref()
        .map_or(&[][..], |written| &written.value.0);
    for (index, (name, _)) in entries
        .iter()
        .enumerate()
        .filter(|(index, _)| !used.contains(index))
    {
        debug_assert!(index < providers.len(), "every entry became a provider");
        let message = format!("provider `{}` is never used", cx.shown(name.span));
        cx.report(
            Diagnostic::warning("W108", name.span, message)
                .help("name it in a model's targets, or remove it"),
        );
    }
    let entries = file.models.as_ref().map_or(&[][..], |written| &written.value.0);
    for ((name, _), model) in entries.iter().zip(models) {
        let off = |target: &Target| !target.enabled || !providers[target.provider].enabled;
        if !model.targets.is_empty() && model.targets.iter().all(off) {
            let message = format!(
                "model `{}` can never be used: all its targets are switched off",
                cx.shown(name.span)
            );
            cx.report(
                Diagnostic::warning("W108", name.span, message).help("switch one on, or remove the model"),
            );
        }
    }
}
