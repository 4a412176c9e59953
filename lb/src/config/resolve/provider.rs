//! Where requests can go.

use std::path::PathBuf;

use http::{HeaderName, HeaderValue};

use super::{
    check,
    context::{Context, DAY_MS, NULL, Whole},
    front::{duplicates, need, need_file},
};
use crate::config::{
    ApiKey, AuthHeader, ClientTls, Connections, Endpoint, Host, Name, Provider, Scheme, Secret, Timeouts,
    Url, UrlFault, diagnostic::Diagnostic, environment::What, explain::Origin, later, path::Path, raw,
    span::Spanned,
};
use crate::policy::{OutOfBounds, health};

pub(super) fn providers(cx: &mut Context<'_>, file: &raw::File) -> Vec<Provider> {
    let entries = file
        .providers
        .as_ref()
        .map_or(&[][..], |written| &written.value.0);
    if entries.is_empty() {
        let span = file
            .providers
            .as_ref()
            .map_or(cx.document.root.span, |written| written.span);
        cx.report(
            Diagnostic::error("E100", span, "there is no provider")
                .at("providers")
                .help("add `providers:` with at least one name under it"),
        );
    }
    let at = Path::top("providers");
    entries
        .iter()
        .map(|(name, raw)| provider(cx, &at.key(&name.value), name, raw))
        .collect()
}

fn provider(
    cx: &mut Context<'_>,
    at: &Path,
    name: &Spanned<String>,
    raw: &Spanned<raw::Provider>,
) -> Provider {
    let span = raw.span;
    let raw = &raw.value;
    check::traffic(cx, raw);
    let name = cx.name(name);
    let connections = connections(cx, &at.key("connections"), raw);
    let timeouts = timeouts(cx, &at.key("timeouts"), raw);
    let (health, count_backpressure, fail_open) = health(cx, &at.key("health"), raw);
    let provider = Provider {
        enabled: cx.flag(at, "enabled", &raw.enabled, true),
        endpoints: endpoints(cx, at, &name, span, raw),
        api_key: api_key(cx, at, raw),
        auth_header: cx.word(
            at,
            "auth_header",
            &raw.auth_header,
            ("authorization", AuthHeader::Authorization),
        ),
        passthrough_auth: cx.flag(at, "passthrough_auth", &raw.passthrough_auth, false),
        headers: headers(cx, at, raw),
        tls: tls(cx, &at.key("tls"), raw),
        connections,
        timeouts,
        health,
        count_backpressure,
        fail_open,
        concurrency: cx.count(
            at,
            "concurrency",
            &raw.concurrency,
            Whole::new(0, 0..=u64::from(u32::MAX)),
        ),
        name,
    };
    cx.setting(at, "balance", &raw.balance, Some("least_inflight".to_owned()));
    warn_of_open_keys(cx, &provider, raw);
    provider
}

fn endpoints(
    cx: &mut Context<'_>,
    at: &Path,
    provider: &Name,
    span: crate::config::Span,
    raw: &raw::Provider,
) -> Vec<Endpoint> {
    let written = raw.endpoints.as_ref().map_or(&[][..], |written| &written.value);
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
    if fault == UrlFault::Unix {
        later::refuse(cx, written.span, "an endpoint behind a unix socket");
    } else {
        cx.report(
            Diagnostic::error("E305", written.span, format!("the URL {fault}"))
                .help("write it as http://host:8000/v1 or https://host/v1"),
        );
    }
    // Different for every place, so that two faults are not also a duplicate.
    format!("http://invalid-{}", written.span.start)
        .parse()
        .expect("a host of letters, digits and a dash")
}

fn api_key(cx: &mut Context<'_>, at: &Path, raw: &raw::Provider) -> Option<ApiKey> {
    let (value, origin) = match &raw.api_key {
        Some(written) => ("set", Origin::Line(cx.document.line(written.span))),
        None => (NULL, Origin::Default),
    };
    cx.note(at, "api_key", value.to_owned(), Some(NULL.to_owned()), origin);
    let file = cx.text(at, "api_key_file", &raw.api_key_file);
    need_file(cx, &raw.api_key_file, What::Secret);
    match (&raw.api_key, file) {
        (Some(key), Some(_)) => {
            let also = raw.api_key_file.as_ref().map_or(key.span, |file| file.span);
            cx.report(
                Diagnostic::error("E303", key.span, "a provider has one key")
                    .label("this is one")
                    .also(also, "this is another")
                    .help("keep one of the two"),
            );
            None
        }
        (Some(key), None) => {
            if HeaderValue::from_str(&key.value).is_err() {
                let message = "the key holds a character that no header can carry";
                cx.report(
                    Diagnostic::error("E308", key.span, message).help("look for a line end or a stray quote"),
                );
            }
            Some(ApiKey::Inline(Secret::new(key.value.as_str())))
        }
        (None, Some(file)) => Some(ApiKey::File(PathBuf::from(file))),
        (None, None) => None,
    }
}

