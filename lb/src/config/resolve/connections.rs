//! How a provider's endpoints are reached.

use std::time::Duration;

use super::{
    context::{Context, DAY_MS, NULL, Whole},
    found::need,
};
use crate::config::{
    ConnectProxy, Connections, Dns, Host, HttpVersion, Scheme, Secret, Url,
    diagnostic::Diagnostic,
    environment::What,
    explain::Origin,
    path::Path,
    raw::{self, Maybe},
    span::Spanned,
};

pub(super) fn connections(cx: &mut Context<'_>, at: &Path, raw: &raw::Provider) -> Connections {
    let nothing = raw::Connections::default();
    let raw = raw.connections.as_ref().unwrap_or(&nothing);
    cx.bounds(&raw.idle_timeout_ms, "E256", 1..=DAY_MS);
    cx.setting(at, "idle_timeout_ms", &raw.idle_timeout_ms, Some(NULL.to_owned()));
    let max_age = cx.time(at, "max_age_ms", &raw.max_age_ms, Whole::new(0, 0..=DAY_MS));
    let limit = |default| Whole::new(default, 0..=1_000_000);
    Connections {
        max_idle_per_endpoint: cx.count(at, "max_idle_per_endpoint", &raw.max_idle_per_endpoint, limit(64)),
        idle_timeout: raw
            .idle_timeout_ms
            .as_ref()
            .map(|ms| Duration::from_millis(ms.value)),
        http_version: cx.word(at, "http_version", &raw.http_version, ("auto", HttpVersion::Auto)),
        max_per_endpoint: cx.count(at, "max_per_endpoint", &raw.max_per_endpoint, limit(0)),
        max_age: Some(max_age).filter(|age| !age.is_zero()),
        max_streams: cx.count(
            at,
            "max_streams_per_connection",
            &raw.max_streams_per_connection,
            Whole::new(64, 1..=1000),
        ),
        proxy: proxy(cx, at, &raw.proxy),
    }
}

fn proxy(cx: &mut Context<'_>, at: &Path, raw: &Maybe<String>) -> Option<ConnectProxy> {
    let Some(written) = raw else {
        cx.setting(at, "proxy", raw, Some(NULL.to_owned()));
        return None;
    };
    // Its user and password are nobody's business.
    let line = cx.document.line(written.span);
    cx.note(
        at,
        "proxy",
        "set".to_owned(),
        Some(NULL.to_owned()),
        Origin::Line(line),
    );
    let parsed = parse_proxy(&written.value);
    match &parsed {
        Some(proxy) => {
            if let Host::Name(host) = proxy.url.host() {
                need(cx, written, What::Host(host.clone(), proxy.url.port()));
            }
        }
        None => refuse(cx, written),
    }
    parsed
}

fn refuse(cx: &mut Context<'_>, written: &Spanned<String>) {
    let message = "this is not the URL of a proxy";
    cx.report(
        Diagnostic::error("E305", written.span, message)
            .help("write it as http://host:3128 or http://user:password@host:3128"),
    );
}

/// `http://`, a host and a port, with a user before it if need be.
fn parse_proxy(text: &str) -> Option<ConnectProxy> {
    let (scheme, rest) = text.split_once("://")?;
    let (user, place) = match rest.rsplit_once('@') {
        Some((user, place)) => (Some(user.split_once(':')?), place),
        None => (None, rest),
    };
    let url: Url = format!("{scheme}://{place}").parse().ok()?;
    let bare = url.path().is_empty() && url.query().is_none();
    (url.scheme() == Scheme::Http && bare && !matches!(url.host(), Host::Socket(_))).then(|| ConnectProxy {
        url,
        user: user.map(|(name, password)| (name.to_owned(), Secret::new(password))),
    })
}

pub(super) fn dns(cx: &mut Context<'_>, at: &Path, raw: Option<&raw::Dns>) -> Dns {
    let nothing = raw::Dns::default();
    let raw = raw.unwrap_or(&nothing);
    let every = |default| Whole::new(default, 100..=DAY_MS);
    Dns {
        refresh: cx.time(at, "refresh_ms", &raw.refresh_ms, every(30_000)),
        failure_refresh: cx.time(at, "failure_refresh_ms", &raw.failure_refresh_ms, every(5_000)),
    }
}
