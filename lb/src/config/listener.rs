//! What clients connect to.

use std::{fmt, net::SocketAddr, num::NonZeroU32, path::PathBuf, time::Duration};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Cidr, Name};

/// One address on which requests come in.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Shown in logs.
    pub name: Name,
    /// Where its connections come in.
    pub place: Place,
    /// What it shows of itself; `None` is plain HTTP.
    pub tls: Option<ListenerTls>,
    /// HTTP/2: by ALPN with TLS, by prior knowledge without.
    pub http2: bool,
    /// What trusted proxies send before everything else.
    pub proxy_protocol: ProxyProtocol,
    /// Connections open at a time; at the cap, accepting waits.
    pub max_connections: u32,
    /// Connections open at a time from one address; `None` is no limit.
    pub max_connections_per_source: Option<NonZeroU32>,
    /// Who may connect; empty is everybody.
    pub allow_sources: Vec<Cidr>,
    /// First byte of a request to the end of its head.
    pub header_timeout: Duration,
    /// A connection between two requests.
    pub idle_timeout: Duration,
    /// Accept to the first byte of the first request.
    pub first_byte_timeout: Duration,
    /// A client that takes nothing for this long is cut.
    pub write_timeout: Duration,
    /// A longer request body is answered with 413. Bytes.
    pub max_body_bytes: u64,
}

/// Which PROXY protocol header a trusted proxy sends first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProxyProtocol {
    /// None.
    #[default]
    Off,
    /// The text form.
    V1,
    /// The binary form.
    V2,
    /// Either form.
    Any,
}

/// Where a listener's connections come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An address to bind; port 0 lets the system choose.
    Address(SocketAddr),
    /// A socket that the service manager has bound and handed over under this name.
    Inherited(Name),
}

impl Place {
    /// The address, where the file says one.
    pub const fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Inherited(_) => None,
        }
    }

    /// Whether no other machine can reach it, for all that the file says.
    pub fn is_loopback(&self) -> bool {
        self.address().is_some_and(|address| address.ip().is_loopback())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Inherited(name) => write!(f, "fd:{name}"),
        }
    }
}

/// The certificates of a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerTls {
    /// At least one. Which one a client gets is decided by the names they carry; the first answers all others.
    pub certificates: Vec<Certificate>,
    /// Authorities, one of which must have signed a client's certificate; `None` asks for no such certificate.
    pub client_ca_file: Option<PathBuf>,
}

/// A certificate and its key. Both files are read again when they change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The chain in PEM form, the server's own certificate first.
    pub cert_file: PathBuf,
    /// Its key in PEM form.
    pub key_file: PathBuf,
}
