//! What clients and operators meet.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Maybe;
use crate::config::{ProxyProtocol, Reveal, span::Spanned};

/// One address on which requests come in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Listener {
    /// Shown in logs: [a-z0-9._-], at most 64.
    pub(in crate::config) name: Spanned<String>,
    /// Address and port, such as `0.0.0.0:8443` or `[::]:8443`; `fd:NAME` for a socket of systemd's.
    pub(in crate::config) address: Spanned<String>,
    /// Leave out for plain HTTP.
    pub(in crate::config) tls: Option<ListenerTls>,
    /// HTTP/2 by ALPN, and by prior knowledge on plain listeners.
    pub(in crate::config) http2: Maybe<bool>,
    /// PROXY protocol header before each connection: off, v1, v2 or any; from trusted proxies only.
    pub(in crate::config) proxy_protocol: Maybe<ProxyProtocol>,
    /// Connections open at a time; at the cap, accepting waits.
    pub(in crate::config) max_connections: Maybe<u64>,
    /// Milliseconds from the first byte of a request to the end of its head.
    pub(in crate::config) header_timeout_ms: Maybe<u64>,
    /// Milliseconds that a connection may rest between two requests.
    pub(in crate::config) idle_timeout_ms: Maybe<u64>,
    /// Milliseconds from accept or handshake to the first request byte.
    pub(in crate::config) first_byte_timeout_ms: Maybe<u64>,
    /// A client that takes nothing for this many milliseconds is cut.
    pub(in crate::config) write_timeout_ms: Maybe<u64>,
    /// Longest request body; 413 above.
    pub(in crate::config) max_body_bytes: Maybe<u64>,
    /// Connections from one address; 0 is no limit.
    pub(in crate::config) max_connections_per_source: Maybe<u64>,
    /// CIDRs that may connect; empty is all.
    pub(in crate::config) allow_sources: Maybe<Vec<Spanned<String>>>,
}

/// The certificates of a listener.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct ListenerTls {
    /// PEM chain; read again when it changes.
    pub(in crate::config) cert_file: Spanned<String>,
    /// PEM key of that chain.
    pub(in crate::config) key_file: Maybe<String>,
    /// Further certificates, each for the names that it carries; the one above answers all other names.
    pub(in crate::config) certificates: Maybe<Vec<Certificate>>,
    /// Set to require client certificates that these authorities signed.
    pub(in crate::config) client_ca_file: Maybe<String>,
}

/// A certificate and its key.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Certificate {
    /// PEM chain; read again when it changes.
    pub(in crate::config) cert_file: Spanned<String>,
    /// PEM key of that chain.
    pub(in crate::config) key_file: Maybe<String>,
}

/// Probes, metrics and the API for operators.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Admin {
    /// Address and port.
    pub(in crate::config) address: Maybe<String>,
    /// File with the bearer token; required unless the address is loopback.
    pub(in crate::config) token_file: Maybe<String>,
    /// Serve the dashboard.
    pub(in crate::config) dashboard: Maybe<bool>,
}

/// Which clients may send requests.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Auth {
    /// Whether a request needs a key; null is true unless every listener is loopback. False must be written.
    pub(in crate::config) required: Maybe<bool>,
    /// The keys that are known.
    pub(in crate::config) keys: Maybe<Vec<Spanned<ClientKey>>>,
}

/// One client's key.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct ClientKey {
    /// Shown in logs and metrics in the key's stead.
    pub(in crate::config) name: Spanned<String>,
    /// File with the key's SHA-256 in hexadecimal.
    pub(in crate::config) sha256_file: Spanned<String>,
    /// Models and presets that the key may use; null is all.
    pub(in crate::config) models: Maybe<Vec<Spanned<String>>>,
}

/// The process as a whole.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Server {
    /// Worker threads; 0 is one for each available CPU.
    pub(in crate::config) workers: Maybe<u64>,
    /// Milliseconds from SIGTERM to the end of accepting, while /readyz already says no.
    pub(in crate::config) drain_delay_ms: Maybe<u64>,
    /// Milliseconds that open streams may go on after that.
    pub(in crate::config) drain_timeout_ms: Maybe<u64>,
    /// Request bodies up to this size can be sent again.
    pub(in crate::config) replay_bytes: Maybe<u64>,
    /// All buffered bodies together; null is a quarter of memory.
    pub(in crate::config) buffer_bytes: Maybe<u64>,
    /// Reload when the file changes.
    pub(in crate::config) watch: Maybe<bool>,
    /// A request with this header opts out of first-token deadlines and of the share.
    pub(in crate::config) exempt_header: Maybe<String>,
    /// CIDRs whose X-Forwarded-For and x-request-id are believed.
    pub(in crate::config) trusted_proxies: Maybe<Vec<Spanned<String>>>,
    /// How much the x-lb-* response headers tell: endpoint, provider or none.
    pub(in crate::config) reveal: Maybe<Reveal>,
    /// Say in the Via header of requests that lb passed them on, and refuse requests that come back.
    pub(in crate::config) via: Maybe<bool>,
    /// Ask proxies between lb and its clients, by fields of event streams, not to buffer or transform them.
    pub(in crate::config) sse_headers: Maybe<bool>,
}
