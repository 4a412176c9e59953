//! What happens to the pool from outside, drawn before anything is steered.

use std::time::Duration;

use super::Plant;

/// One request, with everything that chance decides about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// When it comes, counted from the start.
    pub(super) arrives: Duration,
    /// How far its first-token time lies from the median, in standard deviations.
    pub(super) deviation: f64,
    /// From the first token to the end.
    pub(super) decode: Duration,
    /// Its first-token time at an alternate.
    pub(super) alternate: Duration,
    pub(super) mishap: Option<Mishap>,
}

/// What goes wrong with a few requests whatever the load is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mishap {
    /// An alternate answers 500, so that the cascade comes to the preferred target as its last.
    AlternateFails,
    /// The client leaves three seconds after it came.
    ClientLeaves,
    /// The preferred provider refuses the connection.
    Refused,
}

/// The requests of one seed, in the order of their coming.
pub(super) struct Trace {
    random: fastrand::Rng,
    arrivals: f64,
    decode: f64,
    now: Duration,
}

impl Trace {
    pub(super) fn new(seed: u64, plant: &Plant) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            arrivals: plant.arrivals,
            decode: plant.decode,
            now: Duration::ZERO,
        }
    }

    /// Drawn from the exponential distribution with mean 1.
    fn exponential(&mut self) -> f64 {
        -(1.0 - self.random.f64()).ln()
    }

    /// Drawn from the standard normal distribution.
    fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.random.f64()).cos()
    }
}

impl Iterator for Trace {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let gap = self.exponential() / self.arrivals;
        self.now += Duration::from_secs_f64(gap);
        let mishap = match self.random.u32(0..1_000) {
            0..10 => Some(Mishap::AlternateFails),
            10..20 => Some(Mishap::ClientLeaves),
            20..23 => Some(Mishap::Refused),
            _ => None,
        };
        Some(Request {
            arrives: self.now,
            deviation: self.normal(),
            decode: Duration::from_secs_f64(self.decode * (0.5 + 0.5 * self.exponential())),
            alternate: Duration::from_secs_f64(0.8 * (0.3 * self.normal()).exp()),
            mishap,
        })
    }
}
