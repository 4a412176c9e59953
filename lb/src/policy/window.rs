//! How many of the latest results failed, counted over a span of time.

use std::time::Duration;

use super::time::{Instant, nanos};

/// Exact counts over the latest span, in ten buckets of a tenth each.
///
/// Exact rather than a decaying average, because an average gives each result of a burst almost no weight and so can
/// hide an outage. The span ends with the bucket in progress: it covers between nine and ten tenths of what was asked.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// Nanoseconds of one bucket.
    width: u64,
    buckets: [Counts; BUCKETS],
    /// The bucket in progress, counted from the clock's zero so that two windows of one width turn over together.
    current: u64,
}

/// What a window counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Counts {
    /// Results in all.
    pub(super) volume: u32,
    /// Those of them that failed.
    pub(super) failures: u32,
}

impl Window {
    /// An empty window over `span`.
    pub(super) fn new(span: Duration) -> Self {
        Self {
            width: (nanos(span) / BUCKETS as u64).max(1),
            buckets: [Counts::default(); BUCKETS],
            current: 0,
        }
    }

    /// Counts one result.
    pub(super) fn record(&mut self, now: Instant, failed: bool) {
        let failures = u32::from(failed);
        self.add(now, Counts { volume: 1, failures });
    }

    /// Counts `more` at once.
    pub(super) fn add(&mut self, now: Instant, more: Counts) {
        let bucket = self.bucket(now);
        bucket.volume = bucket.volume.saturating_add(more.volume);
        bucket.failures = bucket.failures.saturating_add(more.failures);
    }

    /// Counts one failure less of those at `then`, if the window still spans that instant.
    pub(super) fn forget_failure(&mut self, then: Instant) {
        let position = then.as_nanos() / self.width;
        if position <= self.current && position + BUCKETS as u64 > self.current {
            let bucket = &mut self.buckets[slot(position)];
            bucket.failures = bucket.failures.saturating_sub(1);
        }
    }

    /// The bucket of `now`, those before it turned over.
    fn bucket(&mut self, now: Instant) -> &mut Counts {
        let position = now.as_nanos() / self.width;
        if position > self.current {
            for passed in 1..=(position - self.current).min(BUCKETS as u64) {
                self.buckets[slot(self.current + passed)] = Counts::default();
            }
            self.current = position;
        }
        &mut self.buckets[slot(self.current)]
    }

    /// The counts as they stand at `now`.
    pub(super) fn counts(&self, now: Instant) -> Counts {
        // Buckets that have run out but that no later result has turned over yet are passed by, not cleared.
        let position = (now.as_nanos() / self.width).max(self.current);
        let oldest = (position + 1).saturating_sub(BUCKETS as u64);
        (oldest..=self.current).fold(Counts::default(), |sum, position| {
            let bucket = self.buckets[slot(position)];
            Counts {
                volume: sum.volume.saturating_add(bucket.volume),
                failures: sum.failures.saturating_add(bucket.failures),
            }
        })
    }

    /// Spans another time from now on. What was counted is kept, in the buckets in which it lies now; what the new span
    /// is too short for is forgotten.
    pub(super) fn resize(&mut self, span: Duration) {
        let before = std::mem::replace(self, Self::new(span));
        if before.width == self.width {
            *self = before;
            return;
        }
        let oldest = (before.current + 1).saturating_sub(BUCKETS as u64);
        self.current = before.current.saturating_mul(before.width) / self.width;
        for position in oldest..=before.current {
            let here = position.saturating_mul(before.width) / self.width;
            if here + BUCKETS as u64 <= self.current {
                continue;
            }
            let (bucket, counts) = (&mut self.buckets[slot(here)], before.buckets[slot(position)]);
            bucket.volume = bucket.volume.saturating_add(counts.volume);
            bucket.failures = bucket.failures.saturating_add(counts.failures);
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.buckets = [Counts::default(); BUCKETS];
    }
}

/// Where the bucket of that number lies in the ring.
#[expect(clippy::cast_possible_truncation, reason = "a remainder of ten")]
const fn slot(position: u64) -> usize {
    (position % BUCKETS as u64) as usize
}

const BUCKETS: usize = 10;

#[cfg(test)]
mod tests;
