//! What happens to a fleet from outside, all of it drawn before anything is decided.

use std::collections::BTreeMap;
use std::time::Duration;

use lb::policy::health::{KernelCause, Probed};
use lb::upstream::Sent;

use super::server::Server;

/// Everything that a run is made of.
#[derive(Clone, Debug)]
pub struct Story {
    /// Chance where lb draws, and where servers do.
    pub seed: u64,
    /// Configurations with when each comes into force; the first does at once.
    pub forms: Vec<(Duration, String)>,
    /// Requests in the order in which they come.
    pub requests: Vec<Asked>,
    /// Servers by the port of their endpoint's URL.
    pub servers: BTreeMap<u16, Server>,
    /// Spans for which lb's process stands still: when, and how long.
    pub stalls: Vec<(Duration, Duration)>,
    /// Jumps of the wall clock, by which dates are read: when, and to how far from the right time, in seconds.
    pub jumps: Vec<(Duration, i64)>,
    /// What is seen of endpoints besides requests: when, at which port, and what.
    pub signals: Vec<(Duration, u16, Signal)>,
    /// The longest time between a reading of the clock and its use.
    pub skew: Duration,
    /// Whether the ledger is compared after each step; else only at the end.
    pub checked: bool,
}

/// One request of a client.
#[derive(Clone, Debug)]
pub struct Asked {
    /// When it comes, counted from the start.
    pub at: Duration,
    /// What it names as its model.
    pub model: &'static str,
    /// What it is.
    pub sent: Sent,
    /// How far its first-token time lies from the median, in standard deviations, at whichever server.
    pub deviation: f64,
    /// From the first token to the end of the answer, at a server that is not loaded more than usual.
    pub decode: Duration,
    /// How long after it came its client leaves, if it does.
    pub leaves: Option<Duration>,
}

/// What is seen of an endpoint besides requests.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// The kernel saw it go.
    Gone(KernelCause),
    /// A connection that waited for it stood.
    Back,
    /// Its loss turned out to be our own link's.
    Withdrawn,
    /// An active probe came to this.
    Probed(Probed),
}

impl Story {
    /// When a timer that is due at `at` is looked at: at once, or when the process goes on.
    pub(super) fn awake(&self, at: Duration) -> Duration {
        let mut awake = at;
        // One may begin before another is over.
        while let Some((from, span)) = self
            .stalls
            .iter()
            .find(|(from, span)| (*from..*from + *span).contains(&awake))
        {
            awake = *from + *span;
        }
        awake
    }

    /// The wall clock's time since the epoch.
    pub(super) fn wall_clock(&self, at: Duration) -> Duration {
        let jumped = self.jumps.iter().rev().find(|(when, _)| *when <= at);
        let off = jumped.map_or(0, |(_, off)| *off);
        let right = EPOCH + at;
        if off < 0 {
            right.saturating_sub(Duration::from_secs(off.unsigned_abs()))
        } else {
            right + Duration::from_secs(off.unsigned_abs())
        }
    }
}

/// When the story begins by the wall clock, as a server's clock has it.
pub(super) const EPOCH: Duration = Duration::from_secs(1_700_000_000);
