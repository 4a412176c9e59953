//! What moves on a client connection, and since when it does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::connection::Limits;

/// One connection's movement. Written by its socket and its requests, read by its one timer, all in one task: the
/// atomics are only there because a body may be dropped elsewhere.
#[derive(Debug)]
pub(super) struct Activity {
    origin: Instant,
    phase: AtomicU8,
    /// Nanoseconds after `origin` at which the phase began.
    since: AtomicU64,
    /// The same for the write that is not taken, plus one; 0 while none waits.
    stalled: AtomicU64,
}

const NEW: u8 = 0;
const BUSY: u8 = 1;
const IDLE: u8 = 2;

/// Marks its connection busy while a request is on it.
#[derive(Debug)]
pub(super) struct Busy(Arc<Activity>);

impl Activity {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            origin: now,
            phase: AtomicU8::new(NEW),
            since: AtomicU64::new(0),
            stalled: AtomicU64::new(0),
        }
    }

    /// A request's head is there; the connection is busy until the guard is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> Busy {
        self.enter(BUSY);
        Busy(Arc::clone(self))
    }

    /// Bytes came: from here on hyper's own head timer holds.
    pub(super) fn read(&self) {
        if self.phase.load(Ordering::Relaxed) != BUSY {
            self.enter(BUSY);
        }
    }

    /// A write was not taken.
    pub(super) fn stalled(&self, now: Instant) {
        let at = self.nanos(now) + 1;
        // Only the first of a stall sets it: progress is what clears it.
        let _already = self
            .stalled
            .compare_exchange(0, at, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A write was taken.
    pub(super) fn wrote(&self) {
        self.stalled.store(0, Ordering::Relaxed);
    }

    /// Resolves when the connection has been in one state for longer than `limits` allow.
    pub(super) async fn expired(&self, limits: Limits) {
        loop {
            let now = Instant::now();
            let due = self.due(limits, now);
            if due <= now {
                return;
            }
            tokio::time::sleep_until(due).await;
        }
    }

    /// When the connection has to be ended or, while nothing limits it, looked at again.
    fn due(&self, limits: Limits, now: Instant) -> Instant {
        let since = self.origin + Duration::from_nanos(self.since.load(Ordering::Relaxed));
        let stalled = self.stalled.load(Ordering::Relaxed);
        if stalled > 0 {
            return self.origin + Duration::from_nanos(stalled - 1) + limits.write_timeout;
        }
        match self.phase.load(Ordering::Relaxed) {
            NEW => since + limits.first_byte_timeout,
            IDLE => since + limits.idle_timeout,
            // A stall or a silence that begins right after this look is noticed a quarter of its limit late at most.
            _ => now + limits.write_timeout.min(limits.idle_timeout) / 4,
        }
    }

    fn enter(&self, phase: u8) {
        self.since.store(self.nanos(Instant::now()), Ordering::Relaxed);
        self.phase.store(phase, Ordering::Relaxed);
    }

    fn nanos(&self, now: Instant) -> u64 {
        u64::try_from(now.duration_since(self.origin).as_nanos()).unwrap_or(u64::MAX - 1)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.enter(IDLE);
    }
}
