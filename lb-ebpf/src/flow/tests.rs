use proptest::prelude::*;

use super::*;
use crate::packet::{Quoted, Segment, flags};
use crate::{Config, Tuple};

const MS: u64 = 1_000_000;
const ISN: u32 = u32::MAX - 50;
const IRS: u32 = 9_000;

fn config() -> Config {
    Config::default()
}

fn segment(flags: u8, seq: u32, ack: u32, payload: u32) -> Segment {
    Segment {
        source: [1; 4],
        destination: [2; 4],
        source_port: 1,
        destination_port: 2,
        seq,
        ack,
        payload,
        window: 100,
        flags,
    }
}

fn send(flow: &mut Flow, at_ms: u64, seq: u32, payload: u32) -> Effects {
    let ack = flow.heard.max;
    egress(
        flow,
        &segment(flags::ACK, seq, ack, payload),
        &config(),
        at_ms * MS,
    )
}

fn hear(flow: &mut Flow, at_ms: u64, seq: u32, ack: u32, payload: u32) -> Effects {
    ingress(flow, &segment(flags::ACK, seq, ack, payload), at_ms * MS)
}

/// Connected at 1 ms, nothing sent yet.
fn connected() -> Flow {
    let mut flow = Flow::UNSEEN;
    assert_eq!(
        egress(&mut flow, &segment(flags::SYN, ISN, 0, 0), &config(), 0),
        Effects::SYN
    );
    let synack = segment(flags::SYN | flags::ACK, IRS, ISN.wrapping_add(1), 0);
    assert_eq!(ingress(&mut flow, &synack, MS), Effects::HANDSHAKE);
    assert_eq!(send(&mut flow, 1, ISN.wrapping_add(1), 0), Effects::default());
    flow
}

fn first() -> u32 {
    ISN.wrapping_add(1)
}

#[test]
fn a_handshake_is_timed() {
    assert_eq!(connected().heard.handshake_us, 1_000);
}

#[test]
fn the_same_syn_again_is_a_retransmission_and_another_one_a_new_connection() {
    let mut flow = Flow::UNSEEN;
    let syn = segment(flags::SYN, ISN, 0, 0);
    assert_eq!(egress(&mut flow, &syn, &config(), 0), Effects::SYN);
    assert_eq!(
        egress(&mut flow, &syn, &config(), 1_000 * MS),
        Effects::SYN_RETRANSMIT
    );
    assert_eq!(flow.sent.opened, 0);
    assert_eq!(
        egress(&mut flow, &segment(flags::SYN, 7, 0, 0), &config(), 2_000 * MS),
        Effects::SYN
    );
    assert_eq!(flow.sent.opened, 2_000 * MS);
}

// [KERNEL-3]
#[test]
fn a_syn_is_refused_only_by_a_reset_that_acknowledges_it() {
    let mut flow = Flow::UNSEEN;
    egress(&mut flow, &segment(flags::SYN, ISN, 0, 0), &config(), 0);
    for forged in [
        segment(flags::RST, 0, 0, 0),
        segment(flags::RST, 0, first(), 0),
        segment(flags::RST | flags::ACK, 0, ISN, 0),
        segment(flags::RST | flags::ACK, 0, first().wrapping_add(1), 0),
    ] {
        assert_eq!(ingress(&mut flow, &forged, MS), Effects::RST_IGNORED);
    }
    assert_eq!(
        ingress(&mut flow, &segment(flags::RST | flags::ACK, 0, first(), 0), MS),
        Effects::REFUSED
    );
}

// [KERNEL-3]
#[test]
fn an_established_flow_is_reset_only_from_within_what_is_not_acknowledged_yet() {
    let mut flow = connected();
    hear(&mut flow, 2, IRS + 1, first(), 100);
    send(&mut flow, 3, first(), 0);
    hear(&mut flow, 4, IRS + 101, first(), 50);
    for seq in [IRS + 100, IRS + 152, 0, IRS.wrapping_sub(1)] {
        assert_eq!(
            ingress(&mut flow, &segment(flags::RST, seq, 0, 0), 5 * MS),
            Effects::RST_IGNORED,
            "{seq}"
        );
    }
    assert_eq!(flow.heard.last, 4 * MS);
    assert_eq!(
        ingress(&mut flow, &segment(flags::RST, IRS + 120, 0, 0), 5 * MS),
        Effects::RST
    );
}

#[test]
fn a_reset_right_after_the_handshake_must_continue_it_exactly() {
    let mut flow = Flow::UNSEEN;
    egress(&mut flow, &segment(flags::SYN, ISN, 0, 0), &config(), 0);
    ingress(&mut flow, &segment(flags::SYN | flags::ACK, IRS, first(), 0), MS);
    assert_eq!(
        ingress(&mut flow, &segment(flags::RST, IRS, 0, 0), MS),
        Effects::RST_IGNORED
    );
    assert_eq!(
        ingress(&mut flow, &segment(flags::RST, IRS + 1, 0, 0), MS),
        Effects::RST
    );
}

