//! Where requests can go.

use std::path::PathBuf;

use http::{HeaderName, HeaderValue};

use super::{
    connections::{connections, dns},
    context::{Context, DAY_MS, NULL, Whole},
    endpoint::{endpoints, warn_of_open_keys},
    found::need_file,
    health::{Found, breaker, health, kernel_signals},
    retries::retries,
    tls,
    traffic::{balance, pending, rate_limit},
};
use crate::config::{
    ApiKey, AuthHeader, Certificate, ClientTls, Provider, Secret, Timeouts, Url,
    diagnostic::Diagnostic,
    environment::What,
    explain::Origin,
    path::Path,
    raw,
    span::{Entries, Spanned},
};

pub(super) fn providers(cx: &mut Context<'_>, file: &raw::File) -> Vec<Provider> {
    let entries = raw::entries(&file.providers);
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
    let name = cx.name(name);
    let dns = dns(cx, &at.key("dns"), raw.dns.as_ref());
    let connections = connections(cx, &at.key("connections"), raw);
    let timeouts = timeouts(cx, &at.key("timeouts"), raw);
    let Found {
        params: health,
        probe,
        count_backpressure,
        fail_open,
    } = health(cx, &at.key("health"), raw);
    let breaker = breaker(cx, &at.key("circuit_breaker"), raw);
    let retries = retries(cx, &at.key("retries"), raw);
    let kernel_signals = kernel_signals(cx, &at.key("health"), raw);
    let concurrency = cx.count(
        at,
        "concurrency",
        &raw.concurrency,
        Whole::new(0, 0..=u64::from(u32::MAX)),
    );
    let provider = Provider {
        balance: balance(cx, at, raw),
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
        propagate_trace: cx.flag(at, "propagate_trace", &raw.propagate_trace, false),
        headers: headers(cx, at, "headers", &raw.headers),
        tls: tls(cx, &at.key("tls"), raw),
        connections,
        dns,
        timeouts,
        health,
        count_backpressure,
        fail_open,
        breaker,
        retries,
        kernel_signals,
        probe,
        concurrency,
        pending: pending(cx, at, raw, concurrency),
        rate_limit: rate_limit(cx, at, raw.rate_limit.as_ref(), Some(concurrency)),
        name,
    };
    warn_of_open_keys(cx, &provider, raw);
    provider
}

fn api_key(cx: &mut Context<'_>, at: &Path, raw: &raw::Provider) -> Option<ApiKey> {
    match &raw.api_key {
        Some(written) => {
            let line = cx.document.line(written.span);
            cx.note(
                at,
                "api_key",
                "set".to_owned(),
                Some(NULL.to_owned()),
                Origin::Line(line),
            );
        }
        None => cx.setting(at, "api_key", &raw.api_key, Some(NULL.to_owned())),
    }
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

/// Fields with their values, none of which is the connection's own.
pub(super) fn headers(
    cx: &mut Context<'_>,
    at: &Path,
    key: &str,
    entries: &Entries<Spanned<String>>,
) -> Vec<(HeaderName, HeaderValue)> {
    let entries = &entries.0;
    if entries.is_empty() {
        cx.setting::<()>(at, key, &None, Some("{}".to_owned()));
    }
    let mut headers = Vec::new();
    for (name, value) in entries {
        let line = cx.document.line(value.span);
        cx.note(
            &at.key(key),
            &name.value,
            "set".to_owned(),
            None,
            Origin::Line(line),
        );
        let Ok(parsed) = HeaderName::from_bytes(name.value.as_bytes()) else {
            let message = format!("`{}` is not the name of a header", cx.shown(name.span));
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
        client: client(cx, at, raw),
    }
}

/// The certificate that is shown to endpoints, with its key.
fn client(cx: &mut Context<'_>, at: &Path, raw: &raw::ClientTls) -> Option<Certificate> {
    need_file(cx, &raw.client_cert_file, What::File);
    need_file(cx, &raw.client_key_file, What::Secret);
    let chain = cx.text(at, "client_cert_file", &raw.client_cert_file);
    let key = cx.text(at, "client_key_file", &raw.client_key_file);
    let alone = match (&raw.client_cert_file, &raw.client_key_file) {
        (Some(one), None) => Some((one.span, "this certificate has no client_key_file beside it")),
        (None, Some(one)) => Some((one.span, "this key has no client_cert_file beside it")),
        _ => None,
    };
    if let Some((span, label)) = alone {
        cx.report(
            Diagnostic::error("E304", span, "a certificate and its key belong together")
                .label(label)
                .help("set both, or none"),
        );
    }
    let certificate = Certificate {
        cert_file: chain?.into(),
        key_file: key?.into(),
    };
    need_file(cx, &raw.client_cert_file, |_| tls::together(&certificate));
    Some(certificate)
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

/// Headers that say how a message is framed or where it goes: RFC 9110, 7.6.1, and those that lb makes itself.
pub(super) const FRAMING_HEADERS: [&str; 11] = [
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
