//! Time as a number that the caller hands in.

use std::ops::Add;
use std::time::Duration;

/// A reading of `CLOCK_MONOTONIC` in nanoseconds.
///
/// A type of our own rather than the standard library's, because a test has to make one out of nothing and because the
/// kernel programs stamp what they see with the same clock. All arithmetic saturates: a reading that goes backwards
/// makes a span of zero, never a panic.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Instant(u64);

impl Instant {
    /// The instant `nanos` nanoseconds after the clock's zero.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

/// A span in milliseconds for people and programs to read: whole microseconds, so that its shortest decimal form has at
/// most three places.
pub fn millis(span: Duration) -> f64 {
    // Exact up to 285 years.
    #[expect(
        clippy::cast_precision_loss,
        reason = "microseconds of any real span are below 2^53"
    )]
    let micros = span.as_micros() as f64;
    micros / 1e3
}

/// A span in nanoseconds; one of more than 584 years counts as 584 years.
pub(super) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
