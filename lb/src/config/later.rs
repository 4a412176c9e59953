//! What the file may say already and this version does not do yet.
//!
//! Such a knob at its default promises nothing, so it is accepted with a warning; set otherwise it would be a promise
//! that is not kept, so it is refused. Whoever builds a knob's machinery deletes its row here and reads it in
//! [`super::resolve`].

use super::{
    Span,
    diagnostic::Diagnostic,
    explain::Origin,
    node::{Form, Node},
    path::Path,
    resolve::Context,
    yaml,
};

/// A key whose machinery comes later.
struct Later {
    /// Where it stands; `*` is any name or item.
    key: &'static str,
    /// What leaving it out means, written as in the file.
    default: &'static str,
    /// What is missing, to stand before "is not in this version".
    what: &'static str,
}

const fn later(key: &'static str, default: &'static str, what: &'static str) -> Later {
    Later { key, default, what }
}

const LATER: &[Later] = &[
    later("listeners.*.tls", "null", "TLS on listeners"),
    later("listeners.*.http2", "true", "HTTP/2 on listeners"),
    later("listeners.*.proxy_protocol", "off", "the PROXY protocol"),
    later(
        "listeners.*.max_connections_per_source",
        "0",
        "a limit on one address's connections",
    ),
    later(
        "listeners.*.allow_sources",
        "[]",
        "a list of addresses that may connect",
    ),
    later("admin.dashboard", "true", "the dashboard"),
    later("auth.keys.*.models", "null", "a key's list of models"),
    later("server.watch", "true", "reloading when the file changes"),
    later(
        "routes",
        "[{ match: { path_prefix: /v1/ }, to: models }]",
        "routing by anything but the model",
    ),
    later("providers.*.propagate_trace", "false", "passing trace headers on"),
    later("providers.*.tls.client_cert_file", "null", "a client certificate"),
    later("providers.*.tls.client_key_file", "null", "a client certificate"),
    later(
        "providers.*.connections.max_per_endpoint",
        "0",
        "a limit on an endpoint's connections",
    ),
    later(
        "providers.*.connections.max_age_ms",
        "0",
        "a limit on a connection's age",
    ),
    later(
        "providers.*.connections.max_streams_per_connection",
        "64",
        "HTTP/2 to providers",
    ),
    later("providers.*.connections.proxy", "null", "a CONNECT proxy"),
    later(
        "providers.*.dns",
        "{ refresh_ms: 30000, failure_refresh_ms: 5000 }",
        "looking names up again",
    ),
    later("providers.*.health.slow_start_ms", "0", "slow start"),
    later(
        "providers.*.health.kernel_signals",
        "true",
        "watching connections in the kernel",
    ),
    later("providers.*.health.active", "null", "active probing"),
    later(
        "providers.*.circuit_breaker",
        "{ enabled: true, consecutive_failures: 10, failure_ratio: 0.5, failure_min_volume: 20, window_ms: 60000, \
         open_ms: 30000, half_open_probes: 3 }",
        "the circuit breaker",
    ),
    later(
        "providers.*.retries",
        "{ max_attempts: 2, budget_percent: 20, budget_window_ms: 10000, budget_min_per_window: 3, base_ms: 25, \
         cap_ms: 250, on_status: [500, 502, 503, 504, 408, 499, 429], retry_unanswered_posts: true, \
         hedge_after_ms: null, total_deadline_ms: null }",
        "retrying inside a provider",
    ),
    later("providers.*.max_pending", "0", "waiting for a slot"),
    later("providers.*.pending_timeout_ms", "1000", "waiting for a slot"),
    later("providers.*.rate_limit", "null", "a provider's rate limit"),
    later(
        "models.*.rewrite_response_model",
        "false",
        "putting the client's model name into responses",
    ),
    later(
        "models.*.stream_error_event",
        "false",
        "an error event before a broken stream's end",
    ),
    later("models.*.cooldown_ms", "0", "cooling a model's endpoints"),
    later(
        "models.*.affinity",
        "null",
        "keeping a conversation's requests together",
    ),
    later("models.*.rate_limit", "null", "a model's rate limit"),
    later(
        "models.*.concurrency",
        "0",
        "a limit on a model's requests in flight",
    ),
    later("failover.cooldown_ms", "30000", "cooling a preset's endpoints"),
    later("presets.*.cooldown_ms", "null", "cooling a preset's endpoints"),
    later(
        "kernel",
        "{ mode: auto, interfaces: [], attach: auto, pin_path: null, max_flows: 16384, allow_xdp_generic: false, \
         signals: { syn_timeout_ms: 250, streak: { failover: 2, end_stream: 3 }, \
         silent: { failover: 2, end_stream: 4 }, rst: { count: 3, window_ms: 1000 }, ejection_ms: 1000 }, \
         guard: null }",
        "watching connections in the kernel",
    ),
    later(
        "store",
        "{ url: \"sqlite:///var/lib/lb/lb.db\" }",
        "the model API's database",
    ),
    later("log.content", "false", "logging prompts and completions"),
    later(
        "tracing",
        "{ otlp_endpoint: null, sample_ratio: 0.01 }",
        "sending spans",
    ),
];

