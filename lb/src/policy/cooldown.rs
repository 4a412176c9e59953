//! Leaves one model at one endpoint alone for a while after it could not answer.
//!
//! A model that is busy, or refused us, is worth no other try soon, whatever the health of the address that serves it
//! and other models beside. How long is a fixed span, or as long as the provider itself asked for where that is longer.
//! When it is over one request at a time finds out: its success clears the entry, its failure cools it again.
//!
//! This is a preference, never a verdict: where everything cools, everything is tried all the same.

use std::time::Duration;

use super::probes::Probes;
use super::time::Instant;

/// How an entry stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Nothing is held against it.
    Clear,
    /// It is to be left alone.
    Cooling {
        /// When it may be tried again.
        until: Instant,
    },
    /// It may be tried by one request.
    HalfOpen,
    /// One request is trying it.
    Probing,
}

/// The one request that tries an entry which has cooled. To be given back once, by [`Cooldown::give_back`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct Probe {
    lease: u64,
}

/// One model at one endpoint.
#[derive(Clone, Debug)]
pub struct Cooldown {
    cooled: Option<Cooled>,
    probes: Probes,
}

#[derive(Clone, Copy, Debug)]
struct Cooled {
    /// The latest instant at which something went wrong.
    at: Instant,
    until: Instant,
}

impl Cooldown {
    /// An entry that nothing is held against.
    pub const fn new() -> Self {
        Self {
            cooled: None,
            probes: Probes::new(1, Duration::ZERO),
        }
    }

    /// How it stands at `now`.
    pub fn standing(&self, now: Instant) -> Standing {
        match self.cooled {
            None => Standing::Clear,
            Some(Cooled { until, .. }) if now < until => Standing::Cooling { until },
            Some(_) if self.probes.is_free(now) => Standing::HalfOpen,
            Some(_) => Standing::Probing,
        }
    }

    /// When it is over, unless it is clear; that may be past.
    pub fn until(&self) -> Option<Instant> {
        self.cooled.map(|cooled| cooled.until)
    }

    /// An attempt failed: leaves it alone for `span`, or for longer if that was decided before. Returns until when.
    ///
    /// A probe has as long to come back as the span says, then another request may try.
    pub fn cool(&mut self, now: Instant, span: Duration) -> Instant {
        let until = self
            .cooled
            .map_or(now + span, |cooled| cooled.until.max(now + span));
        self.cooled = Some(Cooled { at: now, until });
        self.probes.reset();
        self.probes.set(1, span);
        until
    }

    /// An attempt that was begun at `begun` succeeded. Returns whether that cleared the entry: what was sent before it
    /// cooled says nothing about the time since.
    pub fn succeed(&mut self, begun: Instant) -> bool {
        let cleared = self.cooled.is_some_and(|cooled| begun >= cooled.at);
        if cleared {
            self.cooled = None;
            self.probes.reset();
        }
        cleared
    }

    /// The right to try it once it has cooled; `None` while it cools, is being tried, or is clear.
    pub fn acquire(&mut self, now: Instant) -> Option<Probe> {
        let due = self.standing(now) == Standing::HalfOpen;
        due.then(|| Probe {
            lease: self.probes.take(now),
        })
    }

    /// The probe has ended, in whatever way.
    pub fn give_back(&mut self, probe: Probe) {
        self.probes.give_back(probe.lease);
    }
}

impl Default for Cooldown {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
