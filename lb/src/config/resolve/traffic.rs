//! How requests to a provider or model are spread, probed and limited.

use std::time::Duration;

use http::{HeaderName, Method};

use super::{
    bound,
    context::{Context, HOUR_MS, NULL, Whole},
    status::{self, Allowed},
};
use crate::config::{
    Balance, HashKey, Pending, Probe, ProbeKind, RateLimit,
    diagnostic::Diagnostic,
    path::Path,
    raw::{self, Maybe},
};
use crate::policy::outcome::StatusSet;
use crate::policy::{bucket, health, limiter};

/// How an endpoint of the provider is chosen.
pub(super) fn balance(cx: &mut Context<'_>, at: &Path, raw: &raw::Provider) -> Balance {
    let default = ("least_inflight", raw::Balance::LeastInflight);
    let word = cx.word(at, "balance", &raw.balance, default);
    let key = hash_key(cx, at, &raw.hash_key);
    if let (Some(written), false) = (&raw.hash_key, matches!(word, raw::Balance::Hash)) {
        let message = "a key is hashed only where `balance` is `hash`";
        cx.report(Diagnostic::error("E109", written.span, message).help("add `balance: hash`, or remove it"));
    }
    match word {
        raw::Balance::Hash => Balance::Hash(key),
        raw::Balance::LeastInflight => Balance::LeastInflight,
        raw::Balance::PeakEwma => Balance::PeakEwma,
        raw::Balance::Random => Balance::Random,
        raw::Balance::RoundRobin => Balance::RoundRobin,
    }
}

fn hash_key(cx: &mut Context<'_>, at: &Path, written: &Maybe<String>) -> HashKey {
    cx.setting(at, "hash_key", written, Some("address".to_owned()));
    let Some(written) = written.as_ref().filter(|written| written.value != "address") else {
        return HashKey::Address;
    };
    if written.value == "conversation" {
        return HashKey::Conversation;
    }
    let name = written.value.strip_prefix("header:").map(str::trim);
    if let Some(name) = name.and_then(|name| HeaderName::from_bytes(name.as_bytes()).ok()) {
        return HashKey::Header(name);
    }
    cx.out_of_bounds(
        written.span,
        "E111",
        "be `address`, `conversation`, or `header:` and the name of a header",
    );
    HashKey::Address
}

/// Requests that may wait for a slot of the provider.
pub(super) fn pending(cx: &mut Context<'_>, at: &Path, raw: &raw::Provider, concurrency: u32) -> Pending {
    let pending = Pending {
        max: cx.count(at, "max_pending", &raw.max_pending, Whole::new(0, 0..=1_000_000)),
        timeout: cx.time(
            at,
            "pending_timeout_ms",
            &raw.pending_timeout_ms,
            Whole::new(1000, 1..=HOUR_MS),
        ),
    };
    if let Some(written) = raw
        .max_pending
        .as_ref()
        .filter(|max| max.value > 0 && concurrency == 0)
    {
        let message = "nothing is waited for where `concurrency` is no limit";
        cx.report(Diagnostic::error("E109", written.span, message).help("set `concurrency`, or remove it"));
    }
    pending
}

/// A limit on requests a second. `concurrency` is what an adaptive limit without a rate steers; `None` where it cannot
/// be adaptive.
pub(super) fn rate_limit(
    cx: &mut Context<'_>,
    at: &Path,
    raw: Option<&raw::RateLimit>,
    concurrency: Option<u32>,
) -> Option<RateLimit> {
    let Some(raw) = raw else {
        cx.setting::<()>(at, "rate_limit", &None, Some(NULL.to_owned()));
        return None;
    };
    let at = at.key("rate_limit");
    let rate = rate(cx, &at, raw);
    if let (Some(adaptive), None) = (&raw.adaptive, concurrency) {
        let message = "a model's limit does not follow anybody's state";
        let span = adaptive.span;
        cx.report(
            Diagnostic::error("E109", span, message)
                .help("move `adaptive` to the rate limits of its providers"),
        );
    }
    let adaptive = raw
        .adaptive
        .as_ref()
        .and_then(|raw| adaptive(cx, &at.key("adaptive"), &raw.value));
    if raw.adaptive.is_none() {
        cx.setting::<()>(&at, "adaptive", &None, Some(NULL.to_owned()));
    }
    if raw.requests_per_second.is_none() && (raw.adaptive.is_none() || concurrency == Some(0)) {
        let span = cx
            .document
            .root
            .find(&at.to_string())
            .map_or(cx.document.root.span, |node| node.span);
        let message = format!("`{at}` limits nothing");
        let help = "add `requests_per_second`, or `adaptive` and a `concurrency` that it can steer";
        cx.report(Diagnostic::error("E240", span, message).help(help));
    }
    Some(RateLimit { rate, adaptive })
}

fn rate(cx: &mut Context<'_>, at: &Path, raw: &raw::RateLimit) -> Option<bucket::Params> {
    cx.setting(
        at,
        "requests_per_second",
        &raw.requests_per_second,
        Some(NULL.to_owned()),
    );
    let requests_per_second = raw.requests_per_second.as_ref().map(|rate| rate.value);
    // By default what comes within a second, and at least one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float is clamped by this conversion, and what is no rate is refused below"
    )]
    let default = requests_per_second.map_or(1, |rate| (rate.ceil() as u32).max(1));
    let whole = Whole::new(default.into(), 0..=u64::from(u32::MAX)).code("E240");
    let burst = cx.count(at, "burst", &raw.burst, whole);
    let settings = bucket::Settings {
        requests_per_second: requests_per_second?,
        burst,
    };
    checked(cx, at, bucket::Params::new(settings))
}

