//! The samples that the share is judged by, and whether there are enough of them.

use std::collections::VecDeque;
use std::time::Duration;

use super::Settings;
use crate::policy::time::Instant;

/// The latest samples, and when enough of them last lay together.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    /// Whether each of the latest samples breached, oldest first; it grows with the traffic up to `window_samples`.
    window: VecDeque<bool>,
    window_samples: usize,
    /// Breaches in `window`, counted as they come and go so that a decision costs the same at any size.
    breaches: usize,
    /// When the latest `min_samples` samples completed, oldest first, across generations.
    completed: VecDeque<Instant>,
    min_samples: usize,
    idle_recovery: Option<Duration>,
    /// Up to when `min_samples` samples lay within the span of idle recovery; it may lie ahead.
    enough_until: Option<Instant>,
}

impl Evidence {
    /// No samples at all.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            window: VecDeque::new(),
            window_samples: settings.window_samples as usize,
            breaches: 0,
            completed: VecDeque::new(),
            min_samples: settings.min_samples as usize,
            idle_recovery: settings.idle_recovery,
            enough_until: None,
        }
    }

    /// Adds a sample that completed at `now`.
    pub(super) fn record(&mut self, now: Instant, breach: bool) {
        if self.window.len() == self.window_samples && self.window.pop_front() == Some(true) {
            self.breaches -= 1;
        }
        self.window.push_back(breach);
        self.breaches += usize::from(breach);

        let Some(span) = self.idle_recovery else { return };
        if self.completed.len() == self.min_samples {
            self.completed.pop_front();
        }
        self.completed.push_back(now);
        // `min_samples` samples lie within one span from the moment the last of them completes until the first of
        // them has left the span: if that is still to come, it is the last instant with enough.
        if self.completed.len() == self.min_samples
            && let Some(&first) = self.completed.front()
            && first + span > now
        {
            self.enough_until = Some(first + span);
        }
    }

    /// Forgets the window's samples. When they completed stays true, and is kept.
    pub(super) fn clear_window(&mut self) {
        self.window.clear();
        self.breaches = 0;
    }

    /// Samples in the window.
    pub(super) fn samples(&self) -> usize {
        self.window.len()
    }

    /// The window's breach rate in [0, 1]; `None` if it is empty.
    pub(super) fn breach_rate(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "a window has at most 100000 samples")]
        (!self.window.is_empty()).then(|| self.breaches as f64 / self.window.len() as f64)
    }

    /// The last instant, known at the latest sample, with enough samples in the span of idle recovery before it.
    pub(super) fn enough_until(&self) -> Option<Instant> {
        self.enough_until
    }
}
