//! How many half-open probes there may be, counted apart from lb.

use std::time::Duration;

use lb::policy::time::Instant;

/// The probes that are under way at one subject.
///
/// As many as there are slots, whose holders are believed for as long as the subject was out: a probe that comes to
/// nothing must not keep it out for ever.
#[derive(Debug, Default)]
pub(super) struct Probes {
    under_way: Vec<u64>,
    lost_at: Option<Instant>,
}

impl Probes {
    /// Whether one more would be too many at `now`.
    pub(super) fn are_all_taken(&self, now: Instant, slots: u32) -> bool {
        self.under_way.len() >= slots as usize && self.lost_at.is_some_and(|lost| now < lost)
    }

    /// Whether one is under way.
    pub(super) fn any(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// The attempt of that number is one.
    pub(super) fn begin(&mut self, now: Instant, slots: u32, term: Duration, number: u64) {
        if self.under_way.len() >= slots as usize {
            self.under_way.clear();
        }
        self.under_way.push(number);
        self.lost_at = Some(now + term);
    }

    /// The attempt of that number has said what it had to say.
    pub(super) fn end(&mut self, number: u64) {
        self.under_way.retain(|other| *other != number);
    }

    /// The subject is in, or out for a new reason: probes from before say nothing.
    pub(super) fn reset(&mut self) {
        self.under_way.clear();
        self.lost_at = None;
    }
}
