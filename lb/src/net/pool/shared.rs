//! The connections that many requests use at a time.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Pool, lock};
use crate::net::http2::{Multiplexed, Slot};

impl Pool {
    /// A place on the newest connection of `worker` that takes streams and has room for one.
    pub(in crate::net) fn take_shared(&self, worker: usize, now: Instant) -> Option<Slot> {
        let mut shared = lock(&self.shard(worker).shared);
        // What takes no streams any more is let go of: those on it keep it until they have finished.
        shared.retain(|connection| self.is_shareable(connection, now));
        shared.iter().rev().find_map(Multiplexed::slot)
    }

    /// Lets other requests of `worker` use this connection, unless a purge has come in between.
    pub(in crate::net) fn share(&self, worker: usize, connection: &Arc<Multiplexed>) {
        let mut shared = lock(&self.shard(worker).shared);
        if self.is_current(connection) {
            shared.push(Arc::clone(connection));
        }
    }

    /// Waits until nobody else of `worker` is making a connection that this request could use as well.
    pub(in crate::net) async fn turn(&self, worker: usize) -> tokio::sync::MutexGuard<'_, ()> {
        self.shard(worker).turn.lock().await
    }

    pub(super) fn is_shareable(&self, connection: &Multiplexed, now: Instant) -> bool {
        let aged = |max| now.saturating_duration_since(connection.born()) >= max;
        let idle = |since| now.saturating_duration_since(since) >= self.limits.idle_timeout;
        connection.is_open()
            && self.is_current(connection)
            && !self.limits.max_age.is_some_and(aged)
            && !connection.idle_since().is_some_and(idle)
    }

    pub(super) fn retain_shared(&self, mut keep: impl FnMut(&Multiplexed) -> bool) {
        for shard in &self.shards {
            lock(&shard.shared).retain(|connection| keep(connection));
        }
    }

    pub(super) fn idle_shared(&self) -> usize {
        let idle = |connection: &&Arc<Multiplexed>| connection.idle_since().is_some();
        let of = |shard: &super::Shard| lock(&shard.shared).iter().filter(idle).count();
        self.shards.iter().map(of).sum()
    }

    /// Closes an idle one of `worker`, if there is one.
    pub(super) fn evict_shared(&self, worker: usize) -> bool {
        let mut shared = lock(&self.shard(worker).shared);
        let idle = shared
            .iter()
            .position(|connection| connection.idle_since().is_some());
        idle.map(|at| shared.remove(at)).is_some()
    }

    fn is_current(&self, connection: &Multiplexed) -> bool {
        connection.generation() == self.generation.load(std::sync::atomic::Ordering::Acquire)
    }
}
