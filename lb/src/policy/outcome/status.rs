//! Sets of HTTP statuses.

use std::fmt;
use std::ops::RangeInclusive;

/// A set of HTTP statuses from 100 to 599. Others are never in it.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub struct StatusSet([u64; WORDS]);

impl StatusSet {
    /// None of them.
    pub const NONE: Self = Self([0; WORDS]);

    /// The set of all statuses within `ranges`; what lies outside of 100 to 599 is left out.
    pub fn from_ranges(ranges: impl IntoIterator<Item = RangeInclusive<u16>>) -> Self {
        ranges.into_iter().flatten().collect()
    }

    /// Adds `status`; one outside of 100 to 599 is left out.
    pub fn insert(&mut self, status: u16) {
        if let Some((word, bit)) = place(status) {
            self.0[word] |= bit;
        }
    }

    /// Adds a class such as `4` for 4xx, or `50` for 50x.
    pub fn insert_class(&mut self, digits: u16) {
        let first = digits.saturating_mul(if digits < 10 { 100 } else { 10 });
        let span = if digits < 10 { 100 } else { 10 };
        self.extend(first..first.saturating_add(span));
    }

    /// Whether `status` is in the set.
    pub fn contains(&self, status: u16) -> bool {
        place(status).is_some_and(|(word, bit)| self.0[word] & bit != 0)
    }

    /// The statuses, rising.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        STATUSES.filter(|status| self.contains(*status))
    }
}

impl Extend<u16> for StatusSet {
    fn extend<I: IntoIterator<Item = u16>>(&mut self, statuses: I) {
        for status in statuses {
            self.insert(status);
        }
    }
}

impl FromIterator<u16> for StatusSet {
    fn from_iter<I: IntoIterator<Item = u16>>(statuses: I) -> Self {
        let mut set = Self::default();
        set.extend(statuses);
        set
    }
}

impl fmt::Debug for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The word and the bit that stand for `status`.
fn place(status: u16) -> Option<(usize, u64)> {
    let at = usize::from(STATUSES.contains(&status).then(|| status - STATUSES.start())?);
    Some((at / 64, 1 << (at % 64)))
}

const STATUSES: RangeInclusive<u16> = 100..=599;
const WORDS: usize = 500usize.div_ceil(64);

#[cfg(test)]
mod tests;
