//! Who answers for a model.

use super::{
    context::{Context, Whole},
    found::duplicates,
    model::check_name,
};
use crate::config::{
    Model, NamedPool, Provider, Route, Span, Target, To, diagnostic::Diagnostic, path::Path, raw,
    span::Spanned, suggest::did_you_mean,
};

pub(super) fn targets(
    cx: &mut Context<'_>,
    at: &Path,
    written: &[Spanned<raw::Target>],
    providers: &[&str],
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
        let Some(provider) = providers
            .iter()
            .position(|provider| *provider == raw.provider.value)
        else {
            let help = did_you_mean(&raw.provider.value, providers.iter().copied())
                .unwrap_or_else(|| "name a provider that stands under `providers`".to_owned());
            let message = format!("there is no provider `{}`", cx.shown(raw.provider.span));
            cx.report(Diagnostic::error("E101", raw.provider.span, message).help(help));
            continue;
        };
        targets.push(Target {
            provider,
            upstream_model,
            weight,
            enabled,
        });
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

pub(super) fn pools(cx: &mut Context<'_>, at: &Path, raw: &raw::Model, providers: &[&str]) -> Vec<NamedPool> {
    if raw.pools.0.is_empty() {
        cx.setting::<()>(at, "pools", &None, Some("{}".to_owned()));
    }
    let mut pools = Vec::new();
    for (name, pool) in &raw.pools.0 {
        let at = at.key("pools").key(&name.value);
        if name.value == "default" {
            let message = "the model's own targets are already the pool `default`";
            cx.report(Diagnostic::error("E106", name.span, message).help("give this pool another name"));
        }
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
        let written = raw::items(&pool.value.targets);
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
    pools
}

pub(super) fn no_targets(cx: &mut Context<'_>, at: &Path, span: Span) {
    let message = format!("`{at}` has no target: nobody could answer");
    cx.report(
        Diagnostic::error("E100", span, message)
            .at(at.key("targets").to_string())
            .help("add `targets: [{ provider: … }]`"),
    );
}

/// Warns of providers that nothing uses, and of models that nobody can answer.
pub(super) fn warn_of_idle(
    cx: &mut Context<'_>,
    file: &raw::File,
    providers: &[Provider],
    models: &[Model],
    routes: &[Route],
) {
    // A target with an unknown provider was meant for one of those that seem unused.
    let misspelt = cx.diagnostics.iter().any(|diagnostic| diagnostic.code == "E101");
    let targets = |model: &Model| {
        let pools = model.pools.iter().flat_map(|pool| &pool.targets);
        model
            .targets
            .iter()
            .chain(pools)
            .map(|target| target.provider)
            .collect::<Vec<_>>()
    };
    let routed = routes.iter().filter_map(|route| match route.to {
        To::Models => None,
        To::Provider(provider) => Some(provider),
    });
    let used: Vec<usize> = models.iter().flat_map(targets).chain(routed).collect();
    for (index, (name, _)) in raw::entries(&file.providers).iter().enumerate() {
        if !misspelt && !used.contains(&index) {
            let message = format!("provider `{}` is never used", cx.shown(name.span));
            let help = "name it in a model's targets or a route, or remove it";
            cx.report(Diagnostic::warning("W108", name.span, message).help(help));
        }
    }
    for ((name, _), model) in raw::entries(&file.models).iter().zip(models) {
        let off = |target: &Target| !target.enabled || !providers[target.provider].enabled;
        if !model.targets.is_empty() && model.targets.iter().all(off) {
            let shown = cx.shown(name.span);
            let message = format!("model `{shown}` can never be used: all its targets are switched off");
            let help = "switch one on, or remove the model";
            cx.report(Diagnostic::warning("W108", name.span, message).help(help));
        }
    }
}
