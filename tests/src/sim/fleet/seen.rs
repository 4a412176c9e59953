//! How often a run came to what is worth checking: a simulation that never gets there shows nothing.

use std::ops::AddAssign;

/// Counts of what happened.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Seen {
    /// Attempts that were begun.
    pub attempts: u64,
    /// Attempts at an endpoint that was out.
    pub fail_open: u64,
    /// Attempts at a model that was cooling there.
    pub cooling: u64,
    /// Tries of the same provider again.
    pub retries: u64,
    /// Retries that were paid for and not made.
    pub refunds: u64,
    /// Visits to a target that an earlier pass had been to.
    pub second_passes: u64,
    /// Half-open probes of an endpoint.
    pub probes: u64,
    /// Half-open probes of a provider.
    pub breaker_probes: u64,
    /// Slots that were waited for.
    pub grants: u64,
    /// The same attempt once more, on a fresh connection.
    pub agains: u64,
    /// Second attempts beside slow ones.
    pub hedges: u64,
    /// Attempts that were cut because the other one answered.
    pub outrun: u64,
    /// Answers that failed after they were committed.
    pub late_failures: u64,
    /// Requests whose client left.
    pub left: u64,
    /// Attempts that a deadline of the cascade or of a visit cut.
    pub deadlines: u64,
    /// Requests that got no attempt.
    pub refused: u64,
}

impl AddAssign for Seen {
    fn add_assign(&mut self, more: Self) {
        let all = self.all().into_iter().zip(more.all());
        let mut sums = all.map(|((_, one), (_, other))| one + other);
        let mut next = || sums.next().unwrap_or_default();
        *self = Self {
            attempts: next(),
            fail_open: next(),
            cooling: next(),
            retries: next(),
            refunds: next(),
            second_passes: next(),
            probes: next(),
            breaker_probes: next(),
            grants: next(),
            agains: next(),
            hedges: next(),
            outrun: next(),
            late_failures: next(),
            left: next(),
            deadlines: next(),
            refused: next(),
        };
    }
}

impl Seen {
    /// Each count with its name.
    pub const fn all(&self) -> [(&'static str, u64); 16] {
        [
            ("attempts", self.attempts),
            ("fail_open", self.fail_open),
            ("cooling", self.cooling),
            ("retries", self.retries),
            ("refunds", self.refunds),
            ("second_passes", self.second_passes),
            ("probes", self.probes),
            ("breaker_probes", self.breaker_probes),
            ("grants", self.grants),
            ("agains", self.agains),
            ("hedges", self.hedges),
            ("outrun", self.outrun),
            ("late_failures", self.late_failures),
            ("left", self.left),
            ("deadlines", self.deadlines),
            ("refused", self.refused),
        ]
    }
}
