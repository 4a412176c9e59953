//! What a client may put in `model`.

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};

use super::{Maybe, RateLimit, Status};
use crate::config::{
    FirstToken, Notice, Strategy, StreamMode,
    span::{Entries, Spanned},
};

/// A name that clients send, and the targets that answer for it.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Model {
    /// chat or embedding.
    pub(in crate::config) kind: Maybe<Kind>,
    /// Length of a vector; every target and fallback must agree.
    pub(in crate::config) dimensions: Maybe<u64>,
    /// priority or weighted.
    pub(in crate::config) strategy: Maybe<Strategy>,
    /// strict withholds a stream's head until its first decisive event; passthrough does not.
    pub(in crate::config) stream_mode: Maybe<StreamMode>,
    /// What counts as the first token: data or content.
    pub(in crate::config) first_token: Maybe<FirstToken>,
    /// Bounds of the wait for the first decisive event.
    pub(in crate::config) peek: Option<Peek>,
    /// What the observer keeps of one SSE event; bytes flow on regardless.
    pub(in crate::config) max_event_bytes: Maybe<u64>,
    /// Put the client's model name into responses.
    pub(in crate::config) rewrite_response_model: Maybe<bool>,
    /// An error event before the abnormal end of a broken stream.
    pub(in crate::config) stream_error_event: Maybe<bool>,
    /// Milliseconds of an upstream's silence after which a stream's client is sent a comment; 0 is off.
    pub(in crate::config) sse_keepalive_ms: Maybe<u64>,
    /// Milliseconds that a (model, endpoint) is skipped after a switch; 0 is off.
    pub(in crate::config) cooldown_ms: Maybe<u64>,
    /// Milliseconds from the start of an attempt to its response head; null is the provider's, 0 is off.
    pub(in crate::config) read_ms: Maybe<u64>,
    /// Continuation pools by name, for requests with exactly one of their paths.
    #[serde(default)]
    pub(in crate::config) pools: Entries<Spanned<NamedPool>>,
    /// How a degraded answer says so: header, comment or none.
    pub(in crate::config) notice: Maybe<Notice>,
    /// Keeps the requests of a conversation together; null is off.
    pub(in crate::config) affinity: Option<Affinity>,
    /// Requests a second; null is no limit.
    pub(in crate::config) rate_limit: Option<RateLimit>,
    /// Requests in flight; 0 is no limit.
    pub(in crate::config) concurrency: Maybe<u64>,
    /// Who answers, in priority order; the first is the preferred one. At least one.
    pub(in crate::config) targets: Maybe<Vec<Spanned<Target>>>,
    /// What happens when a target fails.
    pub(in crate::config) fallback: Option<Fallback>,
}

/// What a model does.
#[derive(Clone, Copy, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Kind {
    /// Chat, completions and all else.
    Chat,
    /// Vectors.
    Embedding,
}

/// Bounds of the wait for a stream's first decisive event.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Peek {
    /// Milliseconds after the head, where no first-token deadline is armed.
    pub(in crate::config) max_wait_ms: Maybe<u64>,
    /// Withheld bytes at most.
    pub(in crate::config) max_bytes: Maybe<u64>,
    /// Whether events that only announce a response are waited past.
    pub(in crate::config) past_preamble: Maybe<bool>,
    /// Milliseconds from the first of them.
    pub(in crate::config) preamble_wait_ms: Maybe<u64>,
}

/// Keeps the requests of a conversation together.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Affinity {
    /// `header:NAME`, `prompt_cache_key` or `first_messages`.
    pub(in crate::config) key: Spanned<String>,
}

/// Targets for requests with certain paths only.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct NamedPool {
    /// Exact request paths. At least one.
    pub(in crate::config) paths: Spanned<Vec<Spanned<String>>>,
    /// Who answers, in priority order. At least one.
    pub(in crate::config) targets: Maybe<Vec<Spanned<Target>>>,
    /// Known only to be refused with a reason: a named pool has no controller.
    #[schemars(skip)]
    pub(in crate::config) aimd: Maybe<IgnoredAny>,
}

/// A provider, and what it calls the model.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Target {
    /// Name of the provider.
    pub(in crate::config) provider: Spanned<String>,
    /// Model name that is sent; null sends the client's own.
    pub(in crate::config) upstream_model: Maybe<String>,
    /// Part of the traffic in a weighted pool, 0 to 1000; 0 drains.
    pub(in crate::config) weight: Maybe<u64>,
    /// False keeps its place in the order and never tries it.
    pub(in crate::config) enabled: Maybe<bool>,
}

