//! What a run leaves behind.

use std::time::Duration;

use lb::policy::aimd::Change;

/// What was seen. Two runs of one scenario are equal in every bit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The share at every fifteenth second, with the plant's requests in flight.
    pub series: Vec<(Duration, f64, u32)>,
    /// The share's changes, whole run.
    pub changes: Vec<(Duration, Change)>,
    /// The share's mean over time, after warm-up.
    pub mean_share: f64,
    /// Time to the client's first token of every request that got one, after warm-up, rising.
    pub first_tokens: Vec<Duration>,
    /// Healthy outcomes, breaches and unknowns of the preferred target, after warm-up.
    pub outcomes: [u32; 3],
    /// Requests that began after warm-up, and those of them that an alternate answered.
    pub requests: [u32; 2],
    /// Requests that got an error, whole run.
    pub failed: u32,
    /// When the last request was over.
    pub end: Duration,
}

impl Record {
    /// The part of the preferred target's judged attempts that breached.
    pub fn breach_rate(&self) -> f64 {
        let [healthy, breaches, _] = self.outcomes.map(f64::from);
        breaches / (healthy + breaches)
    }

    /// The part of requests that an alternate answered.
    pub fn alternate_spend(&self) -> f64 {
        let [requests, by_alternates] = self.requests.map(f64::from);
        by_alternates / requests
    }

    /// The time to the client's first token that all but one in a hundred kept.
    pub fn first_token_p99(&self) -> Duration {
        self.first_tokens[self.first_tokens.len() * 99 / 100]
    }

    /// How far the share went up and down after `from`.
    pub fn swing(&self, from: Duration) -> f64 {
        let shares = || {
            self.series
                .iter()
                .filter(|(at, ..)| *at >= from)
                .map(|(_, share, _)| *share)
        };
        shares().fold(0.0, f64::max) - shares().fold(1.0, f64::min)
    }
}
