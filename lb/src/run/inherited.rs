//! Listening sockets that somebody else has bound: the service manager, or the lb that this one takes over from.

use std::net::{SocketAddr, TcpListener};

use crate::config::{self, Place};
use crate::proxy::{Bound, is_listening};

/// Sockets that were handed over. What the configuration has no place for stays here.
#[derive(Debug, Default)]
pub struct Inherited {
    named: Vec<(String, TcpListener)>,
    groups: Vec<Group>,
    admin: Option<TcpListener>,
}

/// The sockets of one listener of the lb before.
#[derive(Debug)]
pub(super) struct Group {
    /// Where its configuration had it.
    pub(super) place: String,
    /// What its configuration called it.
    pub(super) name: String,
    pub(super) sockets: Vec<TcpListener>,
}

impl Inherited {
    /// What systemd hands over (`LISTEN_FDS`, with the names of `LISTEN_FDNAMES`). To be called before the first thread
    /// starts, since it takes these variables out of the environment.
    pub fn from_systemd() -> Self {
        let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
        let mut handed = listenfd::ListenFd::from_env();
        let mut named = Vec::new();
        let mut names = names.split(':');
        for index in 0..handed.len() {
            let name = names.next().unwrap_or("unknown");
            match handed.take_tcp_listener(index) {
                Ok(Some(socket)) if is_listening(&socket) => named.push((name.to_owned(), socket)),
                Ok(_) => tracing::warn!(name, "a socket that was handed over does not listen: not used"),
                Err(error) => {
                    tracing::warn!(name, %error, "a socket that was handed over is not TCP: not used");
                }
            }
        }
        Self {
            named,
            ..Self::default()
        }
    }

    /// Takes the sockets back that `bound` has of the service manager's, for a later configuration.
    pub(super) fn take_back(&mut self, bound: &Bound) {
        if let (Place::Inherited(name), Ok(sockets)) = (&bound.place, bound.sockets()) {
            let named = sockets.into_iter().map(|socket| (name.to_string(), socket));
            self.named.extend(named);
        }
    }

    /// Closes what the lb before had and this one does not want: connections would wait there for ever.
    pub(super) fn settle(&mut self) {
        self.groups.clear();
    }

    /// Adds what the lb before hands over.
    pub(super) fn take_over(&mut self, groups: Vec<Group>, admin: Option<TcpListener>) {
        (self.groups, self.admin) = (groups, admin);
    }

    /// The sockets for `listener`, if any were handed over.
    pub(super) fn take(&mut self, listener: &config::Listener) -> Vec<TcpListener> {
        let place = listener.place.to_string();
        let open_port = listener
            .place
            .address()
            .is_some_and(|address| address.port() == 0);
        let fits =
            |group: &Group| group.place == place && (!open_port || group.name == listener.name.as_str());
        if let Some(index) = self.groups.iter().position(fits) {
            return self.groups.swap_remove(index).sockets;
        }
        let Place::Inherited(name) = &listener.place else {
            return Vec::new();
        };
        let all = std::mem::take(&mut self.named);
        let (taken, left) = all.into_iter().partition(|(known, _)| known == name.as_str());
        self.named = left;
        let taken: Vec<(String, TcpListener)> = taken;
        taken.into_iter().map(|(_, socket)| socket).collect()
    }

    /// The admin listener's socket, if it was handed over and is where it is wanted.
    pub(super) fn take_admin(&mut self, address: SocketAddr) -> Option<TcpListener> {
        let fits = |socket: &TcpListener| {
            let bound = socket.local_addr();
            bound.is_ok_and(|bound| bound == address || (address.port() == 0 && bound.ip() == address.ip()))
        };
        self.admin.take().filter(fits)
    }

    /// The names that the service manager gave to what it handed over and nobody has taken.
    pub(super) fn names(&self) -> String {
        let names: Vec<_> = self.named.iter().map(|(name, _)| name.as_str()).collect();
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    }
}
