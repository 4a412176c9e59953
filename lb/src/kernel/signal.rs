//! What a sighting of the kernel means to its connection and to its endpoint. Pure.
//!
//! The kernel sees segments, not causes. A retransmission may be plain packet loss, a silent connection a dead peer or
//! a cut cable of our own. So every sighting acts on *its connection* at once, where a false alarm costs one
//! connection, and on the *endpoint* only where nothing speaks against it:
//!
//! ```text
//!   sighting ─┬─ remedy for the connection (poison, close, fail over, end), by how much of a response there is
//!             └─ verdict on the endpoint
//!                  refused, unreachable      eject
//!                  reset under an attempt    a failure; `rst.count` of them within `rst.window` eject
//!                  loss (SYN, streak,        eject, unless ─ a segment of the endpoint came on any flow since
//!                        silence)                          └ another provider is lost as well: our own link
//! ```
//!
//! An ejection that the kernel caused is short and doubles when it comes again, since a restart of a second must not
//! cost thirty.

mod judge;

use std::time::Duration;

use lb_ebpf::{Event, Kind};

pub use judge::Judge;

use crate::policy::OutOfBounds;
pub use crate::policy::connection::{Phase, Remedy};
pub use crate::policy::health::KernelCause as Cause;
use crate::policy::time::Instant;

/// Thresholds, as `kernel.signals` names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A SYN is given up after this long, or three times the endpoint's handshake time where that is longer.
    pub syn_timeout: Duration,
    /// Retransmissions without anything heard after which a connection is not trusted any more.
    pub streak_failover: u32,
    /// Retransmissions after which a response under way is ended.
    pub streak_end: u32,
    /// Unanswered probes after which a connection is not trusted any more.
    pub silent_failover: u32,
    /// Unanswered probes after which a response under way is ended.
    pub silent_end: u32,
    /// Resets under attempts that eject the endpoint,
    pub rst_count: u32,
    /// when they come within this span.
    pub rst_window: Duration,
    /// The first ejection's length; doubles per repeat.
    pub ejection: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            syn_timeout: Duration::from_millis(250),
            streak_failover: 2,
            streak_end: 3,
            silent_failover: 2,
            silent_end: 4,
            rst_count: 3,
            rst_window: Duration::from_secs(1),
            ejection: Duration::from_secs(1),
        }
    }
}

/// Thresholds that are within bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params(Settings);

impl Params {
    /// Checks `settings`; the error names everything that is wrong.
    pub fn new(settings: Settings) -> Result<Self, Vec<OutOfBounds>> {
        let problems = settings.problems();
        if problems.is_empty() {
            Ok(Self(settings))
        } else {
            Err(problems)
        }
    }

    /// The thresholds.
    pub fn settings(&self) -> &Settings {
        &self.0
    }
}

impl Settings {
    fn problems(&self) -> Vec<OutOfBounds> {
        let rules = [
            (!self.syn_timeout.is_zero(), "syn_timeout_ms", "be above 0"),
            (self.streak_failover >= 1, "streak.failover", "be at least 1"),
            (
                self.streak_end >= self.streak_failover,
                "streak.end_stream",
                "be at least streak.failover",
            ),
            (self.silent_failover >= 1, "silent.failover", "be at least 1"),
            (
                self.silent_end >= self.silent_failover,
                "silent.end_stream",
                "be at least silent.failover",
            ),
            (self.rst_count >= 1, "rst.count", "be at least 1"),
            (!self.rst_window.is_zero(), "rst.window_ms", "be above 0"),
            (!self.ejection.is_zero(), "ejection_ms", "be above 0"),
        ];
        let broken = rules.into_iter().filter(|(holds, ..)| !holds);
        broken
            .map(|(_, field, must)| OutOfBounds { field, must })
            .collect()
    }
}

/// Something seen, with the rate limits and numbers of the wire gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// When it was seen.
    pub at: Instant,
    /// When the first segment left that has had no answer (for loss; else of no meaning).
    pub since: Instant,
    /// Cookie of the connection's socket.
    pub cookie: u64,
    /// Slot of the endpoint.
    pub slot: u16,
    /// What was seen.
    pub evidence: Evidence,
}

/// What can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The endpoint closed its side.
    Finished,
    /// Nothing answers.
    Loss(Loss),
    /// The endpoint's host says that nobody listens.
    Refused,
    /// The endpoint aborted the connection.
    Reset,
    /// A router or the endpoint's host cannot deliver.
    Unreachable,
}

/// How it is that nothing answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// That many probes.
    Silent(u32),
    /// That many retransmissions.
    Streak(u32),
    /// The SYN.
    SynTimeout,
}

impl Sighting {
    /// The sighting that an event of the ring reports; `None` if this build does not know its kind.
    pub fn from_event(event: &Event) -> Option<Self> {
        let evidence = match Kind::from_number(event.kind)? {
            Kind::Refused => Evidence::Refused,
            Kind::Unreachable => Evidence::Unreachable,
            Kind::SynTimeout => Evidence::Loss(Loss::SynTimeout),
            Kind::Streak => Evidence::Loss(Loss::Streak(event.arg)),
            Kind::Silent => Evidence::Loss(Loss::Silent(event.arg)),
            Kind::Reset => Evidence::Reset,
            Kind::Finished => Evidence::Finished,
        };
        let since = event.time.saturating_sub(u64::from(event.age_us) * 1000);
        Some(Self {
            at: Instant::from_nanos(event.time),
            since: Instant::from_nanos(since),
            cookie: event.cookie,
            slot: event.slot,
            evidence,
        })
    }
}

/// What an endpoint is to this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Tells providers apart; any number that is the provider's own.
    pub provider: u32,
    /// No ejection is longer (`health.max_ejection_ms`).
    pub max_ejection: Duration,
}

/// What a sighting means to the endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    None,
    /// One failure.
    Failure,
    /// Take it out, for that long.
    Eject {
        /// Why.
        cause: Cause,
        /// How long.
        span: Duration,
    },
    /// The fault is on our side: eject nothing, and take back what was ejected for loss just now.
    OwnLink {
        /// Slots whose ejection is to be taken back.
        withdraw: Vec<u16>,
        /// Whether this is new, and worth a line in the log.
        first: bool,
    },
}

/// The answer to one sighting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Reaction {
    /// For the connection, if something is to be done.
    pub remedy: Option<Remedy>,
    /// For the endpoint.
    pub verdict: Verdict,
}

#[cfg(test)]
mod tests;
