//! How many connections a listener has, and may have.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Places for connections. Unlike a semaphore it knows those that were taken before the limit changed.
#[derive(Debug)]
pub(super) struct Slots {
    limit: AtomicUsize,
    taken: AtomicUsize,
    freed: Notify,
}

/// One place, given back when dropped.
#[derive(Debug)]
pub(super) struct Slot(Arc<Slots>);

impl Slots {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit: AtomicUsize::new(limit),
            taken: AtomicUsize::new(0),
            freed: Notify::new(),
        }
    }

    /// Sets another limit. Where more are taken already, they stay, and nobody gets a place until enough have gone.
    pub(super) fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
        self.freed.notify_waiters();
    }

    /// Places that are taken.
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    /// A place, if one is free.
    pub(super) fn try_take(self: &Arc<Self>) -> Option<Slot> {
        let limit = self.limit.load(Ordering::Relaxed);
        let free = |taken: usize| (taken < limit).then_some(taken + 1);
        let taken = self.taken.fetch_update(Ordering::AcqRel, Ordering::Relaxed, free);
        taken.is_ok().then(|| Slot(Arc::clone(self)))
    }

    /// A place whatever the limit.
    pub(super) fn take_beyond(self: &Arc<Self>) -> Slot {
        self.taken.fetch_add(1, Ordering::AcqRel);
        Slot(Arc::clone(self))
    }

    /// A place, as soon as one is free.
    pub(super) async fn take(self: &Arc<Self>) -> Slot {
        loop {
            // Made before the look, so that a place that is freed between the look and the wait is not missed.
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(slot) = self.try_take() {
                return slot;
            }
            freed.await;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests;
