//! What is counted for each endpoint, and which segment counts as what.

use crate::flow::{Effects, Flow};

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

    /// Counts a segment that we sent, with what it meant.
    #[inline(always)]
    pub fn sent(&mut self, effects: Effects, payload: u32) {
        self.add(Counter::SegmentsSent, 1);
        self.add(Counter::BytesSent, payload.into());
        self.each(
            effects,
            &[
                (Effects::SYN, Counter::Syn),
                (Effects::SYN_RETRANSMIT, Counter::SynRetransmit),
                (Effects::RETRANSMIT, Counter::RetransmitSent),
                (Effects::PROBE, Counter::ProbeSent),
                (Effects::FIN, Counter::FinSent),
                (Effects::RST, Counter::ResetSent),
            ],
        );
    }

    /// Counts a segment that we received on `flow` at `now`, with what it meant.
    #[inline(always)]
    pub fn received(&mut self, effects: Effects, payload: u32, flow: &Flow, now: u64) {
        self.add(Counter::SegmentsReceived, 1);
        self.add(Counter::BytesReceived, payload.into());
        if !effects.any(Effects::IGNORED.and(Effects::RST_IGNORED)) {
            self.heard = now;
        }
        if effects.any(Effects::HANDSHAKE) {
            self.add(Counter::HandshakeMicroseconds, flow.heard.handshake_us.into());
        }
        self.each(
            effects,
            &[
                (Effects::HANDSHAKE, Counter::Handshake),
                (Effects::REFUSED, Counter::Refused),
                (Effects::RST, Counter::ResetReceived),
                (Effects::RST_IGNORED, Counter::ResetIgnored),
                (Effects::IGNORED, Counter::SegmentsIgnored),
                (Effects::RETRANSMIT, Counter::RetransmitReceived),
                (Effects::FIN, Counter::FinReceived),
                (Effects::SHUT, Counter::ZeroWindow),
            ],
        );
    }

    #[inline(always)]
    fn each(&mut self, effects: Effects, counted: &[(Effects, Counter)]) {
        if effects == Effects::default() {
            return;
        }
        for &(effect, counter) in counted {
            if effects.any(effect) {
                self.add(counter, 1);
            }
        }
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
    assert!(size_of::<Stats>() == 8 + 8 * Counter::COUNT);
    assert!(Counter::EventsLost as usize + 1 == Counter::COUNT);
};

#[cfg(test)]
mod tests;
