use std::time::Duration;

use super::*;

mod model;

fn at(milliseconds: u64) -> Instant {
    Instant::from_nanos(milliseconds * 1_000_000)
}

fn breaker() -> Breaker {
    Breaker::new(Params::default())
}

/// Sends one request and reports it.
fn one(breaker: &mut Breaker, now: Instant, verdict: Verdict) -> Option<Transition> {
    let permit = breaker.acquire(now).expect("it lets requests through");
    breaker.release(now, permit, verdict)
}

fn open(breaker: &mut Breaker, now: Instant) {
    while breaker.standing(now) == Standing::Closed {
        let _transition = one(breaker, now, Verdict::Failure);
    }
}

const OPEN_MS: u64 = 30_000;

// [BREAKER-1]
#[test]
fn each_setting_that_is_out_of_bounds_is_named() {
    let wrong = Settings {
        consecutive_failures: 0,
        failure_ratio: 0.0,
        failure_min_volume: 0,
        window: Duration::from_millis(999),
        open: Duration::ZERO,
        half_open_probes: 101,
    };
    let named: Vec<_> = Params::new(wrong)
        .expect_err("all are wrong")
        .iter()
        .map(|fault| fault.field)
        .collect();
    assert_eq!(
        named,
        [
            "consecutive_failures",
            "failure_ratio",
            "failure_min_volume",
            "window_ms",
            "open_ms",
            "half_open_probes"
        ]
    );
    assert_eq!(
        breaker().params(),
        &Params::new(Settings::default()).expect("in bounds")
    );
}

// [BREAKER-2]
#[test]
fn ten_failures_in_a_row_open_it_and_requests_are_refused() {
    let mut breaker = breaker();
    for _ in 0..9 {
        assert_eq!(one(&mut breaker, at(0), Verdict::Failure), None);
    }
    let until = at(OPEN_MS + 5);
    let opened = Transition::Opened {
        cause: Cause::Consecutive,
        until,
    };
    assert_eq!(one(&mut breaker, at(5), Verdict::Failure), Some(opened));
    assert_eq!(breaker.standing(at(6)), Standing::Open { until });
    assert_eq!(breaker.acquire(at(6)), None);
    assert_eq!(breaker.snapshot(at(6)).cause, Some(Cause::Consecutive));
}

// [BREAKER-2]
#[test]
fn half_of_twenty_results_open_it_although_no_run_forms() {
    let mut breaker = breaker();
    for result in 0..19 {
        let verdict = if result % 2 == 0 {
            Verdict::Failure
        } else {
            Verdict::Success
        };
        let permit = breaker.acquire(at(0)).expect("closed");
        assert_eq!(breaker.release(at(0), permit, verdict), None);
        breaker.clean_end(permit);
        assert!(!breaker.has_run());
    }
    let opened = one(&mut breaker, at(0), Verdict::Success);
    let ratio = Transition::Opened {
        cause: Cause::Ratio,
        until: at(OPEN_MS),
    };
    assert_eq!(opened, Some(ratio));
}

// [BREAKER-3]
#[test]
fn what_was_begun_before_it_opened_changes_nothing() {
    let mut breaker = breaker();
    let early: Vec<_> = (0..12).filter_map(|_| breaker.acquire(at(0))).collect();
    open(&mut breaker, at(0));
    for permit in &early[..6] {
        assert_eq!(breaker.release(at(1), *permit, Verdict::Success), None);
    }
    // Nor once it is half-open, nor once it is closed again.
    for permit in &early[6..9] {
        assert_eq!(breaker.release(at(OPEN_MS), *permit, Verdict::Failure), None);
    }
    assert_eq!(breaker.standing(at(OPEN_MS)), Standing::HalfOpen);
    for _ in 0..3 {
        let _transition = one(&mut breaker, at(OPEN_MS), Verdict::Success);
    }
    for permit in &early[9..] {
        assert_eq!(breaker.release(at(OPEN_MS), *permit, Verdict::Failure), None);
    }
    assert_eq!(breaker.snapshot(at(OPEN_MS)).consecutive_failures, 0);
}

