//! Why a daemon did not start, in words that say what to do.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::kernel::Missing;

use crate::proxy::IdentityError;

/// Why a daemon did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Another process has the address.
    #[error(
        "listener `{name}`: {address} is in use by another process; stop it, change the listener's `address`, or take \
         over from it, if it is an lb, with --takeover"
    )]
    AddressInUse {
        /// The listener.
        name: String,
        /// Where it should listen.
        address: SocketAddr,
    },
    /// The address cannot be bound for another reason.
    #[error("listener `{name}`: cannot bind {address}: {source}; is it an address of this machine?")]
    Bind {
        /// The listener.
        name: String,
        /// Where it should listen.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// A file with a secret cannot be used.
    #[error("{what}: {path}: {reason}", path = path.display())]
    File {
        /// Whose file it is.
        what: String,
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A listener's certificates cannot be used.
    #[error("listener `{name}`: {source}")]
    Identity {
        /// The listener.
        name: String,
        /// What is wrong with them.
        source: IdentityError,
    },
    /// The kernel plane is required and cannot be had.
    #[error("`kernel.mode` is `required`, but: {0}")]
    Kernel(#[source] Missing),
    /// A thread or its runtime could not be made.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
    /// The service manager has handed over no socket of that name.
    #[error(
        "listener `{name}`: no socket is called `{wanted}` among those that were handed over ({handed}); name it by \
         `FileDescriptorName={wanted}` in the .socket unit"
    )]
    NotInherited {
        /// The listener.
        name: String,
        /// The name of its socket.
        wanted: String,
        /// The names that there are.
        handed: String,
    },
    /// The port is one that only a privileged process may bind.
    #[error("listener `{name}`: no permission to bind {address}; ports below 1024 need CAP_NET_BIND_SERVICE")]
    Permission {
        /// The listener.
        name: String,
        /// Where it should listen.
        address: SocketAddr,
    },
    /// There is nobody to take over from.
    #[error(
        "cannot take over: {0}; start without --takeover if none runs, or name the file that it runs from with -c, as \
         the same user and with the same RUNTIME_DIRECTORY"
    )]
    Unreachable(String),
    /// A provider's TLS cannot be set up.
    #[error("provider `{provider}`: {reason}")]
    Tls {
        /// The provider.
        provider: String,
        /// What is wrong.
        reason: String,
    },
}

impl StartError {
    pub(super) fn bind(name: &str, address: SocketAddr, source: io::Error) -> Self {
        let name = name.to_owned();
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::AddressInUse { name, address },
            io::ErrorKind::PermissionDenied => Self::Permission { name, address },
            _ => Self::Bind {
                name,
                address,
                source,
            },
        }
    }

    /// The process's exit code (sysexits, which systemd names in `systemctl status`).
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::File { .. } | Self::Identity { .. } | Self::Tls { .. } => 78,
            Self::Kernel(missing) if missing.is_privilege() => 77,
            Self::AddressInUse { .. }
            | Self::Bind { .. }
            | Self::Kernel(_)
            | Self::NotInherited { .. }
            | Self::Unreachable(_) => 69,
            Self::Permission { .. } => 77,
            Self::Thread(_) => 70,
        }
    }
}
