use super::*;

const HERE: Endpoint = Endpoint {
    provider: 1,
    max_ejection: Duration::from_secs(5),
};
const THERE: Endpoint = Endpoint {
    provider: 2,
    max_ejection: Duration::from_secs(5),
};

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn judge() -> Judge {
    Judge::new(&Params::default())
}

/// Seen at `ms`, about what went out 400 ms earlier.
fn seen(ms: u64, slot: u16, evidence: Evidence) -> Sighting {
    Sighting {
        at: at(ms),
        since: at(ms.saturating_sub(400)),
        cookie: 7,
        slot,
        evidence,
    }
}

fn eject(cause: Cause, ms: u64) -> Verdict {
    Verdict::Eject {
        cause,
        span: Duration::from_millis(ms),
    }
}

const STREAK: Evidence = Evidence::Loss(Loss::Streak(2));

// [KERNEL-7]
#[test]
fn a_connection_is_treated_by_how_much_of_a_response_there_is() {
    use Evidence::{Finished, Loss as Lost, Refused, Reset, Unreachable};
    use Loss::{Silent, Streak, SynTimeout};
    let none = None;
    let (poison, close) = (Some(Remedy::Poison), Some(Remedy::Close));
    let (over, end) = (Some(Remedy::FailOver), Some(Remedy::End));
    // Evidence, then the remedy while connecting, idle, waiting and streaming.
    let table = [
        (Lost(Streak(1)), [none, none, none, none]),
        (Lost(Streak(2)), [over, close, over, poison]),
        (Lost(Streak(3)), [over, close, over, end]),
        (Lost(Silent(1)), [none, none, none, none]),
        (Lost(Silent(2)), [over, close, over, poison]),
        (Lost(Silent(3)), [over, close, over, poison]),
        (Lost(Silent(4)), [over, close, over, end]),
        (Lost(SynTimeout), [over, none, none, none]),
        (Refused, [over, close, over, end]),
        (Unreachable, [over, close, over, end]),
        (Reset, [over, close, over, poison]),
        (Finished, [none, close, none, none]),
    ];
    let phases = [Phase::Connecting, Phase::Idle, Phase::Waiting, Phase::Streaming];
    for (evidence, remedies) in table {
        for (phase, remedy) in phases.into_iter().zip(remedies) {
            let reaction = judge().on_sighting(&seen(1_000, 0, evidence), Some(phase), HERE, at(0));
            assert_eq!(reaction.remedy, remedy, "{evidence:?} {phase:?}");
        }
    }
}

// [KERNEL-8]
#[test]
fn one_refusal_or_unreachable_ejects_even_if_its_connection_is_gone() {
    for (evidence, cause) in [
        (Evidence::Refused, Cause::Refused),
        (Evidence::Unreachable, Cause::Unreachable),
    ] {
        for phase in [None, Some(Phase::Connecting), Some(Phase::Streaming)] {
            let reaction = judge().on_sighting(&seen(1_000, 0, evidence), phase, HERE, at(999));
            assert_eq!(reaction.verdict, eject(cause, 1_000));
        }
    }
}

// [KERNEL-9]
#[test]
fn loss_ejects_only_if_nothing_was_heard_on_any_flow_since() {
    for (heard, verdict) in [(600, eject(Cause::Loss, 1_000)), (601, Verdict::None)] {
        let reaction = judge().on_sighting(&seen(1_000, 0, STREAK), Some(Phase::Waiting), HERE, at(heard));
        assert_eq!(reaction.verdict, verdict, "heard at {heard} ms");
        assert_eq!(
            reaction.remedy,
            Some(Remedy::FailOver),
            "the connection is left in any case"
        );
    }
}

// [KERNEL-10]
#[test]
fn what_a_closed_socket_still_sees_is_ignored() {
    for evidence in [
        STREAK,
        Evidence::Loss(Loss::SynTimeout),
        Evidence::Reset,
        Evidence::Finished,
    ] {
        let reaction = judge().on_sighting(&seen(1_000, 0, evidence), None, HERE, at(0));
        assert_eq!(
            reaction,
            Reaction {
                remedy: None,
                verdict: Verdict::None
            }
        );
    }
}

#[test]
fn loss_below_the_threshold_is_for_the_metrics_only() {
    for loss in [Loss::Streak(1), Loss::Silent(1)] {
        let sighting = seen(1_000, 0, Evidence::Loss(loss));
        let reaction = judge().on_sighting(&sighting, Some(Phase::Waiting), HERE, at(0));
        assert_eq!(
            reaction,
            Reaction {
                remedy: None,
                verdict: Verdict::None
            }
        );
    }
}

// [KERNEL-11]
#[test]
fn resets_are_failures_until_there_are_enough_of_them_in_the_window() {
    let mut judge = judge();
    let mut reset = |ms| {
        judge
            .on_sighting(
                &seen(ms, 0, Evidence::Reset),
                Some(Phase::Streaming),
                HERE,
                at(ms),
            )
            .verdict
    };
    assert_eq!(reset(0), Verdict::Failure);
    assert_eq!(reset(900), Verdict::Failure);
    assert_eq!(reset(1_001), Verdict::Failure);
    assert_eq!(reset(1_500), eject(Cause::Reset, 1_000));
}

