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

use crate::Config;
use crate::packet::{Quoted, Segment, flags};

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

/// A segment that we send.
#[inline(always)]
pub fn egress(flow: &mut Flow, segment: &Segment, config: &Config, now: u64) -> Effects {
    flow.sent.last = now;
    if segment.flags & (flags::SYN | flags::ACK) == flags::SYN {
        return opened(flow, segment, now);
    }
    if segment.flags & flags::ACK != 0 {
        flow.sent.ack = segment.ack;
        flow.sent.phase = Phase::Established as u32;
    }
    if segment.flags & flags::RST != 0 {
        flow.sent.phase = Phase::Closed as u32;
        return Effects::RST;
    }
    let fin = segment.flags & flags::FIN != 0;
    let end = segment
        .seq
        .wrapping_add(segment.payload)
        .wrapping_add(u32::from(fin));
    if end == segment.seq {
        // A keepalive or a window probe is one byte below what comes next, with no payload.
        let probe = segment.flags & flags::SYN == 0 && segment.seq == flow.sent.max.wrapping_sub(1);
        return if probe {
            probed(flow, now)
        } else {
            Effects::default()
        };
    }
    if !after(end, flow.sent.max) {
        return retransmitted(flow, config, now);
    }
    if flow.heard.acked == flow.sent.max {
        flow.sent.unanswered_since = now;
    }
    flow.sent.max = end;
    if fin { Effects::FIN } else { Effects::default() }
}

#[inline(always)]
fn opened(flow: &mut Flow, segment: &Segment, now: u64) -> Effects {
    if flow.sent.phase == Phase::SynSent as u32 && flow.sent.isn == segment.seq {
        return Effects::SYN_RETRANSMIT;
    }
    // With TCP fast open the SYN carries data.
    let max = segment.seq.wrapping_add(1).wrapping_add(segment.payload);
    flow.sent.opened = now;
    flow.sent.unanswered_since = now;
    flow.sent.streak_last = 0;
    flow.sent.probing_since = 0;
    flow.sent.isn = segment.seq;
    flow.sent.max = max;
    flow.sent.ack = 0;
    flow.sent.streak = 0;
    flow.sent.probes = 0;
    flow.sent.phase = Phase::SynSent as u32;
    flow.heard.last = 0;
    flow.heard.progress = 0;
    flow.heard.max = 0;
    flow.heard.acked = segment.seq;
    flow.heard.handshake_us = 0;
    flow.heard.shut = 0;
    flow.heard.phase = Phase::Unseen as u32;
    Effects::SYN
}

/// A retransmission lengthens the streak unless something was heard since the last one (then a new streak begins) or
/// it belongs to the same burst: fast recovery sends several at once, which say nothing more than the first. [KERNEL-1]
#[inline(always)]
fn retransmitted(flow: &mut Flow, config: &Config, now: u64) -> Effects {
    if flow.sent.streak == 0 || flow.heard.last > flow.sent.streak_last {
        flow.sent.streak = 1;
    } else if now.wrapping_sub(flow.sent.streak_last) >= u64::from(config.spacing_us) * 1000 {
        flow.sent.streak = flow.sent.streak.saturating_add(1);
    } else {
        return Effects::RETRANSMIT;
    }
    flow.sent.streak_last = now;
    Effects::RETRANSMIT.and(Effects::STREAK)
}

/// Window probes count like keepalives: a living peer answers both. [KERNEL-2]
#[inline(always)]
fn probed(flow: &mut Flow, now: u64) -> Effects {
    if flow.sent.probes == 0 || flow.heard.last > flow.sent.probing_since {
        flow.sent.probes = 1;
        flow.sent.probing_since = now;
    } else {
        flow.sent.probes = flow.sent.probes.saturating_add(1);
    }
    Effects::PROBE
}

/// How far behind what is acknowledged an honest acknowledgement may lie: more than any reordering, a hundredth of the
/// circle.
const STALE: u32 = 1 << 25;

