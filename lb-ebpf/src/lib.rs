//! What lb's kernel programs and its daemon agree on, and the logic that both can run.
//!
//! The programs (`main.rs`) are compiled for the kernel, this library for the kernel *and* for the host. So the packet
//! parser and the flow machine are ordinary Rust: unit and property tests run them without a kernel, and a
//! differential test plays the same segments through the loaded programs and through this code and compares.
//!
//! ```text
//!   segment ─▶ view ─▶ packet::parse ─▶ Segment ─▶ flow::{egress, ingress} ─▶ Effects ─▶ Stats, Event
//!              (bytes)                             (one Flow per connection)            (main.rs)
//! ```
//!
//! Everything here that crosses between kernel and daemon is `repr(C)`, made of integers, without padding, and its
//! size is asserted below. [`LAYOUT`] is raised whenever one of these types or its meaning changes.

#![cfg_attr(not(test), no_std)]

pub mod flow;
pub mod packet;
pub mod view;

/// Version of everything that crosses the boundary; the daemon refuses an object built with another one.
///
/// The object carries it as the number of entries of its map `LAYOUT`.
pub const LAYOUT: u32 = 1;

/// How many endpoints can be told apart: the entries of the map `STATS`.
pub const SLOTS: u32 = 1024;

/// An address pair and a port pair as they are on the wire, seen from this host.
///
/// Addresses are four words in network order; IPv4 is v4-mapped (`::ffff:a.b.c.d`), so that one map serves both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(C)]
pub struct Tuple {
    /// Our address.
    pub local: [u32; 4],
    /// The endpoint's address.
    pub remote: [u32; 4],
    /// Our port.
    pub local_port: u16,
    /// The endpoint's port.
    pub remote_port: u16,
}

/// What a program saw that the daemon should know at once. Hints: [`Stats`] is the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub time: u64,
    /// Cookie of the socket whose segment it was.
    pub cookie: u64,
    /// The connection on the wire.
    pub tuple: Tuple,
    /// Slot of the endpoint.
    pub slot: u16,
    /// A [`Kind`], as a number because another object may know more kinds.
    pub kind: u8,
    /// The [`Hook`] that saw it.
    pub hook: u8,
    /// `Streak`, `Silent`: how many. `Unreachable`: ICMP type × 256 + code. Else 0.
    pub arg: u32,
    /// Microseconds since the first segment that this evidence says went unanswered.
    pub age_us: u32,
}

impl Event {
    /// Size of a record in the ring.
    pub const SIZE: usize = size_of::<Self>();

    /// Reads one record of the ring; `None` if it is shorter than an event.
    pub fn read(record: &[u8]) -> Option<Self> {
        let bytes = record.first_chunk::<{ Self::SIZE }>()?;
        #[expect(unsafe_code, reason = "the record is an Event written by our own program")]
        // SAFETY: the chunk is as long as an `Event`, which is `repr(C)` of integers without padding, so that every
        // bit pattern is one; unaligned because nothing says how the caller's bytes lie.
        let event = unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() };
        Some(event)
    }
}

/// Kinds of [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// The endpoint's host answered our SYN with a RST that acknowledges it.
    Refused = 1,
    /// A router or the host says that one of our segments cannot be delivered.
    Unreachable = 2,
    /// A SYN has been unanswered for too long. Made by the daemon's sweep of `PENDING`, never by a program.
    SynTimeout = 3,
    /// Retransmissions with nothing heard on the flow meanwhile.
    Streak = 4,
    /// Keepalive or window probes with nothing heard on the flow meanwhile.
    Silent = 5,
    /// A believable RST on an established flow.
    Reset = 6,
    /// The endpoint's first FIN.
    Finished = 7,
}

impl Kind {
    /// One more than the greatest kind.
    pub const COUNT: u32 = 8;

    /// The kind of that number, if this build knows it.
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Refused,
            2 => Self::Unreachable,
            3 => Self::SynTimeout,
            4 => Self::Streak,
            5 => Self::Silent,
            6 => Self::Reset,
            7 => Self::Finished,
            _ => return None,
        })
    }
}

/// Where in the kernel a program sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Hook {
    /// tcx or clsact on an interface.
    Tc = 1,
    /// `cgroup_skb` on the daemon's own cgroup.
    Cgroup = 2,
    /// The daemon itself, for what only the passing of time shows.
    Sweep = 3,
}

/// Thresholds of the programs; the one entry of the map `CONFIG`, so that a reload is a map write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Config {
    /// `Streak` is reported from this many retransmissions on.
    pub streak: u32,
    /// `Silent` is reported from this many unanswered probes on.
    pub silent: u32,
    /// Retransmissions closer together than this many microseconds count once.
    pub spacing_us: u32,
    /// Events of one kind about one slot that one CPU may send in [`BURST_WINDOW_NS`].
    pub burst: u32,
}

