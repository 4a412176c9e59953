//! Where requests can go.

use std::{path::PathBuf, time::Duration};

use http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ApiKey, Balance, Certificate, Host, Name, Pending, Probe, RateLimit, Scheme, Secret, Url};
use crate::policy::outcome::StatusSet;
use crate::policy::{breaker, budget, health};

/// One upstream service: endpoints that serve the same thing under one key.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the file, and they do not depend on each other"
)]
pub struct Provider {
    /// Shown in logs and metrics.
    pub name: Name,
    /// A provider that is off keeps its place in every pool and is never tried.
    pub enabled: bool,
    /// At least one.
    pub endpoints: Vec<Endpoint>,
    /// How one is chosen.
    pub balance: Balance,
    /// Sent with every attempt.
    pub api_key: Option<ApiKey>,
    /// The header that carries the key.
    pub auth_header: AuthHeader,
    /// Send the client's own credentials on as well.
    pub passthrough_auth: bool,
    /// Pass the client's `traceparent` and `tracestate` on.
    pub propagate_trace: bool,
    /// Added to every request; the values may be secret and are marked so.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How `https` endpoints are verified.
    pub tls: ClientTls,
    /// Kept-alive connections.
    pub connections: Connections,
    /// How names are looked up.
    pub dns: Dns,
    /// How long to wait.
    pub timeouts: Timeouts,
    /// When an endpoint is ejected; `None` is never.
    pub health: Option<health::Params>,
    /// How its endpoints are probed; `None` is not at all.
    pub probe: Option<Probe>,
    /// Whether 429, 503 and 529 are failures to endpoint health.
    pub count_backpressure: bool,
    /// With every endpoint out: use them all (true) or none.
    pub fail_open: bool,
    /// When the whole provider is left alone; `None` is never.
    pub breaker: Option<breaker::Params>,
    /// Trying again inside this provider.
    pub retries: Retries,
    /// Whether what the kernel sees of a connection ends attempts and ejects endpoints.
    pub kernel_signals: bool,
    /// Requests in flight, each until its response body ends; 0 is no limit.
    pub concurrency: u32,
    /// Who may wait for that.
    pub pending: Pending,
    /// Requests a second; `None` is no limit.
    pub rate_limit: Option<RateLimit>,
}

impl Provider {
    /// Where connections for an endpoint at `url` go: to the proxy, where there is one; a socket file is on this
    /// machine, and needs none.
    pub fn reached_at<'a>(&'a self, url: &'a Url) -> &'a Url {
        match &self.connections.proxy {
            Some(proxy) if !matches!(url.host(), Host::Socket(_)) => &proxy.url,
            _ => url,
        }
    }
}

/// Trying again inside a provider, on another endpoint where there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Retries {
    /// Tries in one visit of a request; 1 is no retry.
    pub max_attempts: u32,
    /// How many retries there may be beside the requests.
    pub budget: budget::Params,
    /// The longest backoff before the first retry; each further one may be twice as long.
    pub base: Duration,
    /// The longest of any backoff.
    pub cap: Duration,
    /// Statuses that are tried again.
    pub on_status: StatusSet,
    /// Whether calls that only compute an answer are repeated when they were sent and not answered by a byte.
    pub unanswered_posts: bool,
    /// Attempt start to a second attempt beside it, where it has not answered by then; `None` is never.
    pub hedge_after: Option<Duration>,
    /// The longest that a provider's own wish to be left alone is followed; `None` is any.
    pub max_retry_after: Option<Duration>,
    /// Start of a visit to the commit, backoff included; `None` is no limit.
    pub total_deadline: Option<Duration>,
}

/// One address of a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    /// Shown in logs and metrics, unique in its provider.
    pub name: Name,
    /// Where it is.
    pub url: Url,
    /// Its part of the provider's traffic, relative to the others'; 0 drains it.
    pub weight: u32,
}

/// The header that carries a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuthHeader {
    /// `authorization: Bearer …`
    Authorization,
    /// `x-api-key: …`
    XApiKey,
    /// `api-key: …`
    ApiKey,
}

/// How `https` endpoints are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientTls {
    /// PEM certificates to trust; `None` is the system's.
    pub ca_file: Option<PathBuf>,
    /// The name to ask for and to verify; `None` is the URL's host.
    pub server_name: Option<String>,
    /// False accepts any certificate.
    pub verify: bool,
    /// What is shown to an endpoint that asks for a certificate.
    pub client: Option<Certificate>,
}

/// Kept-alive connections to an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Idle connections to one endpoint, in the whole process.
    pub max_idle_per_endpoint: u32,
    /// What the file says; [`Connections::idle_timeout`] has the answer.
    pub(super) idle_timeout: Option<Duration>,
    /// Which HTTP is spoken.
    pub http_version: HttpVersion,
    /// Connections to one endpoint, in the whole process; 0 is no limit. At the limit a request waits for as long as
    /// connecting may take.
    pub max_per_endpoint: u32,
    /// Older connections take no new request; `None` is no limit.
    pub max_age: Option<Duration>,
    /// Requests at a time on one connection of HTTP/2.
    pub max_streams: u32,
    /// A proxy that is asked for a tunnel to every endpoint.
    pub proxy: Option<ConnectProxy>,
}

/// Which HTTP is spoken to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HttpVersion {
    /// What the endpoint offers.
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// A proxy that makes tunnels by CONNECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectProxy {
    /// `http`, a host and a port.
    pub url: Url,
    /// Who it is told that we are.
    pub user: Option<(String, Secret)>,
}

/// How names are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dns {
    /// How long an answer is used, give or take a tenth.
    pub refresh: Duration,
    /// How soon a failed look-up is tried again.
    pub failure_refresh: Duration,
}

impl Connections {
    /// How long an idle connection is kept.
    ///
    /// Model servers commonly close after 5 s; a connection that is dropped a little earlier is never found dead by
    /// a request. Hosted services keep theirs for a minute and more.
    pub fn idle_timeout(&self, scheme: Scheme) -> Duration {
        self.idle_timeout.unwrap_or(match scheme {
            Scheme::Http => Duration::from_secs(4),
            Scheme::Https => Duration::from_mins(1),
        })
    }
}

/// How long to wait for a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Connect and TLS together.
    pub connect: Duration,
    /// Start of an attempt to the response head; `None` is no limit. A model or preset may say otherwise
    /// ([`super::Read`]).
    pub read: Option<Duration>,
}
