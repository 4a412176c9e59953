//! What keeps a provider's trouble from becoming everybody's.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Maybe, Status};
use crate::config::span::Spanned;

/// When an endpoint is ejected.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Health {
    /// False never ejects.
    pub(in crate::config) enabled: Maybe<bool>,
    /// Failures in a row that eject.
    pub(in crate::config) consecutive_failures: Maybe<u64>,
    /// Part of failures in the window that ejects, above 0 to 1.
    pub(in crate::config) failure_ratio: Maybe<f64>,
    /// Attempts in the window before the ratio says anything.
    pub(in crate::config) failure_min_volume: Maybe<u64>,
    /// Length of the window in milliseconds.
    pub(in crate::config) window_ms: Maybe<u64>,
    /// Milliseconds of the first ejection.
    pub(in crate::config) ejection_ms: Maybe<u64>,
    /// Milliseconds of the longest ejection.
    pub(in crate::config) max_ejection_ms: Maybe<u64>,
    /// Requests at a time that try an endpoint after its ejection.
    pub(in crate::config) half_open_probes: Maybe<u64>,
    /// The most endpoints that may be out at a time, in percent.
    pub(in crate::config) max_ejection_percent: Maybe<u64>,
    /// Milliseconds in which the weight of an endpoint that came back grows to its full size.
    pub(in crate::config) slow_start_ms: Maybe<u64>,
    /// Whether 429, 503 and 529 are failures.
    pub(in crate::config) count_backpressure: Maybe<bool>,
    /// With every endpoint out: use them all (true) or none.
    pub(in crate::config) fail_open: Maybe<bool>,
    /// Whether what the kernel sees of a connection counts.
    pub(in crate::config) kernel_signals: Maybe<bool>,
    /// Probes; null is off.
    pub(in crate::config) active: Option<Active>,
}

/// Probes of an endpoint.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Active {
    /// Path to ask for.
    pub(in crate::config) path: Maybe<String>,
    /// Method to ask with.
    pub(in crate::config) method: Maybe<String>,
    /// Milliseconds between two probes.
    pub(in crate::config) interval_ms: Maybe<u64>,
    /// Milliseconds that a probe may take.
    pub(in crate::config) timeout_ms: Maybe<u64>,
    /// http or tcp.
    pub(in crate::config) kind: Maybe<ProbeKind>,
    /// Good probes in a row that readmit.
    pub(in crate::config) healthy_after: Maybe<u64>,
    /// Bad probes in a row that eject.
    pub(in crate::config) unhealthy_after: Maybe<u64>,
    /// Statuses of a good probe.
    pub(in crate::config) expected_status: Maybe<Vec<Spanned<Status>>>,
    /// Whether probes carry the provider's key.
    pub(in crate::config) auth: Maybe<bool>,
}

/// What a probe does.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum ProbeKind {
    /// Sends a request.
    Http,
    /// Only connects.
    Tcp,
}

/// When a whole provider is left alone.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Breaker {
    /// False never trips.
    pub(in crate::config) enabled: Maybe<bool>,
    /// Failures in a row that trip.
    pub(in crate::config) consecutive_failures: Maybe<u64>,
    /// Part of failures in the window that trips, above 0 to 1.
    pub(in crate::config) failure_ratio: Maybe<f64>,
    /// Attempts in the window before the ratio says anything.
    pub(in crate::config) failure_min_volume: Maybe<u64>,
    /// Length of the window in milliseconds.
    pub(in crate::config) window_ms: Maybe<u64>,
    /// Milliseconds for which attempts are refused.
    pub(in crate::config) open_ms: Maybe<u64>,
    /// Requests at a time that try the provider after that.
    pub(in crate::config) half_open_probes: Maybe<u64>,
}

/// Tries inside one provider.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Retries {
    /// Tries of one request; 1 is no retry.
    pub(in crate::config) max_attempts: Maybe<u64>,
    /// Retries allowed, in percent of requests.
    pub(in crate::config) budget_percent: Maybe<u64>,
    /// Milliseconds over which that is counted.
    pub(in crate::config) budget_window_ms: Maybe<u64>,
    /// Retries in a window that are always allowed.
    pub(in crate::config) budget_min_per_window: Maybe<u64>,
    /// Milliseconds of the first backoff at most.
    pub(in crate::config) base_ms: Maybe<u64>,
    /// Milliseconds of any backoff at most.
    pub(in crate::config) cap_ms: Maybe<u64>,
    /// Statuses that are tried again.
    pub(in crate::config) on_status: Maybe<Vec<Spanned<Status>>>,
    /// Whether a completion that was sent and not answered by a byte may be sent again.
    pub(in crate::config) retry_unanswered_posts: Maybe<bool>,
    /// Milliseconds after which a second try is started beside the first; null is never.
    pub(in crate::config) hedge_after_ms: Maybe<u64>,
    /// Longest Retry-After that is believed, in milliseconds; 0 is any.
    pub(in crate::config) max_retry_after_ms: Maybe<u64>,
    /// Milliseconds from the first attempt to the commit in this provider; null is no limit.
    pub(in crate::config) total_deadline_ms: Maybe<u64>,
}

/// How many requests a second a provider is sent.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct RateLimit {
    /// Requests a second; null leaves only what is adaptive, which then steers `concurrency`.
    pub(in crate::config) requests_per_second: Maybe<f64>,
    /// Requests at once; null is what comes within a second.
    pub(in crate::config) burst: Maybe<u64>,
    /// Lower the rate while the provider is in trouble; null keeps it fixed.
    pub(in crate::config) adaptive: Maybe<Adaptive>,
}

/// How a rate follows the provider's state.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Adaptive {
    /// Time constant of the averages in milliseconds.
    pub(in crate::config) tau_ms: Maybe<u64>,
    /// Part of errors above which the rate falls, above 0 to 1.
    pub(in crate::config) max_error_rate: Maybe<f64>,
    /// Milliseconds to the commit above which the rate falls.
    pub(in crate::config) max_latency_ms: Maybe<u64>,
    /// Smallest part of the configured rate, above 0 to 1.
    pub(in crate::config) min_factor: Maybe<f64>,
    /// What the rate is multiplied by when it falls, between 0 and 1.
    pub(in crate::config) decrease_factor: Maybe<f64>,
    /// What is added to the part each second when all is well.
    pub(in crate::config) recover_per_second: Maybe<f64>,
    /// Whether a 429 with Retry-After lowers the rate until then.
    pub(in crate::config) honor_retry_after: Maybe<bool>,
    /// Longest Retry-After that lowers the rate, in milliseconds; null and 0 leave it to that of `retries`.
    pub(in crate::config) max_retry_after_ms: Maybe<u64>,
}