fn headers(cx: &mut Context<'_>, at: &Path, raw: &raw::Provider) -> Vec<(HeaderName, HeaderValue)> {
    let entries = &raw.headers.0;
    if entries.is_empty() {
        cx.note(
            at,
            "headers",
            "{}".to_owned(),
            Some("{}".to_owned()),
            Origin::Default,
        );
    }
    let mut headers = Vec::new();
    for (name, value) in entries {
        let line = cx.document.line(value.span);
        cx.note(
            &at.key("headers"),
            &name.value,
            "set".to_owned(),
            None,
            Origin::Line(line),
        );
        let Ok(parsed) = HeaderName::from_bytes(name.value.as_bytes()) else {
            let message = format!("{} is not the name of a header", cx.shown(name.span));
            cx.report(Diagnostic::error("E308", name.span, message));
            continue;
        };
        if FRAMING_HEADERS.contains(&parsed.as_str()) {
            let message = format!("the header {parsed} belongs to the connection and is set by lb");
            cx.report(Diagnostic::error("E308", name.span, message).help("remove it"));
        }
        match HeaderValue::from_str(&value.value) {
            Ok(mut value) => {
                value.set_sensitive(true);
                headers.push((parsed, value));
            }
            Err(_) => cx.report(Diagnostic::error(
                "E308",
                value.span,
                "the value holds a character that no header can carry",
            )),
        }
    }
    headers
}

fn tls(cx: &mut Context<'_>, at: &Path, raw: &raw::Provider) -> ClientTls {
    let nothing = raw::ClientTls::default();
    let raw = raw.tls.as_ref().unwrap_or(&nothing);
    if let Some(verify) = raw.verify.as_ref().filter(|verify| !verify.value) {
        cx.report(
            Diagnostic::warning(
                "W307",
                verify.span,
                "anybody between lb and this provider can read and change everything",
            )
            .help("name the certificate to trust in `ca_file` instead"),
        );
    }
    need_file(cx, &raw.ca_file, What::File);
    cx.require(&raw.server_name, "E111", "be a host name or an address", |name| {
        format!("https://{name}")
            .parse::<Url>()
            .is_ok_and(|url| url.authority() == url.host().to_string() && url.path().is_empty())
    });
    ClientTls {
        ca_file: cx.text(at, "ca_file", &raw.ca_file).map(PathBuf::from),
        server_name: cx.text(at, "server_name", &raw.server_name),
        verify: cx.flag(at, "verify", &raw.verify, true),
    }
}

fn connections(cx: &mut Context<'_>, at: &Path, raw: &raw::Provider) -> Connections {
    let nothing = raw::Connections::default();
    let raw = raw.connections.as_ref().unwrap_or(&nothing);
    cx.setting(at, "http_version", &raw.http_version, Some("auto".to_owned()));
    cx.bounds(&raw.max_per_endpoint, "E256", 0..=1_000_000);
    cx.bounds(&raw.max_age_ms, "E256", 0..=DAY_MS);
    cx.bounds(&raw.max_streams_per_connection, "E256", 1..=1000);
    cx.bounds(&raw.idle_timeout_ms, "E256", 1..=DAY_MS);
    cx.setting(at, "idle_timeout_ms", &raw.idle_timeout_ms, Some(NULL.to_owned()));
    Connections {
        max_idle_per_endpoint: cx.count(
            at,
            "max_idle_per_endpoint",
            &raw.max_idle_per_endpoint,
            Whole::new(64, 0..=1_000_000),
        ),
        idle_timeout: raw
            .idle_timeout_ms
            .as_ref()
            .map(|ms| std::time::Duration::from_millis(ms.value)),
    }
}

fn timeouts(cx: &mut Context<'_>, at: &Path, raw: &raw::Provider) -> Timeouts {
    let nothing = raw::Timeouts::default();
    let raw = raw.timeouts.as_ref().unwrap_or(&nothing);
    let read = cx.time(at, "read_ms", &raw.read_ms, Whole::new(300_000, 0..=DAY_MS));
    Timeouts {
        connect: cx.time(at, "connect_ms", &raw.connect_ms, Whole::new(5_000, 1..=DAY_MS)),
        read: Some(read).filter(|read| !read.is_zero()),
    }
}