// [KERNEL-4]
#[test]
fn what_acknowledges_more_than_was_sent_is_no_sign_of_life() {
    let mut flow = connected();
    send(&mut flow, 10, first(), 100);
    let beyond = first().wrapping_add(101);
    assert_eq!(hear(&mut flow, 20, IRS + 1, beyond, 10), Effects::IGNORED);
    assert_eq!(
        hear(&mut flow, 20, IRS + 1, beyond.wrapping_add(1 << 31), 10),
        Effects::IGNORED
    );
    assert_eq!(flow.heard.last, MS);
    assert_eq!(
        hear(&mut flow, 20, IRS + 1, beyond.wrapping_sub(1), 10),
        Effects::default()
    );
    assert_eq!(flow.heard.last, 20 * MS);
}

// [KERNEL-6]
#[test]
fn a_connection_of_which_much_went_by_unseen_is_followed_again() {
    for missed in [1_000, 1_500_000_000, 2_500_000_000, 3_000_000_000] {
        let mut flow = connected();
        let next = first().wrapping_add(missed);
        assert_eq!(send(&mut flow, 10, next, 100), Effects::default(), "{missed}");
        let ahead = next.wrapping_add(101);
        assert_eq!(hear(&mut flow, 20, 9_001, ahead, 0), Effects::IGNORED, "{missed}");
        assert_eq!(
            hear(&mut flow, 30, 9_001, next, 0),
            Effects::default(),
            "{missed}"
        );
        assert_eq!((flow.heard.acked, flow.heard.last), (next, 30 * MS), "{missed}");
    }
}

#[test]
fn a_request_into_a_blackhole_is_a_growing_streak() {
    let mut flow = connected();
    send(&mut flow, 10, first(), 100);
    let streak = Effects::RETRANSMIT.and(Effects::STREAK);
    for (n, at) in [(1, 214), (2, 422), (3, 846)] {
        assert_eq!(send(&mut flow, at, first(), 100), streak);
        assert_eq!(flow.sent.streak, n);
    }
    assert_eq!(flow.unanswered_since(), 10 * MS);
}

// [KERNEL-1]
#[test]
fn anything_heard_begins_a_new_streak() {
    let mut flow = connected();
    send(&mut flow, 10, first(), 100);
    send(&mut flow, 214, first(), 100);
    hear(&mut flow, 220, IRS + 1, first(), 0);
    send(&mut flow, 422, first(), 100);
    assert_eq!(flow.sent.streak, 1);
}

// [KERNEL-1]
#[test]
fn a_burst_of_fast_recovery_counts_once() {
    let mut flow = connected();
    for n in 0..10 {
        send(&mut flow, 10, first().wrapping_add(n * 100), 100);
    }
    hear(&mut flow, 20, IRS + 1, first(), 0);
    for n in 0..3 {
        send(&mut flow, 21 + u64::from(n), first().wrapping_add(n * 200), 100);
    }
    assert_eq!(flow.sent.streak, 1);
}

#[test]
fn an_endpoint_owes_an_answer_since_the_data_that_is_not_acknowledged() {
    let mut flow = connected();
    send(&mut flow, 10, first(), 100);
    send(&mut flow, 15, first().wrapping_add(100), 100);
    assert_eq!(flow.unanswered_since(), 10 * MS);
    hear(&mut flow, 20, IRS + 1, first().wrapping_add(100), 0);
    assert_eq!(flow.unanswered_since(), 20 * MS);
    hear(&mut flow, 30, IRS + 1, first().wrapping_add(200), 0);
    send(&mut flow, 50, first().wrapping_add(200), 100);
    assert_eq!(flow.unanswered_since(), 50 * MS);
}

// [KERNEL-2]
#[test]
fn a_probe_is_unanswered_when_the_next_one_is_due() {
    let mut flow = connected();
    let probe = first().wrapping_sub(1);
    for (n, at) in [(0, 1_001), (1, 2_001), (2, 3_001)] {
        assert_eq!(send(&mut flow, at, probe, 0), Effects::PROBE);
        assert_eq!(flow.unanswered_probes(), n);
    }
    assert_eq!(flow.sent.probing_since, 1_001 * MS);
    hear(&mut flow, 3_002, IRS + 1, first(), 0);
    send(&mut flow, 4_002, probe, 0);
    assert_eq!(flow.unanswered_probes(), 0);
}

#[test]
fn plain_acknowledgements_are_no_probes() {
    let mut flow = connected();
    assert_eq!(send(&mut flow, 10, first(), 0), Effects::default());
}

// [KERNEL-5]
#[test]
fn an_unreachable_is_believed_only_about_what_is_in_flight() {
    let mut flow = connected();
    send(&mut flow, 10, first(), 100);
    let quoted = |seq| Quoted {
        tuple: Tuple::default(),
        seq,
        code: 1,
    };
    for (offset, believed) in [(-2, false), (-1, true), (0, true), (100, true), (101, false)] {
        assert_eq!(
            believable(&flow, &quoted(first().wrapping_add_signed(offset))),
            believed,
            "{offset}"
        );
    }
    hear(&mut flow, 20, IRS + 1, first().wrapping_add(100), 0);
    assert!(!believable(&flow, &quoted(first())));
}

