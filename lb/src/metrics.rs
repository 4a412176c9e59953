//! Every series that lb exports: its name, help, labels and buckets, each said once.
//!
//! Label values come from configuration or from the enums here, never from traffic, so that the number of series is
//! known when the configuration is. All handles are resolved when a table is built and kept beside what they count:
//! looking one up by its labels costs more than the rest of a request's bookkeeping together.
//!
//! Series are never evicted: autoscalers read an absent `lb_inflight_requests` as zero, and a gauge torn away from a
//! long stream would take its worker down.

mod families;
mod gaps;
mod handles;
mod kernel;
mod words;

pub use families::Metrics;
pub use gaps::Gaps;
pub use handles::{
    ConversationMetrics, CooldownMetrics, EndpointMetrics, LinkMetrics, ModelMetrics, PoolMetrics,
    ProviderMetrics,
};
pub use kernel::TrafficMetrics;
pub use words::{AttemptOutcome, HedgeOutcome, RequestOutcome, RetryOutcome, Role};

#[cfg(test)]
mod tests;
