//! Where requests can go.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Breaker, Health, Maybe, RateLimit, Retries};
use crate::config::{
    AuthHeader, HttpVersion,
    span::{Entries, Spanned},
};

/// One upstream service: endpoints that serve the same thing under one key.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Provider {
    /// False keeps it in every pool and never tries it.
    pub(in crate::config) enabled: Maybe<bool>,
    /// Addresses that serve the same thing. At least one.
    pub(in crate::config) endpoints: Maybe<Vec<Spanned<Endpoint>>>,
    /// How an endpoint is chosen.
    pub(in crate::config) balance: Maybe<Balance>,
    /// With hash: `address`, or `header:` and a name.
    pub(in crate::config) hash_key: Maybe<String>,
    /// The key that is sent with every attempt.
    pub(in crate::config) api_key: Maybe<String>,
    /// File with that key; read again when it changes.
    pub(in crate::config) api_key_file: Maybe<String>,
    /// The header that carries the key.
    pub(in crate::config) auth_header: Maybe<AuthHeader>,
    /// Send the client's own credentials on.
    pub(in crate::config) passthrough_auth: Maybe<bool>,
    /// Pass traceparent and tracestate on.
    pub(in crate::config) propagate_trace: Maybe<bool>,
    /// Added to every upstream request.
    #[serde(default)]
    pub(in crate::config) headers: Entries<Spanned<String>>,
    /// How https endpoints are verified.
    pub(in crate::config) tls: Option<ClientTls>,
    /// Kept-alive connections.
    pub(in crate::config) connections: Option<Connections>,
    /// How names are looked up.
    pub(in crate::config) dns: Option<Dns>,
    /// How long to wait.
    pub(in crate::config) timeouts: Option<Timeouts>,
    /// When an endpoint is ejected.
    pub(in crate::config) health: Option<Health>,
    /// When the whole provider is left alone.
    pub(in crate::config) circuit_breaker: Option<Breaker>,
    /// Tries inside this provider, before failing over.
    pub(in crate::config) retries: Option<Retries>,
    /// Requests in flight, each until its response body ends; 0 is no limit.
    pub(in crate::config) concurrency: Maybe<u64>,
    /// Requests that may wait for a slot.
    pub(in crate::config) max_pending: Maybe<u64>,
    /// Milliseconds that a request may wait for a slot.
    pub(in crate::config) pending_timeout_ms: Maybe<u64>,
    /// Requests a second; null is off.
    pub(in crate::config) rate_limit: Option<RateLimit>,
}

/// One address of a provider.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Endpoint {
    /// In metrics and logs; default `<provider>-<index>`.
    pub(in crate::config) name: Maybe<String>,
    /// http:// or https://, a host, and what stands in place of the request's /v1.
    pub(in crate::config) url: Spanned<String>,
    /// Part of the provider's traffic, 0 to 1000; 0 drains.
    pub(in crate::config) weight: Maybe<u64>,
}

/// How an endpoint is chosen.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Balance {
    /// The fewest requests in flight for its weight.
    LeastInflight,
    /// The lower of two by recent latency and load.
    PeakEwma,
    /// In turn, by weight.
    RoundRobin,
    /// By chance, by weight.
    Random,
    /// By a key of the request.
    Hash,
}

/// How https endpoints are verified.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct ClientTls {
    /// PEM certificates to trust; null is the system's.
    pub(in crate::config) ca_file: Maybe<String>,
    /// Name to ask for and to verify; null is the URL's host.
    pub(in crate::config) server_name: Maybe<String>,
    /// False accepts any certificate.
    pub(in crate::config) verify: Maybe<bool>,
    /// PEM chain to show to the endpoint.
    pub(in crate::config) client_cert_file: Maybe<String>,
    /// PEM key of that chain.
    pub(in crate::config) client_key_file: Maybe<String>,
}

/// Kept-alive connections.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Connections {
    /// auto, http1, or http2 (by prior knowledge where there is no TLS).
    pub(in crate::config) http_version: Maybe<HttpVersion>,
    /// Idle connections to one endpoint.
    pub(in crate::config) max_idle_per_endpoint: Maybe<u64>,
    /// Connections to one endpoint; 0 is no limit.
    pub(in crate::config) max_per_endpoint: Maybe<u64>,
    /// Milliseconds that an idle connection is kept; null is 4000 on http and 60000 on https.
    pub(in crate::config) idle_timeout_ms: Maybe<u64>,
    /// Milliseconds after which a connection takes no new request; 0 is no limit.
    pub(in crate::config) max_age_ms: Maybe<u64>,
    /// Requests at a time on one HTTP/2 connection.
    pub(in crate::config) max_streams_per_connection: Maybe<u64>,
    /// http://host:port of a CONNECT proxy.
    pub(in crate::config) proxy: Maybe<String>,
}

/// How names are looked up.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Dns {
    /// Milliseconds between two look-ups.
    pub(in crate::config) refresh_ms: Maybe<u64>,
    /// Milliseconds to the next look-up after a failed one.
    pub(in crate::config) failure_refresh_ms: Maybe<u64>,
}

/// How long to wait for a provider.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Timeouts {
    /// Milliseconds to connect, TLS included.
    pub(in crate::config) connect_ms: Maybe<u64>,
    /// Milliseconds from the start of an attempt to its response head; 0 is off.
    pub(in crate::config) read_ms: Maybe<u64>,
}
