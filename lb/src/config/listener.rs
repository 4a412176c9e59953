//! What clients connect to.

use std::{net::SocketAddr, time::Duration};

use super::Name;

/// One address on which requests come in.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    /// Shown in logs.
    pub name: Name,
    /// Where to bind; port 0 lets the system choose.
    pub address: SocketAddr,
    /// Connections open at a time; at the cap, accepting waits.
    pub max_connections: u32,
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