impl Default for Config {
    fn default() -> Self {
        // A burst is the retransmissions that one ACK sets free in fast recovery; the kernel's least retransmission
        // timeout is 200 ms, so 50 ms separates the two. 64 events in 10 ms are a whole pool of connections dying at
        // once, and a thirtieth of the ring.
        Self {
            streak: 2,
            silent: 2,
            spacing_us: 50_000,
            burst: 64,
        }
    }
}

/// Length of the window in which [`Config::burst`] counts.
pub const BURST_WINDOW_NS: u64 = 10_000_000;

/// A SYN that has no answer yet; value of the map `PENDING`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Pending {
    /// When the first SYN left, in nanoseconds of `CLOCK_MONOTONIC`.
    pub since: u64,
    /// Cookie of the socket.
    pub cookie: u64,
    /// Slot of the endpoint.
    pub slot: u64,
}

/// What one CPU counted about one endpoint; value of the per-CPU map `STATS`. The daemon adds the CPUs up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// When a believable segment of the endpoint last arrived on any flow; nanoseconds of `CLOCK_MONOTONIC`, 0 = never.
    pub heard: u64,
    /// One number for each [`Counter`], in their order.
    pub counters: [u64; Counter::COUNT],
}

impl Stats {
    /// Nothing counted.
    pub const ZERO: Self = Self {
        heard: 0,
        counters: [0; Counter::COUNT],
    };

    /// What `counter` stands at.
    pub const fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }

    /// Adds `by` to `counter`.
    #[inline(always)]
    pub const fn add(&mut self, counter: Counter, by: u64) {
        self.counters[counter as usize] = self.counters[counter as usize].wrapping_add(by);
    }

    /// Takes what another CPU counted into this one.
    pub fn merge(&mut self, other: &Self) {
        self.heard = self.heard.max(other.heard);
        for (mine, theirs) in self.counters.iter_mut().zip(other.counters) {
            *mine = mine.wrapping_add(theirs);
        }
    }
}

/// What is counted for each endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Connections begun: first SYNs sent.
    Syn,
    /// SYNs sent again.
    SynRetransmit,
    /// Handshakes that the endpoint completed.
    Handshake,
    /// Sum of their times from first SYN to SYN-ACK, in microseconds.
    HandshakeMicroseconds,
    /// SYNs answered with a believable RST.
    Refused,
    /// Believable RSTs received on established flows.
    ResetReceived,
    /// RSTs received whose numbers an off-path sender could have guessed.
    ResetIgnored,
    /// RSTs sent.
    ResetSent,
    /// FINs received.
    FinReceived,
    /// FINs sent.
    FinSent,
    /// TCP segments sent, as the hook sees them (before segmentation offload).
    SegmentsSent,
    /// Payload bytes sent, retransmissions included.
    BytesSent,
    /// Segments sent that retransmit data.
    RetransmitSent,
    /// Keepalive and window probes sent.
    ProbeSent,
    /// TCP segments received, as the hook sees them (after receive offload).
    SegmentsReceived,
    /// Payload bytes received, retransmissions included.
    BytesReceived,
    /// Segments received that retransmit data.
    RetransmitReceived,
    /// Segments received that acknowledge what was never sent: not believed.
    SegmentsIgnored,
    /// Times that the endpoint closed its window.
    ZeroWindow,
    /// Believable ICMP unreachables.
    Unreachable,
    /// ICMP unreachables that quote what was not in flight.
    UnreachableIgnored,
    /// Events written to the ring.
    Events,
    /// Events held back by [`Config::burst`].
    EventsSuppressed,
    /// Events lost because the ring was full.
    EventsLost,
}

impl Counter {
    /// How many there are.
    pub const COUNT: usize = Self::NAMES.len();

    /// Their names as metrics and the state dump show them, in order.
    pub const NAMES: [&'static str; 24] = [
        "syn",
        "syn_retransmit",
        "handshake",
        "handshake_microseconds",
        "refused",
        "reset_received",
        "reset_ignored",
        "reset_sent",
        "fin_received",
        "fin_sent",
        "segments_sent",
        "bytes_sent",
        "retransmit_sent",
        "probe_sent",
        "segments_received",
        "bytes_received",
        "retransmit_received",
        "segments_ignored",
        "zero_window",
        "unreachable",
        "unreachable_ignored",
        "events",
        "events_suppressed",
        "events_lost",
    ];
}

const _: () = {
    assert!(size_of::<Tuple>() == 36);
    assert!(size_of::<Event>() == 64);
    assert!(size_of::<Config>() == 16);
    assert!(size_of::<Pending>() == 24);
    assert!(size_of::<Stats>() == 8 + 8 * Counter::COUNT);
    assert!(Counter::EventsLost as usize + 1 == Counter::COUNT);
    assert!(Kind::Finished as u32 + 1 == Kind::COUNT);
};

#[cfg(test)]
mod tests;
