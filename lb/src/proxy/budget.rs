//! One limit on all request bodies that are held in memory, whoever sent them.
//!
//! A body is held until its request needs no further attempt, so slow providers alone could fill the memory with what
//! fast clients send. Past the limit reading pauses, which clients feel as back-pressure; a body that finds no room
//! for [`PATIENCE`] is given up, and with it what it held.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// How long a body waits for room.
pub(super) const PATIENCE: Duration = Duration::from_secs(2);

/// What all bodies of this process may hold together, and what they hold.
#[derive(Debug)]
pub struct Budget {
    limit: AtomicU64,
    held: AtomicU64,
    waiting: AtomicU32,
    freed: Notify,
}

/// What one body holds; dropped, there is room again.
#[derive(Debug)]
pub(super) struct Held {
    budget: Arc<Budget>,
    bytes: u64,
}

/// There was none for [`PATIENCE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoRoom;

impl Budget {
    /// A budget of so many bytes.
    pub fn new(limit: u64) -> Self {
        Self {
            limit: AtomicU64::new(limit),
            held: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
            freed: Notify::new(),
        }
    }

    /// Changes the limit; what is held already stays so.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
        self.freed.notify_waiters();
    }

    /// What is held now. Bytes.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        let fits = |held: u64| held.checked_add(bytes).filter(|held| *held <= limit);
        // Nothing is added that is taken back again: that would look like room to whoever waits.
        self.held
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits)
            .is_ok()
    }

    fn give(&self, bytes: u64) {
        // In one order with `waiting` below: either the waiter sees the room, or it is seen here.
        self.held.fetch_sub(bytes, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.freed.notify_waiters();
        }
    }
}

impl Held {
    /// Nothing yet.
    pub(super) fn new(budget: &Arc<Budget>) -> Self {
        Self {
            budget: Arc::clone(budget),
            bytes: 0,
        }
    }

    /// Holds `bytes` more, once there is room.
    pub(super) async fn grow(&mut self, bytes: u64) -> Result<(), NoRoom> {
        if self.budget.take(bytes) {
            self.bytes += bytes;
            return Ok(());
        }
        // Boxed, so that who need not wait does not carry its room.
        Box::pin(self.wait_for(bytes)).await
    }

    async fn wait_for(&mut self, bytes: u64) -> Result<(), NoRoom> {
        let begun = Instant::now();
        let waiting = Waiting::new(&self.budget);
        loop {
            let mut freed = std::pin::pin!(self.budget.freed.notified());
            // Registered before the look, so that room that comes between the two is not missed.
            freed.as_mut().enable();
            if self.budget.take(bytes) {
                break;
            }
            if timeout_at(begun + PATIENCE, freed).await.is_err() {
                return Err(NoRoom);
            }
        }
        drop(waiting);
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.give(self.bytes);
        }
    }
}

/// Counts a body that waits.
struct Waiting(Arc<Budget>);

impl Waiting {
    fn new(budget: &Arc<Budget>) -> Self {
        budget.waiting.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(budget))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
