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
mod stats;
pub mod view;

pub use stats::{Counter, Stats};

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
    /// `Streak`, `Silent`: how many. `Unreachable`: the code of the ICMP error. Else 0.
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

const _: () = {
    assert!(size_of::<Tuple>() == 36);
    assert!(size_of::<Event>() == 64);
    assert!(size_of::<Config>() == 16);
    assert!(size_of::<Pending>() == 24);
    assert!(Kind::Finished as u32 + 1 == Kind::COUNT);
};

#[cfg(test)]
mod tests;
