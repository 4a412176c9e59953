//! The ingress hook's half: what the endpoint says, and whether to believe it.

use super::{Effects, Evidence, Flow, Phase, Sent, WINDOW, after, within};
use crate::Kind;
use crate::packet::{Quoted, Segment, flags};

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
    let max = flow.sent.max;
    // So much cannot be in flight: the rest went by while no hook looked, and was acknowledged.
    let lost = max.wrapping_sub(flow.heard.acked) > WINDOW;
    let acked = if lost {
        max.wrapping_sub(WINDOW)
    } else {
        flow.heard.acked
    };
    if !acks || !within(segment.ack, acked.wrapping_sub(STALE), max) {
        return Effects::IGNORED;
    }
    flow.heard.last = now;
    if lost || after(segment.ack, acked) {
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

/// What a segment that we received gives to report; `effects` are what [`ingress`] said of it.
#[inline(always)]
pub const fn heard_evidence(flow: &Flow, effects: Effects) -> Option<Evidence> {
    let Sent { opened, last, .. } = flow.sent;
    if effects.any(Effects::REFUSED) {
        Some(Evidence {
            kind: Kind::Refused,
            count: 0,
            since: opened,
        })
    } else if effects.any(Effects::RST) {
        Some(Evidence {
            kind: Kind::Reset,
            count: 0,
            since: last,
        })
    } else if effects.any(Effects::FIN) {
        Some(Evidence {
            kind: Kind::Finished,
            count: 0,
            since: last,
        })
    } else {
        None
    }
}

/// Whether an ICMP error is about something that is in flight: the quoted sequence number lies between what is
/// acknowledged (one below for a probe) and the highest sent.
#[inline(always)]
pub fn believable(flow: &Flow, quoted: &Quoted) -> bool {
    within(quoted.seq, flow.heard.acked.wrapping_sub(1), flow.sent.max)
}
