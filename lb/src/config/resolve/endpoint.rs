//! The addresses of a provider.

use super::{
    context::{Context, Whole},
    found::{duplicates, need},
};
use crate::config::{
    Endpoint, Host, Name, Provider, Scheme, Span, Url, UrlFault, diagnostic::Diagnostic, environment::What,
    path::Path, raw, span::Spanned,
};

/// A provider's endpoints, where `span` is the provider.
pub(super) fn endpoints(
    cx: &mut Context<'_>,
    at: &Path,
    provider: &Name,
    span: Span,
    raw: &raw::Provider,
) -> Vec<Endpoint> {
    let written = raw::items(&raw.endpoints);
    if written.is_empty() {
        let message = format!("provider `{provider}` has no endpoint");
        let span = raw.endpoints.as_ref().map_or(span, |written| written.span);
        cx.report(
            Diagnostic::error("E100", span, message)
                .at(at.key("endpoints").to_string())
                .help("add `endpoints: [{ url: http://host:8000/v1 }]`"),
        );
    }
    let items = written.iter().enumerate();
    let endpoints: Vec<Endpoint> = items
        .map(|(index, raw)| endpoint(cx, &at.key("endpoints").item(index), provider, index, &raw.value))
        .collect();
    let urls = written
        .iter()
        .zip(&endpoints)
        .map(|(raw, endpoint)| (&raw.value.url, endpoint.url.clone()));
    duplicates(cx, "endpoint URL", urls);
    let names = written.iter().zip(&endpoints).map(|(raw, endpoint)| {
        (
            raw.value.name.as_ref().unwrap_or(&raw.value.url),
            endpoint.name.clone(),
        )
    });
    duplicates(cx, "endpoint name", names);
    endpoints
}

fn endpoint(cx: &mut Context<'_>, at: &Path, provider: &Name, index: usize, raw: &raw::Endpoint) -> Endpoint {
    cx.written(at, "url", raw.url.span, None);
    let default = format!("{provider}-{index}");
    let name = match &raw.name {
        Some(written) => cx.name(written),
        None => Name::new(&default).unwrap_or_else(|| {
            let message = format!("the name of this endpoint would be `{default}`, which is too long");
            cx.report(Diagnostic::error("E110", raw.url.span, message).help("give the endpoint a `name`"));
            provider.clone()
        }),
    };
    cx.setting(at, "name", &raw.name, Some(default));
    let weight = cx.count(at, "weight", &raw.weight, Whole::new(1, 0..=1000).code("E251"));
    Endpoint {
        name,
        url: url(cx, &raw.url),
        weight,
    }
}

/// A URL, or a stand-in for what is none.
fn url(cx: &mut Context<'_>, written: &Spanned<String>) -> Url {
    let fault = match written.value.parse::<Url>() {
        Ok(url) => {
            if let Host::Name(host) = url.host() {
                need(cx, written, What::Host(host.clone(), url.port()));
            }
            return url;
        }
        Err(fault) => fault,
    };
    let help = if fault == UrlFault::Unix {
        "write it as unix:/run/server.sock, or with a path as unix:/run/server.sock:/v1"
    } else {
        "write it as http://host:8000/v1 or https://host/v1"
    };
    cx.report(Diagnostic::error("E305", written.span, format!("the URL {fault}")).help(help));
    // Different for every place, so that two faults are not also a duplicate.
    format!("http://invalid-{}", written.span.start)
        .parse()
        .expect("a host of letters, digits and a dash")
}

/// Warns where a key could be read on its way.
pub(super) fn warn_of_open_keys(cx: &mut Context<'_>, provider: &Provider, raw: &raw::Provider) {
    let written = raw::items(&raw.endpoints);
    let key = raw.api_key.as_ref().or(raw.api_key_file.as_ref());
    let Some(key) = key.filter(|_| provider.api_key.is_some()) else {
        return;
    };
    for (raw, endpoint) in written.iter().zip(&provider.endpoints) {
        if endpoint.url.scheme() == Scheme::Http && !endpoint.url.host().is_private() {
            cx.report(
                Diagnostic::warning(
                    "W306",
                    raw.value.url.span,
                    "a key is sent in the clear to a host that is not private",
                )
                .also(key.span, "this key")
                .help("use https"),
            );
        }
    }
}
