//! What keeps the requests of a conversation together.

use http::HeaderName;

use super::context::{Context, NULL};
use crate::config::{Affinity, Balance, HashKey, Model, Provider, diagnostic::Diagnostic, path::Path, raw};

pub(super) fn affinity(cx: &mut Context<'_>, at: &Path, raw: &raw::Model) -> Option<Affinity> {
    let Some(affinity) = &raw.affinity else {
        cx.setting::<()>(at, "affinity", &None, Some(NULL.to_owned()));
        return None;
    };
    let key = &affinity.key;
    cx.written(&at.key("affinity"), "key", key.span, None);
    let header = || {
        let name = key.value.strip_prefix("header:")?.trim();
        HeaderName::from_bytes(name.as_bytes()).ok()
    };
    match key.value.as_str() {
        "first_messages" => Some(Affinity::FirstMessages),
        "prompt_cache_key" => Some(Affinity::PromptCacheKey),
        _ => {
            let header = header().map(Affinity::Header);
            if header.is_none() {
                let fault = "be `prompt_cache_key`, `first_messages`, or `header:` and the name of a header";
                cx.out_of_bounds(key.span, "E111", fault);
            }
            header
        }
    }
}

/// Warns of providers that choose their endpoints by conversations that no model tells apart.
pub(super) fn warn_of_no_conversation(
    cx: &mut Context<'_>,
    file: &raw::File,
    providers: &[Provider],
    models: &[Model],
) {
    let written = raw::entries(&file.providers);
    for (place, (provider, (_, raw))) in providers.iter().zip(written).enumerate() {
        let Some(key) = &raw.value.hash_key else { continue };
        let told = |model: &Model| {
            let named = model.pools.iter().flat_map(|pool| &pool.targets);
            let mut targets = model.targets.iter().chain(named);
            model.affinity.is_some() && targets.any(|target| target.provider == place)
        };
        if provider.balance == Balance::Hash(HashKey::Conversation) && !models.iter().any(told) {
            let message = "no model of this provider tells its conversations apart: its requests go anywhere";
            cx.report(
                Diagnostic::warning("W225", key.span, message)
                    .help("add `affinity: { key: prompt_cache_key }` to a model that names it"),
            );
        }
    }
}
