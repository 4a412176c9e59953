//! Which requests go where.

use http::HeaderName;

use super::{
    context::{Context, NULL},
    model::check_name,
    provider::{FRAMING_HEADERS, headers},
};
use crate::config::{
    HeaderChanges, HostPattern, Match, Model, Preset, Provider, Route, To, Url,
    diagnostic::Diagnostic,
    path::Path,
    raw::{self, Maybe},
    span::Spanned,
    suggest::did_you_mean,
};

/// The routes; where the file has none, everything under `/v1/` goes by its model.
pub(super) fn routes(
    cx: &mut Context<'_>,
    file: &raw::File,
    providers: &[Provider],
    models: &[Model],
    presets: &[Preset],
) -> Vec<Route> {
    let Some(written) = &file.routes else {
        cx.setting::<()>(&Path::default(), "routes", &None, Some(DEFAULT.to_owned()));
        return vec![by_model("/v1")];
    };
    if written.value.is_empty() {
        cx.report(
            Diagnostic::error("E100", written.span, "there is no route: nothing would be served")
                .at("routes")
                .help("leave `routes` out for the usual one"),
        );
    }
    let at = Path::top("routes");
    let items = written.value.iter().enumerate();
    items
        .map(|(index, raw)| {
            let at = at.item(index);
            let route = route(cx, &at, raw, providers);
            default_model(cx, raw, models, presets);
            route
        })
        .collect()
}

fn by_model(path_prefix: &str) -> Route {
    Route {
        matches: Match {
            path_prefix: path_prefix.to_owned(),
            ..Match::default()
        },
        to: To::Models,
        default_model: None,
        rewrite_prefix: None,
        request_headers: HeaderChanges::default(),
        response_headers: HeaderChanges::default(),
    }
}

fn route(cx: &mut Context<'_>, at: &Path, raw: &raw::Route, providers: &[Provider]) -> Route {
    cx.written(at, "to", raw.to.span, None);
    Route {
        matches: matches(cx, &at.key("match"), &raw.r#match),
        to: to(cx, at, &raw.to, providers),
        default_model: cx.text(at, "default_model", &raw.default_model),
        rewrite_prefix: {
            cx.setting(at, "rewrite_prefix", &raw.rewrite_prefix, Some(NULL.to_owned()));
            raw.rewrite_prefix.as_ref().map(|written| prefix(cx, written))
        },
        request_headers: changes(cx, &at.key("request_headers"), raw.request_headers.as_ref()),
        response_headers: changes(cx, &at.key("response_headers"), raw.response_headers.as_ref()),
    }
}

fn matches(cx: &mut Context<'_>, at: &Path, raw: &raw::Match) -> Match {
    cx.setting(at, "path_prefix", &raw.path_prefix, Some(NULL.to_owned()));
    cx.setting(at, "host", &raw.host, Some(NULL.to_owned()));
    let path_prefix = raw.path_prefix.as_ref().map(|written| prefix(cx, written));
    Match {
        path_prefix: path_prefix.unwrap_or_default(),
        host: raw.host.as_ref().and_then(|written| host(cx, written)),
        headers: headers(cx, at, "headers", &raw.headers),
    }
}

/// The beginning of a path, without the slash at its end.
fn prefix(cx: &mut Context<'_>, written: &Spanned<String>) -> String {
    let path = written.value.trim_end_matches('/');
    let is_path = written
        .value
        .parse::<http::uri::PathAndQuery>()
        .is_ok_and(|parsed| {
            parsed.path() == written.value && parsed.query().is_none() && written.value.starts_with('/')
        });
    if !is_path {
        cx.out_of_bounds(written.span, "E111", "be a path that begins with /");
    }
    path.to_owned()
}

fn host(cx: &mut Context<'_>, written: &Spanned<String>) -> Option<HostPattern> {
    let text = written.value.to_ascii_lowercase();
    let (name, under) = match text.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (text.as_str(), false),
    };
    let url = format!("http://{name}").parse::<Url>();
    // A port that is the scheme's own would be taken for none.
    let port = if name.starts_with('[') {
        !name.ends_with(']')
    } else {
        name.contains(':')
    };
    if port || !url.is_ok_and(|url| url.host().to_string() == name && url.path().is_empty()) {
        cx.out_of_bounds(
            written.span,
            "E111",
            "be a host name or an address, without a port",
        );
        return None;
    }
    Some(if under {
        HostPattern::Under(format!(".{name}"))
    } else {
        HostPattern::Exact(text)
    })
}