/// A key of which only some words work yet.
struct Words {
    key: &'static str,
    built: &'static [&'static str],
    /// What is missing, to stand before "is not in this version".
    what: &'static str,
}

const WORDS: &[Words] = &[
    Words {
        key: "providers.*.balance",
        built: &["least_inflight"],
        what: "this way of choosing an endpoint",
    },
    Words {
        key: "providers.*.connections.http_version",
        built: &["auto", "http1"],
        what: "HTTP/2 to providers",
    },
    Words {
        key: "models.*.notice",
        built: &["header"],
        what: "this form of the notice",
    },
    Words {
        key: "log.format",
        built: &["auto", "text", "json"],
        what: "journald's form",
    },
];

/// Reports every such key that is written, and notes the defaults of all.
pub(super) fn check(cx: &mut Context<'_>) {
    for row in LATER {
        let default = default_of(row);
        for found in find(&cx.document.root, row.key) {
            match found.node {
                Some(node) => written(cx, row, &default, &found, node),
                None => note_defaults(cx, &found.path, &default),
            }
        }
    }
    for row in WORDS {
        for found in find(&cx.document.root, row.key) {
            let Some(node) = found.node.filter(|node| !node.is_null()) else {
                continue;
            };
            let word = matches!(&node.form, Form::Scalar(s) if row.built.contains(&s.text.as_str()));
            if !word {
                let built = row
                    .built
                    .iter()
                    .map(|word| format!("`{word}`"))
                    .collect::<Vec<_>>()
                    .join(" or ");
                cx.report(not_yet(node.span, row.what, &found.path).help(format!("write {built}")));
            }
        }
    }
}

/// Refuses a value whose machinery comes later.
pub(super) fn refuse(cx: &mut Context<'_>, span: Span, what: &str) {
    let key = Path::top(&cx.document.root.path_of(span));
    cx.diagnostics
        .push(not_yet(span, what, &key).at(cx.document.root.path_of(span)));
}

fn written(cx: &mut Context<'_>, row: &Later, default: &Node, found: &Found<'_>, node: &Node) {
    let mut differing = Vec::new();
    differences(node, default, &found.path, &mut differing);
    if differing.is_empty() {
        let message = format!("{} is not in this version: the setting does nothing", row.what);
        cx.report(Diagnostic::warning("W900", found.key, message).at(found.path.to_string()));
    }
    for (path, span) in differing {
        // A value that no version takes has been reported already.
        let known = cx
            .diagnostics
            .iter()
            .any(|known| known.primary.span == span && known.code.starts_with('E'));
        if !known {
            let help = format!("leave it out, or keep its default: {}", one_line(row.default));
            cx.report(not_yet(span, row.what, &path).help(help));
        }
    }
    note_written(cx, &found.path, node, default);
}

fn not_yet(span: Span, what: &str, path: &Path) -> Diagnostic {
    Diagnostic::error("E900", span, format!("{what} is not in this version of lb")).at(path.to_string())
}

