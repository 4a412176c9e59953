//! The egress hook's half: what our own segments say about the other side.

use super::{Effects, Evidence, Flow, Phase, Sent, WINDOW};
use crate::packet::{Segment, flags};
use crate::{Config, Kind};

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
    // What lies further behind is ahead: the hook missed as much as that.
    if flow.sent.max.wrapping_sub(end) <= WINDOW {
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

/// What a segment that we sent gives to report; `effects` are what [`egress`] said of it.
#[inline(always)]
pub const fn sent_evidence(flow: &Flow, effects: Effects, config: &Config) -> Option<Evidence> {
    let Sent {
        streak,
        probing_since,
        ..
    } = flow.sent;
    let silent = flow.unanswered_probes();
    if effects.any(Effects::STREAK) && streak >= config.streak {
        Some(Evidence {
            kind: Kind::Streak,
            count: streak,
            since: flow.unanswered_since(),
        })
    } else if effects.any(Effects::PROBE) && silent >= config.silent {
        Some(Evidence {
            kind: Kind::Silent,
            count: silent,
            since: probing_since,
        })
    } else {
        None
    }
}
