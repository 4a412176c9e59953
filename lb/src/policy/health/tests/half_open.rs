//! Being out, coming back, and verdicts that come late.

use super::*;

// [HEALTH-5]
#[test]
fn half_open_lets_only_as_many_through_at_a_time_as_it_has_slots() {
    let mut rig = Rig::with(Settings {
        half_open_probes: 2,
        ..Settings::default()
    });
    rig.eject();
    rig.pass(EJECTION);
    assert_eq!(rig.standing(), Standing::HalfOpen);
    let (first, _second) = (rig.acquire(), rig.acquire());
    assert_eq!(rig.standing(), Standing::Probing);
    assert_eq!(rig.health.acquire(rig.now), None);
    assert_eq!(rig.release(first, Verdict::Neutral), None);
    assert_eq!(rig.standing(), Standing::HalfOpen);
}

// [HEALTH-6]
#[test]
fn a_successful_probe_clears_the_whole_history() {
    let mut rig = Rig::new();
    rig.eject();
    rig.pass(EJECTION);
    let expected = Transition {
        from: State::HalfOpen,
        to: State::Healthy,
        cause: None,
        until: None,
    };
    assert_eq!(rig.request(Verdict::Success), Some(expected));
    let clear = Snapshot {
        standing: Standing::Healthy,
        consecutive_failures: 0,
        window_volume: 0,
        window_failures: 0,
        ejections: 0,
        cause: None,
    };
    assert_eq!(rig.health.snapshot(rig.now), clear);
    let until = rig.eject().until.expect("an ejection ends");
    assert_eq!(until.since(rig.now), EJECTION, "the first in a new row");
}

// [HEALTH-7]
#[test]
fn a_failed_probe_ejects_again() {
    let mut rig = Rig::new();
    rig.eject();
    rig.pass(EJECTION);
    let until = rig.now + 2 * EJECTION;
    let expected = Transition {
        from: State::HalfOpen,
        to: State::Ejected,
        cause: Some(Cause::HalfOpenFailure),
        until: Some(until),
    };
    assert_eq!(rig.request(Verdict::Failure), Some(expected));
    assert_eq!(rig.standing(), Standing::Ejected { until });
}

// [HEALTH-8]
#[test]
fn late_verdicts_of_an_older_generation_change_nothing() {
    let mut rig = Rig::new();
    let before = rig.acquire();
    rig.eject();
    let ejected = rig.health.snapshot(rig.now);
    for verdict in [Verdict::Failure, Verdict::Neutral, Verdict::Success] {
        assert_eq!(rig.release(before, verdict), None);
    }
    assert_eq!(rig.health.late_failure(rig.now, before, at_once()), None);
    rig.health.clean_end(before);
    assert_eq!(rig.health.snapshot(rig.now), ejected);

    rig.pass(EJECTION);
    rig.request(Verdict::Success);
    rig.request(Verdict::Failure);
    let healthy = rig.health.snapshot(rig.now);
    assert_eq!(rig.release(before, Verdict::Failure), None);
    assert_eq!(rig.health.late_failure(rig.now, before, at_once()), None);
    rig.health.clean_end(before);
    assert_eq!(rig.health.snapshot(rig.now), healthy);
}

// [HEALTH-8]
#[test]
fn a_second_probe_that_ends_after_the_first_has_decided_changes_nothing() {
    let mut rig = Rig::with(Settings {
        half_open_probes: 2,
        ..Settings::default()
    });
    rig.eject();
    rig.pass(EJECTION);
    let (first, second) = (rig.acquire(), rig.acquire());
    rig.release(first, Verdict::Success)
        .expect("a successful probe readmits");
    assert_eq!(rig.release(second, Verdict::Failure), None);
    assert_eq!(rig.standing(), Standing::Healthy);
}

// [HEALTH-12]
#[test]
fn a_fail_open_request_takes_no_probe_slot_and_changes_nothing_while_the_endpoint_is_out() {
    let mut rig = Rig::new();
    rig.eject();
    let ejected = rig.health.snapshot(rig.now);
    for verdict in [Verdict::Failure, Verdict::Neutral, Verdict::Success] {
        let permit = rig.health.fail_open();
        assert_eq!(rig.release(permit, verdict), None);
    }
    assert_eq!(rig.health.snapshot(rig.now), ejected);

    let permit = rig.health.fail_open();
    rig.pass(EJECTION);
    let probe = rig.acquire();
    assert_eq!(rig.standing(), Standing::Probing);
    assert_eq!(rig.release(permit, Verdict::Success), None);
    assert_eq!(rig.health.late_failure(rig.now, permit, at_once()), None);
    assert_eq!(rig.standing(), Standing::Probing);
    assert!(rig.release(probe, Verdict::Success).is_some());
}

// [HEALTH-12]
#[test]
fn a_fail_open_request_to_an_endpoint_that_is_in_after_all_counts_as_any_other() {
    let mut rig = Rig::with(Settings {
        consecutive_failures: 1,
        ..Settings::default()
    });
    let permit = rig.health.fail_open();
    assert!(rig.release(permit, Verdict::Failure).is_some());
}

// [HEALTH-13]
#[test]
fn a_probe_that_never_ends_loses_its_slot_but_is_believed_when_it_does() {
    let mut rig = Rig::new();
    rig.eject();
    rig.pass(EJECTION);
    let hung = rig.acquire();
    rig.pass(EJECTION.saturating_sub(Duration::from_nanos(1)));
    assert_eq!(rig.standing(), Standing::Probing);
    rig.pass(Duration::from_nanos(1));
    assert_eq!(rig.standing(), Standing::HalfOpen);
    let _second = rig.acquire();
    assert_eq!(rig.release(hung, Verdict::Neutral), None);
    assert_eq!(rig.standing(), Standing::Probing, "the slot is the second's");

    let late = hung;
    let readmitted = rig.release(late, Verdict::Success);
    assert_eq!(readmitted.map(|transition| transition.to), Some(State::Healthy));
}
