//! What is still to come, earliest first.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Events with the time each is due. Those that are due at the same time come in the order they were put in.
pub(super) struct Queue<E> {
    heap: BinaryHeap<Due<E>>,
    sequence: u64,
}

struct Due<E> {
    at: Duration,
    sequence: u64,
    event: E,
}

impl<E> Queue<E> {
    pub(super) const fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            sequence: 0,
        }
    }

    pub(super) fn push(&mut self, at: Duration, event: E) {
        self.sequence += 1;
        self.heap.push(Due {
            at,
            sequence: self.sequence,
            event,
        });
    }

    /// The earliest event, if it is due by `until`.
    pub(super) fn pop(&mut self, until: Duration) -> Option<(Duration, E)> {
        if self.heap.peek()?.at > until {
            return None;
        }
        self.heap.pop().map(|due| (due.at, due.event))
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }
}

impl<E> Ord for Due<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        // Turned around, since the heap's first is its greatest.
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl<E> PartialOrd for Due<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Due<E> {
    fn eq(&self, other: &Self) -> bool {
        self.sequence == other.sequence
    }
}

impl<E> Eq for Due<E> {}
