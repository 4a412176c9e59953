//! Chance as a number that the caller hands in.

/// A number in [0, 1), drawn by the caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Draw(f64);

impl Draw {
    /// Takes `value` into [0, 1): what is below, or no number, becomes 0; what is above, the largest number below 1.
    pub fn new(value: f64) -> Self {
        const LARGEST: f64 = 1.0 - f64::EPSILON / 2.0;
        if value >= 0.0 {
            Self(value.min(LARGEST))
        } else {
            Self(0.0)
        }
    }

    /// `bits` as a fraction of 2^64, but for those that a float does not hold.
    #[expect(
        clippy::cast_precision_loss,
        reason = "only the 53 bits that a float holds are left"
    )]
    pub fn of_bits(bits: u64) -> Self {
        Self((bits >> 11) as f64 / 2f64.powi(53))
    }

    /// The number, in [0, 1).
    pub const fn value(self) -> f64 {
        self.0
    }
}

/// The additive sequence frac(u0 + n·(√5−1)/2).
///
/// Its terms fill [0, 1) more evenly than independent draws: of any N in a row, close to N·f lie below f, for every f.
/// Having no period, it gives a client no rhythm to fall in step with.
#[derive(Clone, Debug)]
pub struct Weyl(u64);

impl Weyl {
    /// (√5−1)/2 as a fraction of 2^64.
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

    /// Starts the sequence at u0 = `origin`.
    pub fn new(origin: Draw) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a draw is in [0, 1)"
        )]
        Self((origin.value() * 2f64.powi(64)) as u64)
    }

    /// The next term, beginning with u0.
    #[expect(
        clippy::should_implement_trait,
        reason = "it never ends, so an iterator's Option would be noise"
    )]
    pub fn next(&mut self) -> Draw {
        // Whole 64-bit steps that wrap are exact; a running sum of floats would drift off the sequence.
        let term = self.0;
        self.0 = term.wrapping_add(Self::STEP);
        Draw::of_bits(term)
    }
}

#[cfg(test)]
mod tests;
