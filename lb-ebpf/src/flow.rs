//! Follows one connection by its segments, and notices when the other side stops answering.
//!
//! ```text
//!            SYN                 SYN-ACK with ack = isn + 1
//!   Unseen ───────▶ SynSent ───────────────────────────────▶ Established ──▶ Closed (RST either way)
//!                      │ RST with ack = isn + 1
//!                      └─────────────▶ Closed, refused
//! ```
//!
//! The two directions run on different CPUs at the same time and a map value has no lock. So [`Sent`] is written by
//! the egress hook alone and [`Heard`] by the ingress hook alone; each may read the other's. The one exception: a SYN
//! for a new connection resets `Heard`, at a moment when nothing of that connection can be arriving.
//!
//! Nobody off the path may eject an endpoint by guessing. What claims that a connection is dead (a RST, an ICMP error)
//! is believed only with sequence numbers that lie in the narrow range that is possible now, and what claims that it is
//! alive only if it acknowledges something that we sent. The rest is counted apart. [KERNEL-3] [KERNEL-4] [KERNEL-5]

mod heard;
mod sent;

pub use heard::{believable, heard_evidence, ingress};
pub use sent::{egress, sent_evidence};

use crate::Kind;

/// One connection, value of the map `FLOWS`; all times are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Flow {
    /// Cookie of our socket.
    pub cookie: u64,
    /// Slot of the endpoint.
    pub slot: u64,
    /// What we did; the egress hook's.
    pub sent: Sent,
    /// What came; the ingress hook's.
    pub heard: Heard,
}

/// The half of a [`Flow`] that the egress hook writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Sent {
    /// When the first SYN left.
    pub opened: u64,
    /// When the last segment left.
    pub last: u64,
    /// When data went out with nothing before it unacknowledged.
    pub unanswered_since: u64,
    /// When the last retransmission of the streak left.
    pub streak_last: u64,
    /// When the first of the unanswered probes left.
    pub probing_since: u64,
    /// Our initial sequence number.
    pub isn: u32,
    /// The highest end of sequence space that we sent.
    pub max: u32,
    /// The last acknowledgement number that we sent.
    pub ack: u32,
    /// Retransmissions since anything was heard; bursts count once.
    pub streak: u32,
    /// Probes since anything was heard.
    pub probes: u32,
    /// A [`Phase`].
    pub phase: u32,
    /// Which hook counts this direction: see [`owned`].
    pub owner: u32,
    /// Keeps the size a multiple of eight.
    pub spare: u32,
}

/// The half of a [`Flow`] that the ingress hook writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Heard {
    /// When the last believable segment arrived.
    pub last: u64,
    /// When the endpoint last acknowledged something new.
    pub progress: u64,
    /// The highest end of sequence space received.
    pub max: u32,
    /// The highest acknowledgement number received.
    pub acked: u32,
    /// Time from the first SYN to the SYN-ACK, in microseconds.
    pub handshake_us: u32,
    /// 1 while the endpoint's window is closed.
    pub shut: u32,
    /// A [`Phase`].
    pub phase: u32,
    /// Which hook counts this direction: see [`owned`].
    pub owner: u32,
}

/// Where a direction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Phase {
    /// Nothing seen yet; zero, as the kernel makes new values.
    Unseen = 0,
    /// Our SYN is out.
    SynSent = 1,
    /// The handshake is done.
    Established = 2,
    /// Ended by a RST.
    Closed = 3,
}

impl Flow {
    /// A flow of which nothing was seen.
    pub const UNSEEN: Self = Self {
        cookie: 0,
        slot: 0,
        sent: Sent {
            opened: 0,
            last: 0,
            unanswered_since: 0,
            streak_last: 0,
            probing_since: 0,
            isn: 0,
            max: 0,
            ack: 0,
            streak: 0,
            probes: 0,
            phase: Phase::Unseen as u32,
            owner: 0,
            spare: 0,
        },
        heard: Heard {
            last: 0,
            progress: 0,
            max: 0,
            acked: 0,
            handshake_us: 0,
            shut: 0,
            phase: Phase::Unseen as u32,
            owner: 0,
        },
    };

