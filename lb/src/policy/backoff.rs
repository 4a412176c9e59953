//! How long to wait before trying again.

use std::time::Duration;

use super::draw::Draw;

/// Full jitter: a uniform span of at most `base` before the first retry, doubled with each further one up to `cap`.
///
/// Uniform from zero, not around a middle, so that requests that failed together do not come back together.
pub fn full_jitter(base: Duration, cap: Duration, retry: u32, draw: Draw) -> Duration {
    let doublings = retry.saturating_sub(1);
    let longest = 2u32
        .checked_pow(doublings)
        .map_or(cap, |times| base.saturating_mul(times).min(cap));
    longest.mul_f64(draw.value())
}

#[cfg(test)]
mod tests;
