//! What goes wrong, and where.

use std::time::Duration;

use rustix::process::Signal;

use super::endpoint::{Endpoint, Manner, NAMES};
use crate::netns::Network;

/// A fault of an endpoint, or of all endpoints of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The process dies.
    Kill,
    /// The process is stopped: its connections stand, and nothing is said on them.
    Stop,
    /// The router drops every packet.
    Blackhole,
    /// It answers with 503.
    Unavailable,
    /// It answers with 429 and asks for two seconds.
    Busy,
    /// Its first tokens come later than any deadline.
    Slow,
    /// It breaks its streams off after three tokens.
    Cut,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Kill,
        Self::Stop,
        Self::Blackhole,
        Self::Unavailable,
        Self::Busy,
        Self::Slow,
        Self::Cut,
    ];

    /// As a table calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "killed",
            Self::Stop => "stopped",
            Self::Blackhole => "blackhole",
            Self::Unavailable => "503",
            Self::Busy => "429, Retry-After: 2",
            Self::Slow => "slow first token",
            Self::Cut => "cut mid-stream",
        }
    }

    /// Whether it also breaks streams that are under way, or that it lets begin.
    pub(super) fn breaks_streams(self) -> bool {
        matches!(self, Self::Kill | Self::Stop | Self::Blackhole | Self::Cut)
    }

    /// Whether it leaves those streams standing, so that only lb can end them.
    pub(super) fn leaves_streams_silent(self) -> bool {
        matches!(self, Self::Stop | Self::Blackhole)
    }

    fn manner(self) -> Option<Manner> {
        match self {
            Self::Kill | Self::Stop | Self::Blackhole => None,
            Self::Unavailable => Some(Manner::Refuses {
                status: 503,
                retry_after: 0,
            }),
            Self::Busy => Some(Manner::Refuses {
                status: 429,
                retry_after: 2,
            }),
            Self::Slow => Some(Manner::Slow(Duration::from_secs(4))),
            Self::Cut => Some(Manner::Cut),
        }
    }

    /// Makes it at one endpoint; how many requests that had before, where it can tell, else 0.
    pub(super) fn make(self, network: &Network, endpoint: &mut Endpoint) -> usize {
        match self {
            Self::Kill => endpoint.kill(),
            Self::Stop => endpoint.signal(Signal::STOP),
            Self::Blackhole => network
                .blackhole_server(endpoint.address())
                .expect("nft takes the rule"),
            Self::Unavailable | Self::Busy | Self::Slow | Self::Cut => {}
        }
        self.manner().map_or(0, |manner| endpoint.tell(manner))
    }

    /// Ends it; how many requests the endpoint has had by then, where it can tell, else 0.
    pub(super) fn mend(self, network: &Network, endpoint: &mut Endpoint) -> usize {
        match self {
            Self::Kill => endpoint.revive(network),
            Self::Stop => endpoint.signal(Signal::CONT),
            // All that was dropped is let through again: the faults of a run end together.
            Self::Blackhole => network.heal(),
            Self::Unavailable | Self::Busy | Self::Slow | Self::Cut => {}
        }
        self.manner().map_or(0, |_| endpoint.tell(Manner::Well))
    }
}

/// Whom a fault meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// One of the four endpoints, by its number.
    Endpoint(usize),
    /// Both endpoints of one of the two providers, by its number.
    Provider(usize),
}

impl Target {
    /// Each of them.
    pub const ALL: [Self; 6] = [
        Self::Endpoint(0),
        Self::Endpoint(1),
        Self::Endpoint(2),
        Self::Endpoint(3),
        Self::Provider(0),
        Self::Provider(1),
    ];

    /// The numbers of its endpoints.
    pub(super) fn endpoints(self) -> std::ops::Range<usize> {
        match self {
            Self::Endpoint(n) => n..n + 1,
            Self::Provider(n) => 2 * n..2 * n + 2,
        }
    }

    /// As a table calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Endpoint(n) => NAMES[n],
            Self::Provider(0) => "all of gpu",
            Self::Provider(_) => "all of alt",
        }
    }
}
