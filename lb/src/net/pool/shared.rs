//! The connections that many requests use at a time.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Ends, Pool, Waiting, lock};
use crate::net::http2::{Multiplexed, Slot};

impl Pool {
    /// A place on the newest connection of `worker` that takes streams and has room for one; only on one that was made
    /// `after` that, if so.
    pub(in crate::net) fn take_shared(
        &self,
        worker: usize,
        now: Instant,
        after: Option<Instant>,
    ) -> Option<Slot> {
        let mut shared = lock(&self.shard(worker).shared);
        // What takes no streams any more is let go of: those on it keep it until they have finished.
        shared.retain(|connection| self.is_shareable(connection, now));
        let mut fit = shared
            .iter()
            .rev()
            .take_while(|connection| after.is_none_or(|after| connection.born() > after));
        fit.find_map(Multiplexed::slot)
    }

    /// Lets other requests of `worker` use this connection, unless a purge has come in between.
    pub(in crate::net) fn share(&self, worker: usize, connection: &Arc<Multiplexed>) {
        let shard = self.shard(worker);
        shard.joining.note_made();
        let mut shared = lock(&shard.shared);
        if self.is_current(connection) {
            shared.push(Arc::clone(connection));
        }
    }

    /// Counts a request of `worker` among those who wait for a stream.
    pub(in crate::net) fn wait(&self, worker: usize) -> Waiting<'_> {
        self.shard(worker).joining.wait()
    }

    /// Whether a connection that `worker` can share came up after that.
    pub(in crate::net) fn has_made_since(&self, worker: usize, begun: Instant) -> bool {
        self.shard(worker).joining.has_made_since(begun)
    }

    /// How many streams a connection more is likely to have room for: as many as the newest.
    pub(in crate::net) fn streams_each(&self, worker: usize) -> usize {
        let shared = lock(&self.shard(worker).shared);
        shared
            .last()
            .map_or_else(|| self.max_streams(), |newest| newest.max_streams())
    }

    /// Whom a connection of `worker` tells of its streams' ends.
    pub(in crate::net) fn ends(&self, worker: usize) -> Ends {
        Ends {
            counts: Arc::clone(&self.counts),
            joining: Arc::clone(&self.shard(worker).joining),
        }
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