// [BREAKER-4]
#[test]
fn three_probes_at_a_time_all_of_which_have_to_succeed() {
    let mut breaker = breaker();
    open(&mut breaker, at(0));
    let probes: Vec<_> = (0..4).map(|_| breaker.acquire(at(OPEN_MS))).collect();
    assert!(probes[..3].iter().all(Option::is_some) && probes[3].is_none());
    assert_eq!(breaker.standing(at(OPEN_MS)), Standing::Probing);
    let mut probes = probes.into_iter().flatten();
    let mut end = |verdict| breaker.release(at(OPEN_MS), probes.next().expect("three"), verdict);
    assert_eq!((end(Verdict::Success), end(Verdict::Success)), (None, None));
    assert_eq!(end(Verdict::Success), Some(Transition::Closed));
    assert_eq!(breaker.standing(at(OPEN_MS)), Standing::Closed);
    assert_eq!(breaker.snapshot(at(OPEN_MS)).window_volume, 0, "a clean history");
}

// [BREAKER-4]
#[test]
fn one_failed_probe_opens_it_again_and_voids_the_others() {
    let mut breaker = breaker();
    open(&mut breaker, at(0));
    let other = breaker.acquire(at(OPEN_MS)).expect("a probe");
    let failed = one(&mut breaker, at(OPEN_MS), Verdict::Failure);
    let opened = Transition::Opened {
        cause: Cause::HalfOpenFailure,
        until: at(2 * OPEN_MS),
    };
    assert_eq!(failed, Some(opened));
    assert_eq!(breaker.release(at(2 * OPEN_MS), other, Verdict::Success), None);
    for _ in 0..2 {
        assert_eq!(one(&mut breaker, at(2 * OPEN_MS), Verdict::Success), None);
    }
}

// [BREAKER-5]
#[test]
fn a_probe_without_a_verdict_gives_its_place_up_and_a_lost_one_holds_it_for_open_ms() {
    let mut breaker = breaker();
    open(&mut breaker, at(0));
    for _ in 0..10 {
        assert_eq!(one(&mut breaker, at(OPEN_MS), Verdict::Neutral), None);
    }
    let lost = (0..3).filter(|_| breaker.acquire(at(OPEN_MS)).is_some()).count();
    assert_eq!(lost, 3);
    assert_eq!(breaker.acquire(at(2 * OPEN_MS - 1)), None);
    assert!(breaker.acquire(at(2 * OPEN_MS)).is_some());
}

// [BREAKER-6]
#[test]
fn only_a_clean_end_ends_a_run_and_a_broken_stream_adds_to_it() {
    let mut breaker = breaker();
    for _ in 0..9 {
        let permit = breaker.acquire(at(0)).expect("closed");
        assert_eq!(breaker.release(at(0), permit, Verdict::Success), None);
        assert_eq!(breaker.late_failure(at(1), permit), None);
    }
    assert!(breaker.has_run());
    let permit = breaker.acquire(at(1)).expect("closed");
    assert_eq!(breaker.release(at(1), permit, Verdict::Success), None);
    let opened = Transition::Opened {
        cause: Cause::Consecutive,
        until: at(OPEN_MS + 1),
    };
    assert_eq!(breaker.late_failure(at(1), permit), Some(opened));
}

// [BREAKER-6]
#[test]
fn a_probe_that_closed_it_and_then_breaks_is_the_first_failure_of_the_new_era() {
    let mut breaker = breaker();
    open(&mut breaker, at(0));
    let probes: Vec<_> = (0..3).filter_map(|_| breaker.acquire(at(OPEN_MS))).collect();
    for probe in &probes {
        let _transition = breaker.release(at(OPEN_MS), *probe, Verdict::Success);
    }
    assert_eq!(breaker.late_failure(at(OPEN_MS), probes[0]), None);
    assert_eq!(breaker.snapshot(at(OPEN_MS)).consecutive_failures, 1);
    breaker.clean_end(probes[1]);
    assert_eq!(breaker.snapshot(at(OPEN_MS)).consecutive_failures, 0);
}

// [BREAKER-7]
#[test]
fn other_settings_apply_at_once_to_what_was_learned() {
    let mut breaker = breaker();
    for _ in 0..4 {
        assert_eq!(one(&mut breaker, at(0), Verdict::Failure), None);
    }
    let stricter = Settings {
        consecutive_failures: 3,
        ..Settings::default()
    };
    breaker.set_params(Params::new(stricter).expect("in bounds"));
    assert!(one(&mut breaker, at(1), Verdict::Failure).is_some());
}