#[test]
fn a_closed_window_is_noticed_once_until_it_opens() {
    let mut flow = connected();
    let mut shut = segment(flags::ACK, IRS + 1, first(), 0);
    shut.window = 0;
    assert_eq!(ingress(&mut flow, &shut, MS), Effects::SHUT);
    assert_eq!(ingress(&mut flow, &shut, MS), Effects::default());
    hear(&mut flow, 5, IRS + 1, first(), 0);
    assert_eq!(ingress(&mut flow, &shut, MS), Effects::SHUT);
}

#[test]
fn evidence_is_reported_from_the_threshold_on() {
    let mut flow = connected();
    send(&mut flow, 10, first(), 100);
    let mut told = |at| {
        let effects = send(&mut flow, at, first(), 100);
        sent_evidence(&flow, effects, &config())
    };
    assert_eq!(told(214), None);
    assert_eq!(
        told(422),
        Some(Evidence {
            kind: Kind::Streak,
            count: 2,
            since: 10 * MS
        })
    );
    assert_eq!(
        told(846),
        Some(Evidence {
            kind: Kind::Streak,
            count: 3,
            since: 10 * MS
        })
    );

    let mut flow = connected();
    let mut told = |at| {
        let effects = send(&mut flow, at, first().wrapping_sub(1), 0);
        sent_evidence(&flow, effects, &config())
    };
    assert_eq!((told(1_001), told(2_001)), (None, None));
    assert_eq!(
        told(3_001),
        Some(Evidence {
            kind: Kind::Silent,
            count: 2,
            since: 1_001 * MS
        })
    );
}

#[test]
fn only_the_endpoints_own_end_is_reported() {
    let mut flow = connected();
    let fin = segment(flags::FIN | flags::ACK, first(), IRS + 1, 0);
    let effects = egress(&mut flow, &fin, &config(), MS);
    assert_eq!(
        (effects, sent_evidence(&flow, effects, &config())),
        (Effects::FIN, None)
    );
    let fin = segment(flags::FIN | flags::ACK, IRS + 1, first(), 0);
    let effects = ingress(&mut flow, &fin, 2 * MS);
    let told = heard_evidence(&flow, effects).map(|evidence| evidence.kind);
    assert_eq!(told, Some(Kind::Finished));
}

// [KERNEL-6]
#[test]
fn a_direction_has_one_owner_until_that_is_quiet() {
    let mut owner = 0;
    assert!(owned(&mut owner, 0, 7, 0));
    assert!(!owned(&mut owner, 50 * MS, 8, 51 * MS));
    assert!(owned(&mut owner, 50 * MS, 7, 51 * MS));
    assert!(owned(&mut owner, 50 * MS, 8, 151 * MS));
    assert!(!owned(&mut owner, 151 * MS, 7, 152 * MS));
}

proptest! {
    #[test]
    fn sent_data_is_never_new_twice(lengths in proptest::collection::vec(1_u32..3_000, 1..40), isn: u32) {
        let mut flow = Flow::UNSEEN;
        egress(&mut flow, &segment(flags::SYN, isn, 0, 0), &config(), 0);
        let mut at = isn.wrapping_add(1);
        for &length in &lengths {
            let fresh = egress(&mut flow, &segment(flags::ACK, at, 0, length), &config(), MS);
            prop_assert_eq!(fresh, Effects::default());
            at = at.wrapping_add(length);
            let again = segment(flags::ACK, at.wrapping_sub(length), 0, length);
            prop_assert!(egress(&mut flow, &again, &config(), MS).any(Effects::RETRANSMIT));
        }
        prop_assert_eq!(flow.sent.max, at);
    }

    // [KERNEL-3]
    #[test]
    fn a_blind_sender_has_no_better_chance_than_the_window(seq: u32, received in 0_u32..60_000) {
        let mut flow = connected();
        hear(&mut flow, 2, IRS + 1, first(), received);
        let effect = ingress(&mut flow, &segment(flags::RST, seq, 0, 0), 3 * MS);
        let possible = seq.wrapping_sub(IRS + 1) <= received;
        prop_assert_eq!(effect.any(Effects::RST), possible);
    }

    #[test]
    fn no_order_of_segments_makes_numbers_run_away(
        steps in proptest::collection::vec((any::<bool>(), 0_u8..32, -4_i32..4, -4_i32..4, 0_u32..300), 1..200),
    ) {
        let mut flow = Flow::UNSEEN;
        for (n, (out, flags, seq, ack, payload)) in steps.into_iter().enumerate() {
            let now = n as u64 * 30 * MS;
            let (mine, theirs) = (flow.sent.max.wrapping_add_signed(seq), flow.heard.max.wrapping_add_signed(ack));
            if out {
                egress(&mut flow, &segment(flags, mine, theirs, payload), &config(), now);
            } else {
                ingress(&mut flow, &segment(flags, theirs, mine, payload), now);
            }
            prop_assert!(flow.sent.last <= now && flow.heard.last <= now);
            prop_assert!(!after(flow.heard.acked, flow.sent.max));
            prop_assert!(flow.unanswered_probes() <= flow.sent.probes);
        }
    }
}
