//! How many requests at a time, and who waits for a place.
//!
//! Places are handed out in the order in which they were asked for: while anybody waits, a place that comes free is
//! theirs, and whoever comes later finds none.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The places of a provider or a model, shared by all its forms.
#[derive(Debug, Default)]
pub(super) struct Slots {
    taken: AtomicU32,
    /// 0 is none.
    limit: AtomicU32,
    /// As many as the queue is long.
    waiting: AtomicU32,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    waiting: VecDeque<(u64, Option<Waker>)>,
    /// Those who have a place that they have not fetched yet.
    granted: Vec<u64>,
}

/// Somebody's number in the queue.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Number(u64);

impl Slots {
    /// Places that are taken.
    pub(super) fn taken(&self) -> u32 {
        self.taken.load(Ordering::SeqCst)
    }

    /// Requests that wait.
    pub(super) fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Places there are; 0 is no limit.
    pub(super) fn limit(&self) -> u32 {
        self.limit.load(Ordering::SeqCst)
    }

    /// Has so many places from now on; more of them let in who waits.
    pub(super) fn set_limit(&self, limit: u32) {
        if self.limit.swap(limit, Ordering::SeqCst) != limit {
            self.admit();
        }
    }

    /// Whether nobody who comes now gets a place.
    pub(super) fn is_full(&self) -> bool {
        let limit = self.limit();
        limit > 0 && (self.taken() >= limit || self.waiting() > 0)
    }

    /// Takes a place, which [`Self::release`] gives back.
    pub(super) fn take(&self) -> bool {
        self.waiting() == 0 && self.take_any()
    }

    /// Gives a place back.
    pub(super) fn release(&self) {
        self.taken.fetch_sub(1, Ordering::SeqCst);
        // Whoever joins the queue looks for a place after having counted itself, so one of the two sees the other.
        if self.waiting() > 0 {
            self.admit();
        }
    }

    /// Joins the queue, unless it is `max` long.
    pub(super) fn join(&self, max: u32) -> Option<Number> {
        let mut queue = self.queue();
        if queue.waiting.len() >= max as usize {
            return None;
        }
        let number = queue.next;
        queue.next += 1;
        queue.waiting.push_back((number, None));
        self.waiting.fetch_add(1, Ordering::SeqCst);
        drop(queue);
        self.admit();
        Some(Number(number))
    }

    /// Ready when this number has a place, which is then the caller's to give back.
    pub(super) fn poll(&self, number: &Number, cx: &Context<'_>) -> Poll<()> {
        let mut queue = self.queue();
        if queue.fetch(number) {
            return Poll::Ready(());
        }
        let mut all = queue.waiting.iter_mut();
        if let Some((_, waker)) = all.find(|(waiting, _)| *waiting == number.0) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Leaves the queue; a place that was granted meanwhile goes to the next.
    pub(super) fn leave(&self, number: &Number) {
        let mut queue = self.queue();
        if let Some(at) = queue.waiting.iter().position(|(waiting, _)| *waiting == number.0) {
            queue.waiting.remove(at);
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        } else if queue.fetch(number) {
            drop(queue);
            self.release();
        }
    }

    /// Gives free places to those who wait, first come first served.
    fn admit(&self) {
        let mut woken = Vec::new();
        let mut queue = self.queue();
        while !queue.waiting.is_empty() && self.take_any() {
            let first = queue.waiting.pop_front();
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            if let Some((number, waker)) = first {
                queue.granted.push(number);
                woken.extend(waker);
            }
        }
        drop(queue);
        woken.into_iter().for_each(Waker::wake);
    }

    fn take_any(&self) -> bool {
        let limit = match self.limit() {
            0 => u32::MAX,
            limit => limit,
        };
        let free = |taken: u32| (taken < limit).then_some(taken + 1);
        self.taken
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, free)
            .is_ok()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn fetch(&mut self, number: &Number) -> bool {
        let at = self.granted.iter().position(|granted| *granted == number.0);
        at.map(|at| self.granted.swap_remove(at)).is_some()
    }
}

#[cfg(test)]
mod tests;
