//! Tells the programs which sockets are to be followed.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};

use aya::maps::{HashMap, MapData};
use rustix::net::sockopt::socket_cookie;

/// A writer of the map `WATCH`. Each worker has its own, so that its lock is never contended.
#[derive(Debug)]
pub struct Watch(Mutex<HashMap<MapData, u64, u32>>);

impl Watch {
    pub(super) fn new(map: HashMap<MapData, u64, u32>) -> Self {
        Self(Mutex::new(map))
    }

    /// Has the connection that `socket` is about to make followed and counted for the endpoint in `slot`.
    ///
    /// To be called between `socket()` and `connect()`: the programs look a socket up when its SYN passes. Returns the
    /// socket's cookie, which names the connection in everything that is reported about it. Two system calls, about a
    /// microsecond; an error leaves the connection unobserved and otherwise as it was.
    pub fn follow(&self, socket: BorrowedFd<'_>, slot: u16) -> io::Result<u64> {
        let cookie = socket_cookie(socket)?;
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        map.insert(cookie, u32::from(slot), 0).map_err(io::Error::other)?;
        Ok(cookie)
    }
}
