//! The switch that the share is measured against.

use std::collections::VecDeque;

use lb::policy::aimd::{Outcome, Settings, Start};
use lb::policy::time::Instant;

/// A binary breaker with the share's own samples and thresholds: it opens when the breach rate of the window exceeds
/// the target, sends everything to the alternates for a dwell, lets one probe through, and closes if that is healthy.
#[derive(Debug)]
pub(super) struct Breaker {
    settings: Settings,
    window: VecDeque<bool>,
    /// Openings and closings so far; outcomes of attempts begun before are ignored.
    generation: u64,
    open_until: Option<Instant>,
    probing: bool,
}

impl Breaker {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            window: VecDeque::new(),
            generation: 0,
            open_until: None,
            probing: false,
        }
    }

    pub(super) fn begin(&mut self, now: Instant) -> Start {
        match self.open_until {
            None => Start::Preferred,
            Some(until) if now >= until && !self.probing => {
                self.probing = true;
                Start::Preferred
            }
            Some(_) => Start::Alternate,
        }
    }

    pub(super) fn attempt(&self) -> u64 {
        self.generation
    }

    pub(super) fn on_outcome(&mut self, now: Instant, generation: u64, outcome: Outcome) {
        if generation != self.generation {
            return;
        }
        if self.open_until.is_some() {
            match outcome {
                Outcome::Breach => self.turn(Some(now + self.settings.dwell)),
                Outcome::Healthy => self.turn(None),
                Outcome::Unknown => self.probing = false,
            }
            return;
        }
        if outcome == Outcome::Unknown {
            return;
        }
        if self.window.len() == self.settings.window_samples as usize {
            self.window.pop_front();
        }
        self.window.push_back(outcome == Outcome::Breach);
        if self.window.len() >= self.settings.min_samples as usize
            && share_of(&self.window) > self.settings.breach_rate_target
        {
            self.turn(Some(now + self.settings.dwell));
        }
    }

    pub(super) fn share(&self) -> f64 {
        if self.open_until.is_some() { 0.0 } else { 1.0 }
    }

    fn turn(&mut self, open_until: Option<Instant>) {
        self.open_until = open_until;
        self.probing = false;
        self.generation += 1;
        self.window.clear();
    }
}

#[expect(clippy::cast_precision_loss, reason = "a window of at most 100000 samples")]
fn share_of(window: &VecDeque<bool>) -> f64 {
    window.iter().filter(|breach| **breach).count() as f64 / window.len() as f64
}
