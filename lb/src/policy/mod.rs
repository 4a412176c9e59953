//! The brain: what an ending means, which target is next, how large the preferred provider's share is.
//!
//! Everything here is a function of its arguments. The clock ([`time::Instant`]) and chance ([`draw::Draw`]) are handed
//! in, a small value comes out; there is no I/O, no lock, no task, no log line and no metric, so that a test or the
//! simulation can take any machine through hours in microseconds, and the same inputs always give the same answer.
//!
//! Two shapes repeat. A *machine* ([`aimd::Share`], [`health::Health`]) is made from validated `Params`, is told what
//! happened, and works out at the next call what time alone has changed: nothing here waits. A *table*
//! ([`outcome::judge`], [`select::least_inflight`]) has no memory at all. A request's [`cascade::Cascade`] stands
//! between them: it remembers what that one request has tried.

#![forbid(unsafe_code)]
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "policy is told the time and the draw; its answers must not depend on the machine it runs on"
)]

use std::fmt;

pub mod aimd;
pub mod backoff;
pub mod balance;
pub mod breaker;
pub mod bucket;
pub mod budget;
pub mod cascade;
pub mod connection;
pub mod cooldown;
pub mod draw;
mod failures;
pub mod health;
pub mod limiter;
pub mod outcome;
mod probes;
pub mod select;
pub mod time;
mod window;

/// A setting outside of what it may be; the only error in this layer, and only at construction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OutOfBounds {
    /// The setting as the configuration spells it, its unit included (`dwell_ms`); the caller knows its path.
    pub field: &'static str,
    /// What it has to do, to follow "must": `lie in [0, 1)`.
    pub must: &'static str,
}

impl fmt::Display for OutOfBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} must {}", self.field, self.must)
    }
}

impl std::error::Error for OutOfBounds {}

/// Collects every setting that is out of bounds, so that a person mends them all at once.
#[derive(Debug, Default)]
struct Bounds(Vec<OutOfBounds>);

impl Bounds {
    /// Notes `field` unless it is as it `must` be.
    fn require(&mut self, holds: bool, field: &'static str, must: &'static str) {
        if !holds {
            self.0.push(OutOfBounds { field, must });
        }
    }

    /// The checked value, or all that is wrong with it.
    fn finish<T>(self, value: T) -> Result<T, Vec<OutOfBounds>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }
}

#[cfg(test)]
mod tests;
