//! Who may connect to a listener, and with how many connections at a time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use crate::config::Cidr;

/// A listener's clients by address, over all workers.
#[derive(Debug)]
pub(super) struct Sources {
    /// Empty is everybody.
    allowed: Vec<Cidr>,
    /// `None` counts nothing.
    limit: Option<NonZeroU32>,
    /// Shared with the forms that these limits had before.
    open: Arc<Mutex<HashMap<IpAddr, u32>>>,
}

/// Why a connection is closed as soon as it was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnedAway {
    /// Its address is on no list.
    Forbidden,
    /// Its address has as many connections as it may.
    TooMany,
}

/// One connection among its address's; dropped, it counts no more.
#[derive(Debug)]
pub(super) struct Counted(Option<(Arc<Sources>, IpAddr)>);

impl Sources {
    pub(super) fn new(allowed: Vec<Cidr>, limit: Option<NonZeroU32>) -> Self {
        Self {
            allowed,
            limit,
            open: Arc::default(),
        }
    }

    /// Other limits for the same clients: connections that were counted count on.
    pub(super) fn with(&self, allowed: Vec<Cidr>, limit: Option<NonZeroU32>) -> Self {
        Self {
            allowed,
            limit,
            open: Arc::clone(&self.open),
        }
    }

    /// Counts a connection from `ip`, in its canonical form.
    pub(super) fn admit(self: &Arc<Self>, ip: IpAddr) -> Result<Counted, TurnedAway> {
        if !self.allowed.is_empty() && !self.allowed.iter().any(|range| range.contains(ip)) {
            return Err(TurnedAway::Forbidden);
        }
        let Some(limit) = self.limit else {
            return Ok(Counted(None));
        };
        let source = source(ip);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(source).or_default();
        if *count >= limit.get() {
            return Err(TurnedAway::TooMany);
        }
        *count += 1;
        Ok(Counted(Some((Arc::clone(self), source))))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Some((sources, source)) = self.0.take() else {
            return;
        };
        let mut open = sources.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                open.remove(&source);
            }
        }
    }
}

/// What counts as one source: an address, or in IPv6 the /64 in which one host has addresses without end.
fn source(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(ip) => IpAddr::V6((u128::from(ip) >> 64 << 64).into()),
    }
}

#[cfg(test)]
mod tests;
