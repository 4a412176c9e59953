//! The shell's clock: the only place where the time is read for the pure layers.
//!
//! Pure layers count nanoseconds of `CLOCK_MONOTONIC`, because the kernel's programs stamp their events with it and
//! the two must compare. The value is the kernel's at start plus the time tokio says has passed since, so that a test
//! with paused time moves both together.

use crate::policy::time::Instant;

/// A reading of the kernel's monotonic clock, tied to a reading of tokio's.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    base: Instant,
    origin: tokio::time::Instant,
}

impl Clock {
    /// Ties the two clocks together now.
    pub fn start() -> Self {
        let at = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let nanos = u64::try_from(at.tv_sec)
            .unwrap_or(0)
            .saturating_mul(1_000_000_000)
            .saturating_add(u64::try_from(at.tv_nsec).unwrap_or(0));
        Self {
            base: Instant::from_nanos(nanos),
            origin: tokio::time::Instant::now(),
        }
    }

    /// The present instant.
    pub fn now(&self) -> Instant {
        self.base + self.origin.elapsed()
    }

    /// The same instant on tokio's clock, to arm a timer with.
    pub fn tokio(&self, at: Instant) -> tokio::time::Instant {
        self.origin + at.since(self.base)
    }

    /// What is `at` on tokio's clock.
    pub fn of_tokio(&self, at: tokio::time::Instant) -> Instant {
        self.base + at.duration_since(self.origin)
    }
}