fn to(cx: &mut Context<'_>, at: &Path, written: &Spanned<raw::To>, providers: &[Provider]) -> To {
    let raw::To::Provider(to) = &written.value else {
        return To::Models;
    };
    let names = || providers.iter().map(|provider| provider.name.as_str());
    if let Some(index) = names().position(|name| name == to.provider) {
        return To::Provider(index);
    }
    let help = did_you_mean(&to.provider, names())
        .unwrap_or_else(|| "name a provider that stands under `providers`".to_owned());
    let name = cx.document.root.find(&at.key("to").key("provider").to_string());
    let span = name.map_or(written.span, |name| name.span);
    let message = format!("there is no provider `{}`", cx.shown(span));
    cx.report(Diagnostic::error("E101", span, message).help(help));
    To::Models
}

fn default_model(cx: &mut Context<'_>, raw: &raw::Route, models: &[Model], presets: &[Preset]) {
    let Some(written) = &raw.default_model else { return };
    if matches!(raw.to.value, raw::To::Provider(_)) {
        let message = "a route to a provider looks at no model";
        cx.report(
            Diagnostic::error("E111", written.span, message)
                .also(raw.to.span, "this route")
                .help("remove `default_model`"),
        );
    }
    check_name(cx, written, "default model");
    known(cx, written, models, presets);
}

/// Reports a name that nothing answers for.
pub(super) fn known(cx: &mut Context<'_>, written: &Spanned<String>, models: &[Model], presets: &[Preset]) {
    let name = written.value.as_str();
    let preset = presets.iter().any(|preset| preset.name == name);
    if preset || models.iter().any(|model| model.pattern().takes(name)) {
        return;
    }
    let names = models.iter().map(|model| model.name.as_str());
    let names = names.chain(presets.iter().map(|preset| preset.name.as_str()));
    let help = did_you_mean(name, names).unwrap_or_else(|| "name a model or a preset".to_owned());
    let message = format!("there is no model or preset `{}`", cx.shown(written.span));
    cx.report(Diagnostic::error("E102", written.span, message).help(help));
}

fn changes(cx: &mut Context<'_>, at: &Path, raw: Option<&raw::HeaderChanges>) -> HeaderChanges {
    let nothing = raw::HeaderChanges::default();
    let raw = raw.unwrap_or(&nothing);
    HeaderChanges {
        set: headers(cx, at, "set", &raw.set),
        remove: removed(cx, at, &raw.remove),
    }
}

fn removed(cx: &mut Context<'_>, at: &Path, raw: &Maybe<Vec<Spanned<String>>>) -> Vec<HeaderName> {
    cx.setting(at, "remove", raw, Some("[]".to_owned()));
    let mut names = Vec::new();
    for written in raw::items(raw) {
        match HeaderName::from_bytes(written.value.as_bytes()) {
            Ok(name) if FRAMING_HEADERS.contains(&name.as_str()) => {
                let message = format!("the header {name} belongs to the connection and is lb's to say");
                cx.report(Diagnostic::error("E308", written.span, message).help("remove it from this list"));
            }
            Ok(name) => names.push(name),
            Err(_) => {
                let message = format!("`{}` is not the name of a header", cx.shown(written.span));
                cx.report(Diagnostic::error("E308", written.span, message));
            }
        }
    }
    names
}

const DEFAULT: &str = "[{ match: { path_prefix: /v1/ }, to: models }]";
