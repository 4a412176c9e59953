//! The probe slots of what is half-open: an endpoint, a breaker, a cooled entry.

use std::time::Duration;

use super::time::Instant;

/// How many probes are under way, and until when they are believed to be.
///
/// A slot is only leased, for about as long as its holder was out: probes that never end must not keep it out for ever. A probe that outlives its lease is still believed when it ends, it merely no longer holds a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probes {
    slots: u32,
    term: Duration,
    taken: u32,
    /// Slots taken under an older lease have been given up for lost.
    lease: u64,
    /// When all that are taken count as lost.
    lost_at: Instant,
}

impl Probes {
    /// All slots free.
    pub(super) const fn new(slots: u32, term: Duration) -> Self {
        Self {
            slots,
            term,
            taken: 0,
            lease: 0,
            lost_at: Instant::from_nanos(0),
        }
    }

    /// Takes other settings on; probes that are under way keep their slots.
    pub(super) const fn set(&mut self, slots: u32, term: Duration) {
        (self.slots, self.term) = (slots, term);
    }

    /// Whether a slot is free at `now`.
    pub(super) fn is_free(&self, now: Instant) -> bool {
        self.taken < self.slots || now >= self.lost_at
    }

    /// Takes a slot, which must be free, and says under which lease.
    pub(super) fn take(&mut self, now: Instant) -> u64 {
        if self.taken >= self.slots {
            self.taken = 0;
            self.lease += 1;
        }
        self.taken += 1;
        self.lost_at = now + self.term;
        self.lease
    }

    /// Gives back a slot that was taken under `lease`.
    pub(super) fn give_back(&mut self, lease: u64) {
        if lease == self.lease {
            self.taken = self.taken.saturating_sub(1);
        }
    }

    /// Frees all slots; leases from before are void.
    pub(super) fn reset(&mut self) {
        self.taken = 0;
        self.lease += 1;
    }
}
