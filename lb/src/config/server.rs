//! The process as a whole.

use std::{num::NonZeroU16, time::Duration};

use http::HeaderName;
use schemars::JsonSchema;
use serde::Deserialize;

use super::Cidr;

/// What holds for every listener and request.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Worker threads; `None` is one for each CPU that this process may use.
    pub workers: Option<NonZeroU16>,
    /// SIGTERM to the end of accepting, while `/readyz` already says no.
    pub drain_delay: Duration,
    /// How long open streams may go on after that.
    pub drain_timeout: Duration,
    /// Whether the configuration is read again when its file changes.
    pub watch: bool,
    /// A request body up to this size can be sent again. Bytes.
    pub replay_bytes: u64,
    /// All buffered request bodies together; `None` is a quarter of the memory that this process may use. Bytes.
    pub buffer_bytes: Option<u64>,
    /// A request with this header opts out of first-token deadlines and of the share.
    pub exempt_header: HeaderName,
    /// Peers whose `X-Forwarded-For` and `x-request-id` are believed.
    pub trusted_proxies: Vec<Cidr>,
    /// How much the `x-lb-*` response headers tell clients.
    pub reveal: Reveal,
    /// Whether requests say in `Via` that they passed here, and are refused where they come back.
    pub via: bool,
    /// Whether event streams ask the proxies before lb to pass them on as they come.
    pub sse_headers: bool,
}

/// How much the `x-lb-*` response headers tell clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reveal {
    /// Nothing about what is behind lb.
    None,
    /// The provider and its model.
    Provider,
    /// The endpoint as well.
    Endpoint,
}
