//! What clients connect to.

use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf, time::Duration};

use super::{Cidr, Name};

/// One address on which requests come in.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Shown in logs.
    pub name: Name,
    /// Where to bind; port 0 lets the system choose.
    pub address: SocketAddr,
    /// What it shows of itself; `None` is plain HTTP.
    pub tls: Option<ListenerTls>,
    /// HTTP/2: by ALPN with TLS, by prior knowledge without.
    pub http2: bool,
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
