//! The host of a URL.

use std::{fmt, net::IpAddr, path::PathBuf};

/// A host as a URL writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Host {
    /// A literal address, to which nothing needs to be looked up.
    Address(IpAddr),
    /// A name for the resolver, in lower case.
    Name(String),
    /// A socket file of this machine.
    Socket(PathBuf),
}

impl Host {
    /// Whether the host can only be this machine or its own network, so that a key sent in the clear stays there.
    ///
    /// A name says so by having no dot or by ending in a suffix that public DNS does not serve.
    pub fn is_private(&self) -> bool {
        match self {
            Self::Address(IpAddr::V4(ip)) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
            Self::Address(IpAddr::V6(ip)) => {
                ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()
            }
            Self::Socket(_) => true,
            Self::Name(name) => {
                !name.contains('.') || PRIVATE_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
            }
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V4(ip)) => write!(f, "{ip}"),
            Self::Address(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
            Self::Name(name) => f.write_str(name),
            Self::Socket(file) => write!(f, "{}", file.display()),
        }
    }
}

/// RFC 6762, RFC 8375, ICANN's reservation of `.internal`, and what Kubernetes and home routers use.
const PRIVATE_SUFFIXES: [&str; 6] = [".internal", ".local", ".localhost", ".home.arpa", ".lan", ".svc"];