/// A segment that we receive.
#[inline(always)]
pub fn ingress(flow: &mut Flow, segment: &Segment, now: u64) -> Effects {
    if segment.flags & flags::RST != 0 {
        return reset(flow, segment, now);
    }
    if flow.heard.phase == Phase::Unseen as u32 {
        return answered(flow, segment, now);
    }
    let acks = segment.flags & flags::ACK != 0;
    if !acks || !within(segment.ack, flow.heard.acked.wrapping_sub(STALE), flow.sent.max) {
        return Effects::IGNORED;
    }
    flow.heard.last = now;
    if after(segment.ack, flow.heard.acked) {
        flow.heard.acked = segment.ack;
        flow.heard.progress = now;
    }
    let mut effects = Effects::default();
    let shut = u32::from(segment.window == 0);
    if shut > flow.heard.shut {
        effects = effects.and(Effects::SHUT);
    }
    flow.heard.shut = shut;
    let fin = segment.flags & flags::FIN != 0;
    let end = segment
        .seq
        .wrapping_add(segment.payload)
        .wrapping_add(u32::from(fin));
    if end == segment.seq {
        return effects;
    }
    if !after(end, flow.heard.max) {
        return effects.and(Effects::RETRANSMIT);
    }
    flow.heard.max = end;
    if fin { effects.and(Effects::FIN) } else { effects }
}

/// The first answer to our SYN: nothing but its SYN-ACK is believed.
#[inline(always)]
fn answered(flow: &mut Flow, segment: &Segment, now: u64) -> Effects {
    let synack = segment.flags & (flags::SYN | flags::ACK) == flags::SYN | flags::ACK;
    let ours = within(segment.ack, flow.sent.isn.wrapping_add(1), flow.sent.max);
    if !synack || !ours || flow.sent.phase != Phase::SynSent as u32 {
        return Effects::IGNORED;
    }
    flow.heard.last = now;
    flow.heard.progress = now;
    flow.heard.max = segment.seq.wrapping_add(1);
    flow.heard.acked = segment.ack;
    let handshake = now.wrapping_sub(flow.sent.opened) / 1000;
    flow.heard.handshake_us = u32::try_from(handshake).unwrap_or(u32::MAX);
    flow.heard.phase = Phase::Established as u32;
    Effects::HANDSHAKE
}

/// To a SYN, a RST is believed if it acknowledges exactly that; later, if its sequence number lies between what we
/// acknowledged last and the highest received (RFC 5961 asks for the exact number; the ends of holes are allowed too).
#[inline(always)]
fn reset(flow: &mut Flow, segment: &Segment, now: u64) -> Effects {
    // Until our first ACK is out, nothing but what the SYN-ACK announced can come.
    let connecting = flow.sent.phase == Phase::SynSent as u32;
    let low = if connecting { flow.heard.max } else { flow.sent.ack };
    let acks_syn = segment.flags & flags::ACK != 0 && segment.ack == flow.sent.isn.wrapping_add(1);
    let effect = if flow.heard.phase == Phase::Unseen as u32 && connecting && acks_syn {
        Effects::REFUSED
    } else if flow.heard.phase == Phase::Established as u32 && within(segment.seq, low, flow.heard.max) {
        Effects::RST
    } else {
        Effects::RST_IGNORED
    };
    if !effect.any(Effects::RST_IGNORED) {
        flow.heard.phase = Phase::Closed as u32;
        flow.heard.last = now;
    }
    effect
}

/// Whether an ICMP error is about something that is in flight: the quoted sequence number lies between what is
/// acknowledged (one below for a probe) and the highest sent.
#[inline(always)]
pub fn believable(flow: &Flow, quoted: &Quoted) -> bool {
    within(quoted.seq, flow.heard.acked.wrapping_sub(1), flow.sent.max)
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
