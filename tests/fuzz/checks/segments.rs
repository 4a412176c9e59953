//! What holds of the packet parser and the flow machine whatever passes the hooks.

use std::collections::BTreeMap;

use lb_ebpf::flow::{self, Effects, Flow};
use lb_ebpf::packet::{self, Parsed, flags};
use lb_ebpf::view::Packet;
use lb_ebpf::{Config, Counter, Stats};

/// Each frame of `input` has a byte before it that says whether it leaves (odd) or arrives and how much time passes (the
/// rest of it, in steps of 10 ms), and one for its length.
pub(crate) fn check(input: &[u8]) {
    let config = Config::default();
    let (mut flows, mut stats, mut now) = (BTreeMap::new(), Stats::ZERO, 1);
    let mut rest = input;
    while let [step, length, more @ ..] = rest {
        let (frame, behind) = more.split_at(more.len().min(usize::from(*length)));
        rest = behind;
        now += u64::from(step >> 1) * 10_000_000;
        // A box of its own, so that a sanitizer sees a read beyond the end.
        let frame = Box::<[u8]>::from(frame);
        match packet::ethernet(&Packet::new(&frame)) {
            Parsed::Tcp(segment) if step % 2 == 1 => {
                let flow = flows.entry(segment.sent()).or_insert(Flow::UNSEEN);
                let effects = flow::egress(flow, &segment, &config, now);
                stats.sent(effects, segment.payload);
                if let Some(evidence) = flow::sent_evidence(flow, effects, &config) {
                    assert!(evidence.since <= now && evidence.count >= 2, "{evidence:?}");
                }
                holds(flow, now);
            }
            Parsed::Tcp(segment) => {
                assert!(segment.payload <= 65_535, "{segment:?}");
                let Some(flow) = flows.get_mut(&segment.received()) else {
                    continue;
                };
                let before = *flow;
                let effects = flow::ingress(flow, &segment, now);
                stats.received(effects, segment.payload, flow, now);
                assert_eq!(before.sent, flow.sent, "ingress writes its own half");
                let believed = segment.flags & flags::RST == 0 && !effects.any(Effects::IGNORED);
                let ahead = flow.heard.acked.wrapping_sub(flow.sent.max).cast_signed();
                assert!(
                    !believed || ahead <= 0,
                    "nothing is acknowledged that was not sent"
                );
                holds(flow, now);
            }
            Parsed::Unreachable(quoted) => {
                if let Some(flow) = flows.get(&quoted.tuple) {
                    let _ = flow::believable(flow, &quoted);
                }
            }
            Parsed::Other => {}
        }
    }
    let refused = stats.get(Counter::Refused) + stats.get(Counter::Handshake);
    assert!(
        refused <= stats.get(Counter::Syn),
        "there is one answer to a SYN at most"
    );
}

/// Relations within one flow.
fn holds(flow: &Flow, now: u64) {
    assert!(flow.sent.last <= now && flow.heard.last <= now);
    assert!(flow.unanswered_since() <= now);
    assert!(flow.unanswered_probes() <= flow.sent.probes);
}
