//! The process as a whole, and what it tells about itself.

use std::num::NonZeroU16;

use http::HeaderName;

use super::bound;
use super::context::{Context, DAY_MS, NULL, Whole};
use crate::config::{
    Cidr, Host, Log, LogFormat, LogLevel, Metrics, Model, Preset, Reveal, Scheme, Server, Tracing, Url,
    diagnostic::Diagnostic, path::Path, raw, span::Spanned,
};

pub(super) fn server(cx: &mut Context<'_>, raw: Option<&raw::Server>) -> Server {
    let at = Path::top("server");
    let nothing = raw::Server::default();
    let raw = raw.unwrap_or(&nothing);
    let workers = cx.whole(&at, "workers", &raw.workers, Whole::new(0, 0..=1024));
    Server {
        workers: u16::try_from(workers).ok().and_then(NonZeroU16::new),
        drain_delay: cx.time(
            &at,
            "drain_delay_ms",
            &raw.drain_delay_ms,
            Whole::new(0, 0..=DAY_MS),
        ),
        drain_timeout: cx.time(
            &at,
            "drain_timeout_ms",
            &raw.drain_timeout_ms,
            Whole::new(300_000, 0..=DAY_MS),
        ),
        watch: cx.flag(&at, "watch", &raw.watch, true),
        replay_bytes: cx.whole(
            &at,
            "replay_bytes",
            &raw.replay_bytes,
            Whole::new(64 << 20, 0..=1 << 40),
        ),
        buffer_bytes: {
            cx.bounds(&raw.buffer_bytes, "E256", 1 << 16..=1 << 50);
            cx.setting(&at, "buffer_bytes", &raw.buffer_bytes, Some(NULL.to_owned()));
            raw.buffer_bytes.as_ref().map(|bytes| bytes.value)
        },
        exempt_header: exempt_header(cx, &at, raw),
        trusted_proxies: {
            cx.setting(
                &at,
                "trusted_proxies",
                &raw.trusted_proxies,
                Some("[]".to_owned()),
            );
            let proxies = raw.trusted_proxies.iter().flat_map(|proxies| &proxies.value);
            proxies.filter_map(|proxy| cidr(cx, proxy)).collect()
        },
        reveal: cx.word(&at, "reveal", &raw.reveal, ("none", Reveal::None)),
        via: cx.flag(&at, "via", &raw.via, true),
        sse_headers: cx.flag(&at, "sse_headers", &raw.sse_headers, true),
    }
}

fn exempt_header(cx: &mut Context<'_>, at: &Path, raw: &raw::Server) -> HeaderName {
    cx.setting(
        at,
        "exempt_header",
        &raw.exempt_header,
        Some(DEFAULT_EXEMPT_HEADER.to_owned()),
    );
    let default = HeaderName::from_static(DEFAULT_EXEMPT_HEADER);
    let Some(written) = &raw.exempt_header else {
        return default;
    };
    written.value.to_ascii_lowercase().parse().unwrap_or_else(|_| {
        let message = format!("`{}` is not the name of a header", cx.shown(written.span));
        cx.report(Diagnostic::error("E111", written.span, message));
        default
    })
}

/// An address range, unless it is none.
pub(super) fn cidr(cx: &mut Context<'_>, written: &Spanned<String>) -> Option<Cidr> {
    let parsed = written.value.parse();
    if let Err(fault) = &parsed {
        let message = format!("`{}` {fault}", cx.shown(written.span));
        cx.report(Diagnostic::error("E111", written.span, message));
    }
    parsed.ok()
}

pub(super) fn log(cx: &mut Context<'_>, raw: Option<&raw::Log>) -> Log {
    let at = Path::top("log");
    let nothing = raw::Log::default();
    let raw = raw.unwrap_or(&nothing);
    if let Some(content) = raw.content.as_ref().filter(|content| content.value) {
        cx.report(Diagnostic::warning(
            "W309",
            content.span,
            "prompts and completions would be written to the log",
        ));
    }
    Log {
        level: cx.word(&at, "level", &raw.level, ("info", LogLevel::Info)),
        format: match cx.word(&at, "format", &raw.format, ("auto", raw::LogFormat::Auto)) {
            raw::LogFormat::Auto => LogFormat::Auto,
            raw::LogFormat::Journald => LogFormat::Journald,
            raw::LogFormat::Text => LogFormat::Text,
            raw::LogFormat::Json => LogFormat::Json,
        },
        access: cx.flag(&at, "access", &raw.access, true),
    }
}