    /// Since when the endpoint owes us an acknowledgement, as far as is known.
    #[inline(always)]
    pub const fn unanswered_since(&self) -> u64 {
        let (sent, progress) = (self.sent.unanswered_since, self.heard.progress);
        if progress > sent { progress } else { sent }
    }

    /// Probes that have gone without an answer for their whole interval: all but the one just sent.
    #[inline(always)]
    pub const fn unanswered_probes(&self) -> u32 {
        self.sent.probes.saturating_sub(1)
    }
}

const _: () = assert!(size_of::<Sent>() == 72 && size_of::<Heard>() == 40 && size_of::<Flow>() == 128);

/// What a segment meant, as bits; several may hold at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects(pub u32);

impl Effects {
    /// A new connection.
    pub const SYN: Self = Self(1);
    /// The SYN again.
    pub const SYN_RETRANSMIT: Self = Self(1 << 1);
    /// Data again.
    pub const RETRANSMIT: Self = Self(1 << 2);
    /// The streak of retransmissions grew.
    pub const STREAK: Self = Self(1 << 3);
    /// A keepalive or window probe.
    pub const PROBE: Self = Self(1 << 4);
    /// The first FIN of this direction.
    pub const FIN: Self = Self(1 << 5);
    /// A RST, sent or believed.
    pub const RST: Self = Self(1 << 6);
    /// The handshake was completed.
    pub const HANDSHAKE: Self = Self(1 << 7);
    /// The SYN was refused.
    pub const REFUSED: Self = Self(1 << 8);
    /// A RST that is not believed.
    pub const RST_IGNORED: Self = Self(1 << 9);
    /// A segment that is not believed.
    pub const IGNORED: Self = Self(1 << 10);
    /// The window closed.
    pub const SHUT: Self = Self(1 << 11);

    /// Whether one of the bits of `other` is set.
    #[inline(always)]
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These and `other`'s.
    #[inline(always)]
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The most that a sender may have in flight: the largest window that TCP can offer (RFC 7323).
const WINDOW: u32 = 1 << 30;

/// Whether sequence number `a` lies after `b`, on the circle.
#[inline(always)]
const fn after(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

/// Whether `at` lies in `low..=high`, on the circle. A `high` that lies before `low` (a hook missed segments) leaves
/// `low` alone, never the whole circle.
#[inline(always)]
const fn within(at: u32, low: u32, high: u32) -> bool {
    let span = if after(low, high) {
        0
    } else {
        high.wrapping_sub(low)
    };
    at.wrapping_sub(low) <= span
}

/// How long the owner of a direction must have seen nothing before another hook takes it over.
const TAKEOVER_NS: u64 = 100_000_000;

/// Whether the hook `me` counts this segment.
///
/// One segment may pass several hooks (the cgroup's and the interface's, a bond's and its member's). The first hook on
/// the path comes to own the direction: the others see the segment within microseconds of it and pass. If the path
/// moves away from the owner, another hook takes over as soon as the owner is quiet, so that a moved route is never
/// taken for a dead peer. [KERNEL-6]
#[inline(always)]
pub const fn owned(owner: &mut u32, last: u64, me: u32, now: u64) -> bool {
    if *owner == me {
        return true;
    }
    if *owner == 0 || now.saturating_sub(last) > TAKEOVER_NS {
        *owner = me;
        return true;
    }
    false
}

/// What the daemon is to be told at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// What it is.
    pub kind: Kind,
    /// How many, for what is counted.
    pub count: u32,
    /// Since when there has been no answer, or when we last sent.
    pub since: u64,
}

/// A new flow of `slot`, before its first segment is applied.
#[inline(always)]
pub const fn begin(flow: &mut Flow, cookie: u64, slot: u64, owner: u32) {
    flow.cookie = cookie;
    flow.slot = slot;
    flow.sent.owner = owner;
    flow.heard.owner = 0;
}

#[cfg(test)]
mod tests;