fn adaptive(cx: &mut Context<'_>, at: &Path, raw: &raw::Adaptive) -> Option<limiter::Params> {
    let default = limiter::Settings::default();
    let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let any = |default: u64| Whole::new(default, 0..=24 * HOUR_MS).code("E240");
    let ratio = |cx: &mut Context<'_>, key: &str, written: &Maybe<f64>, default: f64| {
        bound::ratio(cx, at, key, written, default)
    };
    cx.bounds(&raw.max_latency_ms, "E240", 1..=HOUR_MS);
    cx.setting(at, "max_latency_ms", &raw.max_latency_ms, Some(NULL.to_owned()));
    cx.bounds(&raw.max_retry_after_ms, "E240", 0..=24 * HOUR_MS);
    cx.setting(
        at,
        "max_retry_after_ms",
        &raw.max_retry_after_ms,
        Some(NULL.to_owned()),
    );
    let max_retry_after = raw
        .max_retry_after_ms
        .as_ref()
        .map(|most| Duration::from_millis(most.value));
    let settings = limiter::Settings {
        tau: cx.time(at, "tau_ms", &raw.tau_ms, any(ms(default.tau))),
        max_error_rate: ratio(cx, "max_error_rate", &raw.max_error_rate, default.max_error_rate),
        max_latency: raw
            .max_latency_ms
            .as_ref()
            .map(|most| Duration::from_millis(most.value)),
        min_factor: ratio(cx, "min_factor", &raw.min_factor, default.min_factor),
        decrease_factor: ratio(
            cx,
            "decrease_factor",
            &raw.decrease_factor,
            default.decrease_factor,
        ),
        recover_per_second: ratio(
            cx,
            "recover_per_second",
            &raw.recover_per_second,
            default.recover_per_second,
        ),
        honor_retry_after: cx.flag(
            at,
            "honor_retry_after",
            &raw.honor_retry_after,
            default.honor_retry_after,
        ),
        max_retry_after: max_retry_after.filter(|most| !most.is_zero()),
    };
    checked(cx, at, limiter::Params::new(settings))
}

/// The policy's own answer, with its faults reported.
fn checked<T>(
    cx: &mut Context<'_>,
    at: &Path,
    params: Result<T, Vec<crate::policy::OutOfBounds>>,
) -> Option<T> {
    match params {
        Ok(params) => Some(params),
        Err(faults) => {
            for fault in faults {
                bound::report(cx, at, &fault, "E240");
            }
            None
        }
    }
}

/// How a provider's endpoints are probed, and what becomes of the answers; `at` is its `health`.
pub(super) fn active(
    cx: &mut Context<'_>,
    at: &Path,
    raw: Option<&raw::Active>,
) -> Option<(Probe, health::Active)> {
    let Some(raw) = raw else {
        cx.setting::<()>(at, "active", &None, Some(NULL.to_owned()));
        return None;
    };
    let at = &at.key("active");
    let interval = cx.time(
        at,
        "interval_ms",
        &raw.interval_ms,
        Whole::new(5000, 100..=HOUR_MS).code("E231"),
    );
    let timeout = cx.time(
        at,
        "timeout_ms",
        &raw.timeout_ms,
        Whole::new(2000, 1..=HOUR_MS).code("E231"),
    );
    if timeout > interval {
        let written = raw.timeout_ms.as_ref().or(raw.interval_ms.as_ref());
        let span = written.map_or(cx.document.root.span, |written| written.span);
        let message = format!(
            "a probe may take {} ms, longer than the {} ms between two",
            timeout.as_millis(),
            interval.as_millis()
        );
        cx.report(Diagnostic::error("E231", span, message).help("lower timeout_ms, or raise interval_ms"));
    }
    let times = |default| Whole::new(default, 1..=100).code("E231");
    let verdicts = health::Active {
        healthy_after: cx.count(at, "healthy_after", &raw.healthy_after, times(2)),
        unhealthy_after: cx.count(at, "unhealthy_after", &raw.unhealthy_after, times(3)),
        interval,
    };
    let kind = match cx.word(at, "kind", &raw.kind, ("http", raw::ProbeKind::Http)) {
        raw::ProbeKind::Http => http(cx, at, raw),
        raw::ProbeKind::Tcp => ProbeKind::Tcp,
    };
    let probe = Probe {
        kind,
        interval,
        timeout,
    };
    Some((probe, verdicts))
}

fn http(cx: &mut Context<'_>, at: &Path, raw: &raw::Active) -> ProbeKind {
    let is_path = |path: &String| path.starts_with('/') && path.parse::<http::uri::PathAndQuery>().is_ok();
    cx.require(&raw.path, "E111", "be a path that begins with /", is_path);
    let is_method =
        |name: &String| Method::from_bytes(name.as_bytes()).is_ok_and(|name| name != Method::CONNECT);
    cx.require(&raw.method, "E111", "be a method such as GET or HEAD", is_method);
    cx.setting(at, "path", &raw.path, Some("/health".to_owned()));
    cx.setting(at, "method", &raw.method, Some("GET".to_owned()));
    cx.setting(
        at,
        "expected_status",
        &raw.expected_status,
        Some("[2xx]".to_owned()),
    );
    let expected = match &raw.expected_status {
        None => (200..300).collect::<StatusSet>(),
        Some(written) => status::read(cx, &written.value, Allowed::Answers),
    };
    let path = raw.path.as_ref().filter(|path| is_path(&path.value));
    let method = raw.method.as_ref().filter(|name| is_method(&name.value));
    ProbeKind::Http {
        path: path.map_or_else(|| "/health".to_owned(), |path| path.value.clone()),
        method: method
            .and_then(|name| Method::from_bytes(name.value.as_bytes()).ok())
            .unwrap_or(Method::GET),
        expected,
        auth: cx.flag(at, "auth", &raw.auth, true),
    }
}