/// What happens when a target fails.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Fallback {
    /// Whether another target is tried.
    pub(in crate::config) enabled: Maybe<bool>,
    /// Targets tried for one request, 1 to 10; null is all of them.
    pub(in crate::config) max_attempts: Maybe<u64>,
    /// Statuses that the next target answers.
    pub(in crate::config) on_status: Maybe<Vec<Spanned<Status>>>,
    /// Also these, unless the request is exempt.
    pub(in crate::config) realtime_on_status: Maybe<Vec<Spanned<Status>>>,
    /// Milliseconds to the first token before the next target is tried; null is failover's, 0 is off.
    pub(in crate::config) first_token_timeout_ms: Maybe<u64>,
    /// The share controller; null is its default values.
    pub(in crate::config) aimd: Maybe<Aimd>,
}

/// The share controller. What is left out is at its default, whatever a model's other settings are.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Aimd {
    /// False is off.
    pub(in crate::config) enabled: Maybe<bool>,
    /// A first token after more milliseconds is a breach; 1 to 3600000.
    pub(in crate::config) latency_budget_ms: Maybe<u64>,
    /// Part of breaches above which the share falls, 0 to below 1.
    pub(in crate::config) breach_rate_target: Maybe<f64>,
    /// Part of breaches up to which the share rises, 0 to `breach_rate_target`.
    pub(in crate::config) recovery_breach_rate: Maybe<f64>,
    /// Outcomes in the window, `min_samples` to 100000.
    pub(in crate::config) window_samples: Maybe<u64>,
    /// Outcomes before anything is decided, at least 2.
    pub(in crate::config) min_samples: Maybe<u64>,
    /// What the share rises by, above 0 to 1.
    pub(in crate::config) share_step: Maybe<f64>,
    /// What the share is multiplied by when it falls, between 0 and 1.
    pub(in crate::config) share_decay: Maybe<f64>,
    /// Smallest share, above 0 to 1.
    pub(in crate::config) share_floor: Maybe<f64>,
    /// Milliseconds between two changes, 1 to 86400000.
    pub(in crate::config) dwell_ms: Maybe<u64>,
    /// Milliseconds without enough outcomes after which the share rises by a step; 0 is off.
    pub(in crate::config) idle_recovery_ms: Maybe<u64>,
    /// Statuses that count as a breach: at most 32, each 400 to 599, numbers only.
    pub(in crate::config) overload_statuses: Maybe<Vec<Spanned<u64>>>,
    /// strict, or streaming (passthrough streams too).
    pub(in crate::config) scope: Maybe<Scope>,
}

/// Which requests the share is about.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Scope {
    /// Strict streams.
    Strict,
    /// All streams.
    Streaming,
}

/// Defaults of every model and preset.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Failover {
    /// Milliseconds to the first token before the next target is tried; 0 is off.
    pub(in crate::config) first_token_timeout_ms: Maybe<u64>,
    /// Milliseconds of silence after the first token before the stream ends; 0 is off.
    pub(in crate::config) stream_idle_timeout_ms: Maybe<u64>,
    /// Milliseconds that a (model, endpoint) is skipped after a switch, in presets; 0 is off.
    pub(in crate::config) cooldown_ms: Maybe<u64>,
    /// Milliseconds from the first attempt to the commit, whole chain; null is no limit.
    pub(in crate::config) total_deadline_ms: Maybe<u64>,
}

/// A chain of models behind one name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Preset {
    /// Name of the model.
    pub(in crate::config) model: Spanned<String>,
    /// Presets to go on with, in order; theirs are not followed.
    pub(in crate::config) fallbacks: Maybe<Vec<Spanned<String>>>,
    /// Milliseconds to the first token before the next target is tried; null is the model's, 0 is off.
    pub(in crate::config) first_token_timeout_ms: Maybe<u64>,
    /// Milliseconds from the start of an attempt to its response head; null is the model's, 0 is off.
    pub(in crate::config) read_ms: Maybe<u64>,
    /// Milliseconds that a (model, endpoint) is skipped after a switch; null is failover's, 0 is off.
    pub(in crate::config) cooldown_ms: Maybe<u64>,
    /// Milliseconds of silence after the first token; null is failover's, 0 is off.
    pub(in crate::config) stream_idle_timeout_ms: Maybe<u64>,
    /// Statuses that the next target answers.
    pub(in crate::config) on_status: Maybe<Vec<Spanned<Status>>>,
}
