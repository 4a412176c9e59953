//! Embeddings: vectors of different models do not mix, so everything that may answer must be the same model.

use super::context::Context;
use crate::config::{Kind, Model, Preset, Span, diagnostic::Diagnostic, raw, span::Spanned};

/// Reports everything that could put two models' vectors into one index.
pub(super) fn check(cx: &mut Context<'_>, file: &raw::File, models: &[Model], presets: &[Preset]) {
    let entries = raw::entries(&file.models);
    for (raw, model) in entries.iter().zip(models) {
        if matches!(model.kind, Kind::Embedding { .. }) {
            same_upstream(cx, &raw.1.value);
        }
    }
    for (raw, preset) in file.presets.0.iter().zip(presets) {
        let models = Chain { entries, models };
        models.check(cx, &raw.1.value, preset, presets);
    }
}

/// Every target of an embedding must serve the same model.
fn same_upstream(cx: &mut Context<'_>, raw: &raw::Model) {
    let pools = raw.pools.0.iter().flat_map(|(_, pool)| pool.value.targets.iter());
    let targets = raw.targets.iter().chain(pools).flat_map(|targets| &targets.value);
    let mut named = targets.map(|target| {
        let model = target.value.upstream_model.as_ref();
        (
            model.map_or(target.value.provider.span, |model| model.span),
            model.map(|model| model.value.as_str()),
        )
    });
    let Some(first) = named.next() else { return };
    for other in named.filter(|other| other.1 != first.1) {
        cx.report(
            Diagnostic::error(
                "E109",
                other.0,
                "two targets of an embedding serve different models",
            )
            .label("one model's vectors")
            .also(first.0, "another's")
            .help("use the same upstream_model in every target"),
        );
    }
}

struct Chain<'a> {
    entries: &'a [(Spanned<String>, Spanned<raw::Model>)],
    models: &'a [Model],
}

impl Chain<'_> {
    /// A chain with an embedding in it must be made of the same embedding.
    fn check(&self, cx: &mut Context<'_>, raw: &raw::Preset, preset: &Preset, presets: &[Preset]) {
        let Some(first) = self.models.get(preset.model) else {
            return;
        };
        let written = raw.fallbacks.iter().flat_map(|fallbacks| &fallbacks.value);
        // Faulty names were reported and left out, which is why the places are looked up by name.
        for fallback in preset.fallbacks.iter().filter_map(|index| presets.get(*index)) {
            let Some(other) = self.models.get(fallback.model) else {
                continue;
            };
            let span = written
                .clone()
                .find(|w| w.value == fallback.name)
                .map_or(raw.model.span, |w| w.span);
            if ![first, other]
                .iter()
                .any(|model| matches!(model.kind, Kind::Embedding { .. }))
            {
                continue;
            }
            if let Some(why) = differ(first, other) {
                cx.report(
                    Diagnostic::error(
                        "E109",
                        span,
                        format!("an embedding can only fall back to the same embedding: {why}"),
                    )
                    .label(format!("falls back to model `{}`", other.name))
                    .also(raw.model.span, format!("from model `{}`", first.name)),
                );
            }
            for model in [first, other] {
                self.require_dimensions(cx, model, span);
            }
        }
    }

    fn require_dimensions(&self, cx: &mut Context<'_>, model: &Model, chain: Span) {
        let entry = self.entries.iter().find(|(name, _)| name.value == model.name);
        let Some((name, _)) = entry.filter(|_| model.kind == (Kind::Embedding { dimensions: None })) else {
            return;
        };
        if cx
            .diagnostics
            .iter()
            .any(|known| known.code == "E109" && known.primary.span == name.span)
        {
            return;
        }
        cx.report(
            Diagnostic::error(
                "E109",
                name.span,
                "an embedding in a chain must say its dimensions",
            )
            .also(chain, "the chain")
            .help("add `dimensions: …`"),
        );
    }
}

/// Why two models' vectors do not mix, if they do not.
fn differ(a: &Model, b: &Model) -> Option<&'static str> {
    let (Kind::Embedding { dimensions: x }, Kind::Embedding { dimensions: y }) = (a.kind, b.kind) else {
        return Some("one of the two is not an embedding");
    };
    let upstream = |model: &Model| {
        model
            .targets
            .first()
            .and_then(|target| target.upstream_model.clone())
    };
    match () {
        () if upstream(a) != upstream(b) => Some("the upstream models differ"),
        () if x.is_some() && y.is_some() && x != y => Some("the dimensions differ"),
        () => None,
    }
}
