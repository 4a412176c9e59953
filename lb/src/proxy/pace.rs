//! How long a client may be waited for while it sends a body.

use std::time::Duration;

use super::service::Rules;

/// The time that a client has left. Waiting for it costs, bytes earn, and it never has more than it may be silent for:
/// else a few quick megabytes would buy hours in which it holds them in memory by a byte now and then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The most that it may be waited for at once.
    silence: Duration,
    /// The most that it may have.
    most: Duration,
    left: Duration,
}

impl Pace {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            silence: rules.body_timeout,
            most: rules.body_grace.max(rules.body_timeout),
            left: rules.body_grace,
        }
    }

    /// How long the next bytes may be waited for.
    pub(super) fn patience(&self) -> Duration {
        self.left.min(self.silence)
    }

    /// They were waited for so long. The time in which nobody asked for them is not the client's.
    pub(super) fn on_waited(&mut self, wait: Duration) {
        self.left = self.left.saturating_sub(wait);
    }

    /// So many bytes came.
    pub(super) fn on_bytes(&mut self, bytes: usize) {
        if self.left < self.most {
            let earned = Duration::from_micros((bytes as u64).saturating_mul(MICROS_A_BYTE));
            self.left = self.most.min(self.left + earned);
        }
    }
}

/// The least that a body has to come at. Bytes a second.
const MIN_RATE: u64 = 500;

const MICROS_A_BYTE: u64 = 1_000_000 / MIN_RATE;

#[cfg(test)]
mod tests;