pub(super) fn tracing(cx: &mut Context<'_>, raw: Option<&raw::Tracing>) -> Tracing {
    let at = Path::top("tracing");
    let nothing = raw::Tracing::default();
    let raw = raw.unwrap_or(&nothing);
    cx.setting(&at, "otlp_endpoint", &raw.otlp_endpoint, Some(NULL.to_owned()));
    cx.require(&raw.sample_ratio, "E254", "lie in [0, 1]", |ratio| {
        (0.0..=1.0).contains(ratio)
    });
    cx.require(
        &raw.otlp_endpoint,
        "E311",
        "be http:// with a host and perhaps a port and a path",
        |url| collector(url).is_some(),
    );
    Tracing {
        endpoint: raw.otlp_endpoint.as_ref().and_then(|url| collector(&url.value)),
        sample_ratio: bound::ratio(cx, &at, "sample_ratio", &raw.sample_ratio, 0.01),
    }
}

/// Where spans can be sent: there is no TLS on the way, and no socket file.
fn collector(url: &str) -> Option<Url> {
    let url: Url = url.parse().ok()?;
    let plain = url.scheme() == Scheme::Http && !matches!(url.host(), Host::Socket(_));
    (plain && url.query().is_none()).then_some(url)
}

pub(super) fn metrics(
    cx: &mut Context<'_>,
    raw: Option<&raw::Metrics>,
    models: &[Model],
    presets: &[Preset],
) -> Metrics {
    let at = Path::top("metrics");
    let nothing = raw::Metrics::default();
    let raw = raw.unwrap_or(&nothing);
    let default = DEFAULT_BUCKETS.map(|edge| edge.to_string()).join(", ");
    cx.setting(
        &at,
        "first_token_buckets",
        &raw.first_token_buckets,
        Some(format!("[{default}]")),
    );
    let mut edges = match &raw.first_token_buckets {
        None => DEFAULT_BUCKETS.to_vec(),
        Some(written) => {
            let edges: Vec<f64> = written.value.iter().map(|edge| edge.value).collect();
            let rising = edges.windows(2).all(|pair| pair[0] < pair[1]);
            let finite = edges.iter().all(|edge| edge.is_finite() && *edge > 0.0);
            if !(1..=MAX_BUCKETS).contains(&edges.len()) || !rising || !finite {
                let message = "`metrics.first_token_buckets` must be 1 to 32 numbers above 0, each above the one before";
                cx.report(
                    Diagnostic::error("E253", written.span, message)
                        .at("metrics.first_token_buckets")
                        .help("write seconds, such as [0.1, 1, 10]"),
                );
            }
            edges
        }
    };
    // The edges at which "in time" is decided must be exact: the seed's ten seconds, every budget, every deadline.
    let budgets = models
        .iter()
        .filter_map(|m| m.fallback.aimd.as_ref())
        .map(|aimd| aimd.settings().latency_budget);
    let deadlines = models.iter().filter_map(|m| m.fallback.first_token_timeout);
    let deadlines = deadlines.chain(presets.iter().filter_map(|preset| preset.first_token_timeout));
    edges.push(10.0);
    edges.extend(budgets.chain(deadlines).map(|time| time.as_secs_f64()));
    edges.sort_by(f64::total_cmp);
    edges.dedup();
    Metrics {
        first_token_buckets: edges,
        usage: cx.flag(&at, "usage", &raw.usage, false),
    }
}

const DEFAULT_EXEMPT_HEADER: &str = "x-lb-exempt";
const DEFAULT_BUCKETS: [f64; 12] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0];
const MAX_BUCKETS: usize = 32;
