//! Who answers for a model.

use super::{
    context::{Context, Whole},
    front::duplicates,
    model::check_name,
};
use crate::config::{
    Model, NamedPool, Provider, Span, Target, diagnostic::Diagnostic, explain::Origin, path::Path, raw, span::Spanned,
    suggest::did_you_mean,
};

/// The providers as the file names them, in its order.
pub(super) fn provider_names(file: &raw::File) -> Vec<&Spanned<String>> {
    file.providers.iter().flat_map(|providers| &providers.value.0).map(|(name, _)| name).collect()
}

pub(super) fn targets(
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

pub(super) fn pools(cx: &mut Context<'_>, at: &Path, raw: &raw::Model, providers: &[Provider]) -> Vec<NamedPool> {
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

pub(super) fn no_targets(cx: &mut Context<'_>, at: &Path, span: crate::config::Span) {
    let message = format!("`{at}` has no target: nobody could answer");
    cx.report(
        Diagnostic::error("E100", span, message)
            .at(at.key("targets").to_string())
            .help("add `targets: [{ provider: … }]`"),
    );
}

/// Warns of providers that nothing uses, and of models that nobody can answer.
pub(super) fn warn_of_idle(cx: &mut Context<'_>, file: &raw::File, providers: &[Provider], models: &[Model]) {
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