/// Endpoint health, whether backpressure counts, and whether to fail open.
fn health(cx: &mut Context<'_>, at: &Path, raw: &raw::Provider) -> (Option<health::Params>, bool, bool) {
    let nothing = raw::Health::default();
    let raw = raw.health.as_ref().unwrap_or(&nothing);
    let default = health::Settings::default();
    let enabled = cx.flag(at, "enabled", &raw.enabled, true);
    let whole = |cx: &mut Context<'_>, key: &str, written: &raw::Maybe<u64>, default: u32| {
        // Bounds are the policy's to know; these only keep the number in its type.
        cx.count(
            at,
            key,
            written,
            Whole::new(default.into(), 0..=u64::from(u32::MAX)).code("E230"),
        )
    };
    let time = |cx: &mut Context<'_>, key: &str, written: &raw::Maybe<u64>, default: std::time::Duration| {
        let default = u64::try_from(default.as_millis()).unwrap_or(u64::MAX);
        cx.time(
            at,
            key,
            written,
            Whole::new(default, 0..=u64::from(u32::MAX)).code("E230"),
        )
    };
    let settings = health::Settings {
        consecutive_failures: whole(
            cx,
            "consecutive_failures",
            &raw.consecutive_failures,
            default.consecutive_failures,
        ),
        failure_ratio: super::fallback::ratio(
            cx,
            at,
            "failure_ratio",
            &raw.failure_ratio,
            default.failure_ratio,
        ),
        failure_min_volume: whole(
            cx,
            "failure_min_volume",
            &raw.failure_min_volume,
            default.failure_min_volume,
        ),
        window: time(cx, "window_ms", &raw.window_ms, default.window),
        ejection: time(cx, "ejection_ms", &raw.ejection_ms, default.ejection),
        max_ejection: time(cx, "max_ejection_ms", &raw.max_ejection_ms, default.max_ejection),
        half_open_probes: whole(
            cx,
            "half_open_probes",
            &raw.half_open_probes,
            default.half_open_probes,
        ),
        max_ejection_percent: whole(
            cx,
            "max_ejection_percent",
            &raw.max_ejection_percent,
            default.max_ejection_percent,
        ),
    };
    let params = match health::Params::new(settings) {
        Ok(params) => enabled.then_some(params),
        Err(faults) => {
            for fault in faults {
                report_bound(cx, at, &fault, "E230");
            }
            None
        }
    };
    let backpressure = cx.flag(at, "count_backpressure", &raw.count_backpressure, false);
    (
        params,
        backpressure,
        cx.flag(at, "fail_open", &raw.fail_open, true),
    )
}

/// Reports a policy's own bound at the key that breaks it; its fields are named as the keys are.
pub(super) fn report_bound(cx: &mut Context<'_>, at: &Path, fault: &OutOfBounds, code: &'static str) {
    let key = at.key(fault.field).to_string();
    let find = |key: &str| cx.document.root.find(key).map(|node| node.span);
    // A bound that names another key can be broken by that key alone.
    let other = fault
        .must
        .split(['[', '(', ',', ' ', ')', ']'])
        .find_map(|word| find(&at.key(word).to_string()));
    match (find(&key), other) {
        (Some(span), other) => {
            let message = format!("`{key}` must {}, not {}", fault.must, cx.shown(span));
            let mut diagnostic = Diagnostic::error(code, span, message).at(key);
            if let Some(other) = other {
                diagnostic = diagnostic.also(other, "the other bound");
            }
            cx.report(diagnostic);
        }
        (None, Some(other)) => {
            let message = format!("`{key}`, which is at its default, must {}", fault.must);
            cx.report(Diagnostic::error(code, other, message).label("this moved the bound"));
        }
        (None, None) => cx.report(
            Diagnostic::error(
                code,
                cx.document.root.span,
                format!("`{key}` must {}", fault.must),
            )
            .at(key),
        ),
    }
}

fn warn_of_open_keys(cx: &mut Context<'_>, provider: &Provider, raw: &raw::Provider) {
    let written = raw.endpoints.as_ref().map_or(&[][..], |written| &written.value);
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

/// Headers that say how a message is framed or where it goes: RFC 9110, 7.6.1, and those that lb makes itself.
const FRAMING_HEADERS: [&str; 11] = [
    "connection",
    "content-length",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
