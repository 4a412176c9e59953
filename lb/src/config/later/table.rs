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
    later("providers.*.health.slow_start_ms", "0", "slow start"),
    later("providers.*.health.active", "null", "active probing"),
    later("providers.*.retries.hedge_after_ms", "null", "hedging"),
    later("providers.*.max_pending", "0", "waiting for a slot"),
    later("providers.*.pending_timeout_ms", "1000", "waiting for a slot"),
    later("providers.*.rate_limit", "null", "a provider's rate limit"),
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

pub(super) const WORDS: &[Words] = &[
    Words {
        key: "providers.*.balance",
        built: &["least_inflight"],
        what: "this way of choosing an endpoint",
    },
    Words {
        key: "kernel.attach",
        built: &["auto", "tc", "cgroup"],
        what: "watching connections by XDP",
    },
];
