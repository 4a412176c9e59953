//! What a client may put in `model`.

use std::time::Duration;

use super::{
    affinity::affinity,
    context::{Context, DAY_MS, NULL, Whole},
    fallback::{self, Defaults, Traits, fallback},
    target::{no_targets, pools, targets},
    traffic::rate_limit,
};
use crate::config::{
    FirstToken, Kind, Model, Notice, Peek, Read, Span, Strategy, StreamMode, Target,
    diagnostic::Diagnostic,
    model_name_fault,
    path::Path,
    raw::{self, Maybe},
    span::Spanned,
};

pub(super) fn models(cx: &mut Context<'_>, file: &raw::File, defaults: &Defaults) -> Vec<Model> {
    let entries = raw::entries(&file.models);
    let names: Vec<&str> = raw::entries(&file.providers)
        .iter()
        .map(|(name, _)| name.value.as_str())
        .collect();
    if entries.is_empty() {
        let span = file
            .models
            .as_ref()
            .map_or(cx.document.root.span, |written| written.span);
        cx.report(
            Diagnostic::error("E100", span, "there is no model")
                .at("models")
                .help("add `models: { \"*\": { targets: [{ provider: … }] } }` to send every name to one provider"),
        );
    }
    let at = Path::top("models");
    entries
        .iter()
        .map(|(name, raw)| {
            check_name(cx, name, "model");
            model(cx, &at.key(&name.value), &name.value, raw, &names, defaults)
        })
        .collect()
}

/// Reports a name that no client could send.
pub(super) fn check_name(cx: &mut Context<'_>, name: &Spanned<String>, what: &str) {
    if let Some(fault) = model_name_fault(&name.value) {
        let message = format!("the name of this {what} {fault}");
        cx.report(Diagnostic::error("E110", name.span, message));
    }
}

fn model(
    cx: &mut Context<'_>,
    at: &Path,
    name: &str,
    raw: &Spanned<raw::Model>,
    providers: &[&str],
    defaults: &Defaults,
) -> Model {
    let span = raw.span;
    let raw = &raw.value;
    let kind = kind(cx, at, raw);
    let strategy = cx.word(at, "strategy", &raw.strategy, ("priority", Strategy::Priority));
    let stream_mode = cx.word(
        at,
        "stream_mode",
        &raw.stream_mode,
        ("strict", StreamMode::Strict),
    );
    let peek = peek(cx, &at.key("peek"), raw);
    let targets = own_targets(cx, at, (raw, span), providers);
    let traits = Traits {
        strategy,
        stream_mode,
        targets: targets.len(),
    };
    Model {
        name: name.to_owned(),
        kind,
        strategy,
        stream_mode,
        first_token: cx.word(at, "first_token", &raw.first_token, ("data", FirstToken::Data)),
        peek,
        max_event_bytes: bytes(
            cx,
            at,
            "max_event_bytes",
            &raw.max_event_bytes,
            Whole::new(1 << 20, 1024..=1 << 30),
        ),
        stream_error_event: cx.flag(at, "stream_error_event", &raw.stream_error_event, false),
        sse_keepalive: fallback::on(cx.time(
            at,
            "sse_keepalive_ms",
            &raw.sse_keepalive_ms,
            Whole::new(0, 0..=DAY_MS),
        )),
        notice: cx.word(at, "notice", &raw.notice, ("header", Notice::Header)),
        rewrite_response_model: cx.flag(at, "rewrite_response_model", &raw.rewrite_response_model, false),
        read: read(
            cx,
            at,
            &raw.read_ms,
            Read::Provider,
            "the provider's timeouts.read_ms",
        ),
        stream_idle_timeout: defaults.stream_idle_timeout,
        cooldown: fallback::on(cx.time(
            at,
            "cooldown_ms",
            &raw.cooldown_ms,
            Whole::new(0, 0..=DAY_MS).code("E252"),
        )),
        pools: pools(cx, at, raw, providers),
        targets,
        fallback: fallback(cx, &at.key("fallback"), raw, traits, defaults),
        affinity: affinity(cx, at, raw),
        observed: true,
        concurrency: cx.count(
            at,
            "concurrency",
            &raw.concurrency,
            Whole::new(0, 0..=u64::from(u32::MAX)),
        ),
        rate: rate_limit(cx, at, raw.rate_limit.as_ref(), None).and_then(|limit| limit.rate),
    }
}

/// The model's own targets, of which there has to be one.
fn own_targets(
    cx: &mut Context<'_>,
    at: &Path,
    (raw, span): (&raw::Model, Span),
    providers: &[&str],
) -> Vec<Target> {
    let written = raw::items(&raw.targets);
    if written.is_empty() {
        no_targets(cx, at, raw.targets.as_ref().map_or(span, |targets| targets.span));
    }
    targets(cx, at, written, providers)
}

fn kind(cx: &mut Context<'_>, at: &Path, raw: &raw::Model) -> Kind {
    cx.bounds(&raw.dimensions, "E256", 1..=1_000_000);
    cx.setting(at, "dimensions", &raw.dimensions, Some(NULL.to_owned()));
    match cx.word(at, "kind", &raw.kind, ("chat", raw::Kind::Chat)) {
        raw::Kind::Embedding => Kind::Embedding {
            dimensions: raw
                .dimensions
                .as_ref()
                .and_then(|dimensions| u32::try_from(dimensions.value).ok()),
        },
        raw::Kind::Chat => {
            if let Some(dimensions) = &raw.dimensions {
                cx.report(
                    Diagnostic::error("E109", dimensions.span, "only an embedding has dimensions")
                        .help("add `kind: embedding`, or remove `dimensions`"),
                );
            }
            Kind::Chat
        }
    }
}

fn peek(cx: &mut Context<'_>, at: &Path, raw: &raw::Model) -> Peek {
    let nothing = raw::Peek::default();
    let raw = raw.peek.as_ref().unwrap_or(&nothing);
    Peek {
        max_wait: cx.time(at, "max_wait_ms", &raw.max_wait_ms, Whole::new(2_000, 1..=DAY_MS)),
        max_bytes: bytes(
            cx,
            at,
            "max_bytes",
            &raw.max_bytes,
            Whole::new(1 << 16, 1..=1 << 30),
        ),
        past_preamble: cx.flag(at, "past_preamble", &raw.past_preamble, true),
        preamble_wait: cx.time(
            at,
            "preamble_wait_ms",
            &raw.preamble_wait_ms,
            Whole::new(300, 1..=DAY_MS),
        ),
    }
}

fn bytes(cx: &mut Context<'_>, at: &Path, key: &str, written: &Maybe<u64>, whole: Whole) -> usize {
    usize::try_from(cx.whole(at, key, written, whole)).unwrap_or(usize::MAX)
}

/// A read timeout that may be left to `inherited`, which is the value of `from`.
pub(super) fn read(
    cx: &mut Context<'_>,
    at: &Path,
    written: &Maybe<u64>,
    inherited: Read,
    from: &str,
) -> Read {
    cx.bounds(written, "E256", 0..=DAY_MS);
    if let Some(ms) = written {
        cx.setting(at, "read_ms", written, Some(NULL.to_owned()));
        return fallback::on(Duration::from_millis(ms.value)).map_or(Read::Off, Read::After);
    }
    cx.inherited(at, "read_ms", NULL, from);
    inherited
}