#[test]
fn a_reset_of_an_idle_connection_says_nothing_about_the_endpoint() {
    let reaction = judge().on_sighting(&seen(0, 0, Evidence::Reset), Some(Phase::Idle), HERE, at(0));
    assert_eq!(
        reaction,
        Reaction {
            remedy: Some(Remedy::Close),
            verdict: Verdict::None
        }
    );
}

// [KERNEL-12]
#[test]
fn losses_at_two_providers_within_a_second_are_our_own_link() {
    let mut judge = judge();
    let mut lose = |ms, slot, endpoint| {
        judge
            .on_sighting(&seen(ms, slot, STREAK), Some(Phase::Waiting), endpoint, at(0))
            .verdict
    };
    assert_eq!(lose(1_000, 0, HERE), eject(Cause::Loss, 1_000));
    assert_eq!(
        lose(1_100, 1, THERE),
        Verdict::OwnLink {
            withdraw: vec![0],
            first: true
        }
    );
    assert_eq!(
        lose(1_200, 0, HERE),
        Verdict::OwnLink {
            withdraw: vec![],
            first: false
        }
    );
    // Two seconds later the link is forgotten, and the ejection that was taken back does not count as a repeat.
    assert_eq!(lose(3_300, 0, HERE), eject(Cause::Loss, 1_000));
}

// [KERNEL-12]
#[test]
fn two_endpoints_of_one_provider_are_no_link() {
    let mut judge = judge();
    for slot in [0, 1] {
        let reaction = judge.on_sighting(&seen(1_000, slot, STREAK), Some(Phase::Waiting), HERE, at(0));
        assert_eq!(reaction.verdict, eject(Cause::Loss, 1_000));
    }
}

// [KERNEL-13]
#[test]
fn an_ejection_doubles_when_it_comes_again_and_is_forgiven_with_time() {
    let mut judge = judge();
    let mut refuse = |ms| {
        judge
            .on_sighting(
                &seen(ms, 0, Evidence::Refused),
                Some(Phase::Connecting),
                HERE,
                at(0),
            )
            .verdict
    };
    assert_eq!(refuse(0), eject(Cause::Refused, 1_000));
    assert_eq!(refuse(999), Verdict::None);
    assert_eq!(refuse(1_000), eject(Cause::Refused, 2_000));
    assert_eq!(refuse(3_500), eject(Cause::Refused, 4_000));
    assert_eq!(refuse(8_000), eject(Cause::Refused, 5_000));
    // Out until 13 s, then well for 20 s: two of the four are forgotten.
    assert_eq!(refuse(33_000), eject(Cause::Refused, 4_000));
    assert_eq!(refuse(1_000_000), eject(Cause::Refused, 1_000));
}

#[test]
fn a_forgotten_slot_starts_anew() {
    let mut judge = judge();
    let refused = seen(0, 3, Evidence::Refused);
    assert_eq!(
        judge.on_sighting(&refused, None, HERE, at(0)).verdict,
        eject(Cause::Refused, 1_000)
    );
    judge.forget(3);
    assert_eq!(
        judge.on_sighting(&refused, None, HERE, at(0)).verdict,
        eject(Cause::Refused, 1_000)
    );
}

#[test]
fn the_defaults_are_within_bounds() {
    assert_eq!(Params::new(Settings::default()), Ok(Params::default()));
}

#[test]
fn every_setting_out_of_bounds_is_named() {
    let settings = Settings {
        syn_timeout: Duration::ZERO,
        streak_failover: 4,
        silent_failover: 0,
        rst_count: 0,
        ejection: Duration::ZERO,
        ..Settings::default()
    };
    let problems = Params::new(settings).expect_err("out of bounds");
    let fields: Vec<_> = problems.iter().map(|problem| problem.field).collect();
    assert_eq!(
        fields,
        [
            "syn_timeout_ms",
            "streak.end_stream",
            "silent.failover",
            "rst.count",
            "ejection_ms"
        ]
    );
}

#[test]
fn an_event_becomes_a_sighting_with_its_age_taken_off() {
    let mut event = Event {
        time: 5_000_000_000,
        cookie: 9,
        tuple: lb_ebpf::Tuple::default(),
        slot: 3,
        kind: Kind::Streak as u8,
        hook: 1,
        arg: 2,
        age_us: 412_000,
    };
    let sighting = Sighting::from_event(&event).expect("a kind of this build");
    assert_eq!(
        sighting,
        Sighting {
            at: at(5_000),
            since: at(4_588),
            cookie: 9,
            slot: 3,
            evidence: STREAK
        }
    );
    event.kind = 200;
    assert_eq!(Sighting::from_event(&event), None);
}
