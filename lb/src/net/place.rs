//! Where connections go.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Tcp(SocketAddr),
    Unix,
}

/// What is connected to.
#[derive(Debug)]
pub(super) enum Place {
    /// One of these, in this order.
    Tcp(Arc<[SocketAddr]>),
    /// A socket file.
    Unix(PathBuf),
}
