//! What lb tells about itself.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Url;

/// What is logged, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The least severe event that is written.
    pub level: LogLevel,
    /// The form of a line.
    pub format: LogFormat,
    /// One line for each request.
    pub access: bool,
}

/// How severe an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Every step.
    Trace,
    /// Every decision.
    Debug,
    /// Every change.
    Info,
    /// What an operator should look at.
    Warn,
    /// What does not work.
    Error,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, the journal's form where stderr goes there, JSON elsewhere.
    Auto,
    /// For people.
    Text,
    /// For machines.
    Json,
    /// Fields of their own in systemd's journal.
    Journald,
}

/// Which spans go where.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracing {
    /// A collector that takes OTLP over HTTP, without the path of its spans; `None` is off.
    pub endpoint: Option<Url>,
    /// Part of requests that are traced.
    pub sample_ratio: f64,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// Upper edges of the first-token histogram in seconds, rising.
    ///
    /// Every latency budget and first-token deadline in force is among them, so that "within the budget" can be read
    /// off exactly.
    pub first_token_buckets: Vec<f64>,
    /// Whether tokens are counted by what providers say of them in `usage`.
    pub usage: bool,
}
