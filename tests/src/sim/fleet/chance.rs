//! Draws that a run needs.

use std::time::Duration;

/// A source of chance that belongs to one subject, so that what others draw does not move it.
pub(in crate::sim) fn of(seed: u64, subject: u64) -> fastrand::Rng {
    // Neighbouring seeds of the generator begin alike; the multiplication sets them apart.
    fastrand::Rng::with_seed(
        seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ subject.wrapping_mul(0xD1B5_4A32_D192_ED03),
    )
}

/// Drawn from the exponential distribution with mean 1.
pub(in crate::sim) fn exponential(random: &mut fastrand::Rng) -> f64 {
    -(1.0 - random.f64()).ln()
}

/// Drawn from the standard normal distribution.
pub(in crate::sim) fn normal(random: &mut fastrand::Rng) -> f64 {
    (2.0 * exponential(random)).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
}

/// Seconds as a span of whole microseconds: what is below that is not worth a difference between two machines' `exp`.
pub(in crate::sim) fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64((seconds * 1e6).round() / 1e6)
}

/// One of `choices`.
pub(in crate::sim) fn pick<T: Copy>(random: &mut fastrand::Rng, choices: &[T]) -> T {
    choices[random.usize(..choices.len())]
}