fn one_line(default: &str) -> String {
    default.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What in `node` says otherwise than `default`; what is left out of a block is at its default.
fn differences(node: &Node, default: &Node, path: &Path, into: &mut Vec<(Path, Span)>) {
    match (&node.form, &default.form) {
        (Form::Map(entries), Form::Map(_)) => {
            for (key, value) in entries {
                match default.entry(&key.value) {
                    Some((_, default)) => differences(value, default, &path.key(&key.value), into),
                    None => into.push((path.key(&key.value), key.span)),
                }
            }
        }
        _ if node.is_null() || node.means_the_same(default) => {}
        _ => into.push((path.clone(), node.span)),
    }
}

fn note_defaults(cx: &mut Context<'_>, path: &Path, default: &Node) {
    match &default.form {
        Form::Map(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                note_defaults(cx, &path.key(&key.value), value);
            }
        }
        _ => note(cx, path, spell(default), default, Origin::Default),
    }
}

fn note_written(cx: &mut Context<'_>, path: &Path, node: &Node, default: &Node) {
    match (&node.form, &default.form) {
        (Form::Map(_), Form::Map(entries)) => {
            for (key, default) in entries {
                let path = path.key(&key.value);
                match node.entry(&key.value) {
                    Some((_, node)) => note_written(cx, &path, node, default),
                    None => note_defaults(cx, &path, default),
                }
            }
        }
        _ => {
            let line = cx.document.line(node.span);
            let value = if node.means_the_same(default) {
                spell(default)
            } else {
                cx.document.value_at(node.span)
            };
            note(cx, path, value, default, Origin::Line(line));
        }
    }
}

fn note(cx: &mut Context<'_>, path: &Path, value: String, default: &Node, origin: Origin) {
    let key = path.to_string();
    cx.settings.push(super::Setting {
        key,
        value,
        default: Some(spell(default)),
        origin,
    });
}

/// A default as the file would say it.
fn spell(default: &Node) -> String {
    match &default.form {
        Form::Scalar(scalar) if scalar.is_null() => "null".to_owned(),
        Form::Scalar(scalar) => scalar.text.clone(),
        Form::List(items) => format!("[{}]", items.iter().map(spell).collect::<Vec<_>>().join(", ")),
        Form::Map(entries) => {
            let entry = entries
                .iter()
                .map(|(key, value)| format!("{}: {}", key.value, spell(value)));
            format!("{{{}}}", entry.collect::<Vec<_>>().join(", "))
        }
    }
}

fn default_of(row: &Later) -> Node {
    yaml::read(row.default).expect("the table's defaults are YAML, as a test shows")
}

/// A place that a key of the table leads to, whether or not the file says anything there.
struct Found<'a> {
    path: Path,
    key: Span,
    node: Option<&'a Node>,
}

/// All places that `pattern` leads to whose surroundings are written.
fn find<'a>(root: &'a Node, pattern: &str) -> Vec<Found<'a>> {
    let start = Found {
        path: Path::default(),
        key: root.span,
        node: Some(root),
    };
    pattern.split('.').fold(vec![start], |places, step| {
        places.iter().flat_map(|place| place.step(step)).collect()
    })
}

impl<'a> Found<'a> {
    fn step(&self, step: &str) -> Vec<Self> {
        let Some(node) = self.node else {
            // Below a block that is left out everything is at its default; there are no names to go through.
            return if step == "*" {
                Vec::new()
            } else {
                vec![self.missing(step)]
            };
        };
        match (&node.form, step) {
            (Form::Map(entries), "*") => {
                let found = entries.iter().map(|(key, value)| Self {
                    path: self.path.key(&key.value),
                    key: key.span,
                    node: Some(value),
                });
                found.collect()
            }
            (Form::List(items), "*") => {
                let found = items.iter().enumerate().map(|(index, item)| Self {
                    path: self.path.item(index),
                    key: item.span,
                    node: Some(item),
                });
                found.collect()
            }
            (_, "*") => Vec::new(),
            _ => match node.entry(step) {
                Some((key, value)) => vec![Self {
                    path: self.path.key(step),
                    key,
                    node: Some(value),
                }],
                None => vec![self.missing(step)],
            },
        }
    }

    fn missing(&self, step: &str) -> Self {
        Self {
            path: self.path.key(step),
            key: self.key,
            node: None,
        }
    }
}

#[cfg(test)]
mod tests;
