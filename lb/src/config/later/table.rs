//! The table: who builds a knob's machinery deletes its row.

/// A key whose machinery comes later.
pub(super) struct Later {
    /// Where it stands; `*` is any name or item.
    pub(super) key: &'static str,
    /// What leaving it out means, written as in the file.
    pub(super) default: &'static str,
    /// What is missing, to stand before "is not in this version".
    pub(super) what: &'static str,
}

const fn later(key: &'static str, default: &'static str, what: &'static str) -> Later {
    Later { key, default, what }
}

pub(super) const LATER: &[Later] = &[
    later("admin.dashboard", "true", "the dashboard"),
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
    later("models.*.cooldown_ms", "0", "cooling a model's endpoints"),
    later(
        "models.*.affinity",
        "null",
        "keeping a conversation's requests together",
    ),
    later("failover.cooldown_ms", "30000", "cooling a preset's endpoints"),
    later("presets.*.cooldown_ms", "null", "cooling a preset's endpoints"),
    later("kernel.pin_path", "null", "keeping the programs over a restart"),
    later("kernel.allow_xdp_generic", "false", "watching connections by XDP"),
    later(
        "kernel.guard",
        "null",
        "dropping packets before the stack sees them",
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
pub(super) struct Words {
    pub(super) key: &'static str,
    pub(super) built: &'static [&'static str],
    /// What is missing, to stand before "is not in this version".
    pub(super) what: &'static str,
}

pub(super) const WORDS: &[Words] = &[Words {
    key: "kernel.attach",
    built: &["auto", "tc", "cgroup"],
    what: "watching connections by XDP",
}];
