//! What lb asks of the machine, and what it tells about itself.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Maybe;
use crate::config::{KernelMode, LogLevel, span::Spanned};

/// What the kernel is asked to watch.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Kernel {
    /// auto, required or off.
    pub(in crate::config) mode: Maybe<KernelMode>,
    /// Network interfaces; empty is those that lead to the providers.
    pub(in crate::config) interfaces: Maybe<Vec<Spanned<String>>>,
    /// auto, tc, xdp or cgroup.
    pub(in crate::config) attach: Maybe<Attach>,
    /// Folder in bpffs that keeps the programs over a restart.
    pub(in crate::config) pin_path: Maybe<String>,
    /// Connections watched at a time; a power of two.
    pub(in crate::config) max_flows: Maybe<u64>,
    /// Use XDP even where the driver does not support it.
    pub(in crate::config) allow_xdp_generic: Maybe<bool>,
    /// When what is seen counts.
    pub(in crate::config) signals: Option<Signals>,
    /// Drop unwanted packets before the stack sees them; null is off.
    pub(in crate::config) guard: Option<Guard>,
}

/// Where programs are attached.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Attach {
    /// Wherever it works.
    Auto,
    /// Traffic control.
    Tc,
    /// The driver.
    Xdp,
    /// The process's control group.
    Cgroup,
}

/// When what the kernel sees counts.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Signals {
    /// Milliseconds to a handshake's end, at least.
    pub(in crate::config) syn_timeout_ms: Maybe<u64>,
    /// Retransmissions without progress.
    pub(in crate::config) streak: Option<Steps>,
    /// Keepalive probes without an answer.
    pub(in crate::config) silent: Option<Steps>,
    /// Resets within a window.
    pub(in crate::config) rst: Option<Rst>,
    /// Milliseconds of the first ejection.
    pub(in crate::config) ejection_ms: Maybe<u64>,
}

/// How many of something it takes.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Steps {
    /// To try the next target.
    pub(in crate::config) failover: Maybe<u64>,
    /// To end a stream.
    pub(in crate::config) end_stream: Maybe<u64>,
}

/// Resets within a window.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Rst {
    /// How many.
    pub(in crate::config) count: Maybe<u64>,
    /// Length of the window in milliseconds.
    pub(in crate::config) window_ms: Maybe<u64>,
}

/// What is dropped before the stack sees it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Guard {
    /// CIDRs that are dropped.
    pub(in crate::config) deny: Maybe<Vec<Spanned<String>>>,
    /// Connection attempts from one address.
    pub(in crate::config) syn_per_source: Option<SynRate>,
}

/// How many connection attempts one address may make.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct SynRate {
    /// A second.
    pub(in crate::config) rate: Maybe<u64>,
    /// At once.
    pub(in crate::config) burst: Maybe<u64>,
}

/// Where the model API keeps its overrides.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Store {
    /// `sqlite:///path` or `postgres://…`
    pub(in crate::config) url: Maybe<String>,
}

/// What is logged.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Log {
    /// trace, debug, info, warn or error.
    pub(in crate::config) level: Maybe<LogLevel>,
    /// auto, text, json or journald.
    pub(in crate::config) format: Maybe<LogFormat>,
    /// One line for each request.
    pub(in crate::config) access: Maybe<bool>,
    /// Prompts and completions as well.
    pub(in crate::config) content: Maybe<bool>,
}

/// The form of a log line.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// For people.
    Text,
    /// For machines.
    Json,
    /// For systemd's journal.
    Journald,
}

/// What is measured.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Metrics {
    /// Upper edges of the first-token histogram in seconds, rising.
    pub(in crate::config) first_token_buckets: Maybe<Vec<Spanned<f64>>>,
    /// Count tokens by the `usage` of answers.
    pub(in crate::config) usage: Maybe<bool>,
}

/// Spans for a collector.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Tracing {
    /// http://host:port of an OTLP collector; null is off.
    pub(in crate::config) otlp_endpoint: Maybe<String>,
    /// Part of requests that are traced, 0 to 1.
    pub(in crate::config) sample_ratio: Maybe<f64>,
}
