//! How requests to one provider are spread, probed and limited.

use std::time::Duration;

use http::{HeaderName, Method};

use crate::policy::outcome::StatusSet;
use crate::policy::{bucket, limiter};

/// How an endpoint is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Balance {
    /// By this key of the request, so that requests with the same key meet the same endpoint.
    Hash(HashKey),
    /// The fewest requests in flight for its weight.
    LeastInflight,
    /// The cheaper of two by recent latency, failures and load.
    PeakEwma,
    /// By chance, by weight.
    Random,
    /// In turn, by weight.
    RoundRobin,
}

/// What of a request is hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HashKey {
    /// The address that it came from.
    Address,
    /// The conversation that it belongs to, by its model's affinity; a request of none goes anywhere.
    Conversation,
    /// The first value of this field; a request without it goes anywhere.
    Header(HeaderName),
}

/// How the endpoints of a provider are probed.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// What is done.
    pub kind: ProbeKind,
    /// Between the beginnings of two probes, but for a tenth of jitter.
    pub interval: Duration,
    /// How long one may take.
    pub timeout: Duration,
}

/// What a probe does.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeKind {
    /// Sends a request.
    Http {
        /// Path and query from the root; that of the endpoint's URL is not used.
        path: String,
        /// GET, HEAD or the like; no body is sent.
        method: Method,
        /// Statuses of a good answer.
        expected: StatusSet,
        /// Whether it carries the provider's own fields, its key among them.
        auth: bool,
    },
    /// Makes a connection.
    Tcp,
}

/// How many requests a second.
#[derive(Clone, Debug, PartialEq)]
pub struct RateLimit {
    /// `None` where there is only something adaptive, which then steers `concurrency`.
    pub rate: Option<bucket::Params>,
    /// How the limit follows the provider's state; `None` is not at all.
    pub adaptive: Option<limiter::Params>,
}

/// How many requests at a time, and how many of them may wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Requests that may wait for a slot; 0 is none.
    pub max: u32,
    /// How long each may.
    pub timeout: Duration,
}
