//! Who may look in, and who may send.

use std::{net::SocketAddr, path::PathBuf};

use super::Name;

/// The listener for operators, probes and scrapers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admin {
    /// Where to bind.
    pub address: SocketAddr,
    /// A file with the bearer token that every request but a probe's must carry; there is one unless the address is
    /// loopback.
    pub token_file: Option<PathBuf>,
}

/// Which clients may send requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// Whether a request needs one of `keys`. What the file leaves open is settled here: yes, unless every listener
    /// is loopback.
    pub required: bool,
    /// The keys that are known.
    pub keys: Vec<ClientKey>,
}

/// One client's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientKey {
    /// Shown in logs and metrics in the key's stead.
    pub name: Name,
    /// A file with the key's SHA-256 in hexadecimal, as `sha256sum` prints it. The key itself is nowhere.
    pub sha256_file: PathBuf,
    /// The models and presets it may use, families (`prefix/*`) among them; `None` is all.
    pub models: Option<Vec<String>>,
}
