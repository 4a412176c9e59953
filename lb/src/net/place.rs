//! Where connections go.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    Tcp(SocketAddr),
    Unix,
}

/// What is connected to.
#[derive(Debug)]
pub(super) enum Place {
    Tcp(Addresses),
    /// A socket file.
    Unix(PathBuf),
}

/// How long an address that gave no connection comes after the others. As long as it takes a server to restart: others
/// are there meanwhile, and if none is, it is tried all the same.
const SHUNNED: Duration = Duration::from_secs(10);

/// The addresses of one name.
///
/// They are equals: each connection begins at the next one, so that all of them get their part. One that failed to give a
/// connection goes to the end of the line for a while, which is remembered for as long as it stays an address.
#[derive(Debug)]
pub(super) struct Addresses {
    all: Arc<[SocketAddr]>,
    /// Those that failed, and when.
    failed: Vec<(SocketAddr, Instant)>,
    next: usize,
}

impl Addresses {
    pub(super) fn new(all: &[SocketAddr]) -> Self {
        Self {
            all: all.into(),
            failed: Vec::new(),
            next: 0,
        }
    }

    pub(super) fn all(&self) -> &[SocketAddr] {
        &self.all
    }

    /// Replaces them; whether all that were there stay.
    pub(super) fn replace(&mut self, all: &[SocketAddr]) -> bool {
        let all_stay = self.all.iter().all(|old| all.contains(old));
        self.all = all.into();
        self.next = 0;
        self.failed.retain(|(address, _)| all.contains(address));
        all_stay
    }

    /// In the order in which the next connection tries them.
    pub(super) fn line(&mut self, now: Instant) -> Vec<SocketAddr> {
        self.failed
            .retain(|(_, at)| now.saturating_duration_since(*at) < SHUNNED);
        let start = self.next.checked_rem(self.all.len()).unwrap_or(0);
        self.next = start.wrapping_add(1);
        let mut line: Vec<SocketAddr> = [&self.all[start..], &self.all[..start]].concat();
        // Stable: among themselves they stay as they were.
        line.sort_by_key(|address| self.failed.iter().any(|(failed, _)| failed == address));
        line
    }

    /// What came of trying one.
    pub(super) fn tried(&mut self, address: SocketAddr, connected: bool, now: Instant) {
        self.failed.retain(|(failed, _)| *failed != address);
        if !connected && self.all.contains(&address) {
            self.failed.push((address, now));
        }
    }
}

#[cfg(test)]
mod tests;
