//! Gaps between frames, gathered stream by stream: a token is not to cost an atomic operation.

use std::time::Duration;

use prometheus::Histogram;
use prometheus::local::LocalHistogram;

/// The gaps of one stream, handed to the model's histogram a batch at a time and when dropped.
pub struct Gaps {
    local: LocalHistogram,
    /// Gaps since the last hand-over.
    gathered: u32,
}

impl Gaps {
    pub(super) fn new(histogram: &Histogram) -> Self {
        Self {
            local: histogram.local(),
            gathered: 0,
        }
    }

    /// Takes one gap.
    pub fn record(&mut self, gap: Duration) {
        self.local.observe(gap.as_secs_f64());
        self.gathered += 1;
        if self.gathered >= BATCH {
            self.gathered = 0;
            self.local.flush();
        }
    }
}

impl std::fmt::Debug for Gaps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gaps")
            .field("gathered", &self.gathered)
            .finish_non_exhaustive()
    }
}

/// Gaps that are gathered before anybody sees them: at ten tokens a second six seconds' worth.
const BATCH: u32 = 64;

#[cfg(test)]
mod tests;
