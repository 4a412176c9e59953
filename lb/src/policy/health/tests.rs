//! Each rule of passive health, by name. [`model`] holds all of them together against a plain model.

use std::time::Duration;

use super::*;

mod active;
mod half_open;
mod kernel;
mod model;

const EJECTION: Duration = Duration::from_secs(30);

/// An endpoint and the clock it is driven by; jitter is 0 unless a test says otherwise.
struct Rig {
    health: Health,
    now: Instant,
}

impl Rig {
    fn new() -> Self {
        Self::with(Settings::default())
    }

    fn with(settings: Settings) -> Self {
        let params = Params::new(settings).expect("within bounds");
        Self {
            health: Health::new(params),
            now: Instant::from_nanos(1_000_000_000),
        }
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
    }

    fn acquire(&mut self) -> Permit {
        self.health.acquire(self.now).expect("it can be chosen")
    }

    fn release(&mut self, permit: Permit, verdict: Verdict) -> Option<Transition> {
        self.health.release(self.now, permit, verdict, at_once())
    }

    /// One request and its verdict.
    fn request(&mut self, verdict: Verdict) -> Option<Transition> {
        let permit = self.acquire();
        self.release(permit, verdict)
    }

    /// As many failures as it takes.
    fn eject(&mut self) -> Transition {
        (0..5)
            .find_map(|_| self.request(Verdict::Failure))
            .expect("five failures in a row eject")
    }

    fn standing(&self) -> Standing {
        self.health.standing(self.now)
    }
}

fn at_once() -> Ejection {
    Ejection {
        allowed: true,
        jitter: Draw::new(0.0),
    }
}

// [HEALTH-2]
#[test]
fn a_run_of_failures_ejects() {
    let mut rig = Rig::new();
    assert!((0..4).all(|_| rig.request(Verdict::Failure).is_none()));
    assert_eq!(rig.standing(), Standing::Healthy);
    let until = rig.now + EJECTION;
    let expected = Transition {
        from: State::Healthy,
        to: State::Ejected,
        cause: Some(Cause::Consecutive),
        until: Some(until),
    };
    assert_eq!(rig.request(Verdict::Failure), Some(expected));
    assert_eq!(rig.standing(), Standing::Ejected { until });
    assert_eq!(rig.health.acquire(rig.now), None);
}

// [HEALTH-9]
#[test]
fn a_success_does_not_end_a_run_but_a_clean_end_does() {
    let mut rig = Rig::new();
    for _ in 0..4 {
        rig.request(Verdict::Failure);
    }
    let permit = rig.acquire();
    rig.release(permit, Verdict::Success);
    assert_eq!(rig.health.snapshot(rig.now).consecutive_failures, 4);
    rig.health.clean_end(permit);
    assert_eq!(rig.health.snapshot(rig.now).consecutive_failures, 0);
    assert!((0..4).all(|_| rig.request(Verdict::Failure).is_none()));
}

// [HEALTH-10]
#[test]
fn an_endpoint_that_cuts_every_stream_after_its_first_token_is_ejected() {
    let mut rig = Rig::new();
    let ejected = (0..5).find_map(|_| {
        let permit = rig.acquire();
        assert_eq!(rig.release(permit, Verdict::Success), None);
        rig.health.late_failure(rig.now, permit, at_once())
    });
    assert_eq!(
        ejected.and_then(|transition| transition.cause),
        Some(Cause::Consecutive)
    );
}

// [HEALTH-3]
#[test]
fn a_ratio_over_enough_results_ejects_where_no_run_forms() {
    let mut rig = Rig::new();
    let mut one_of_two = || {
        let permit = rig.acquire();
        rig.release(permit, Verdict::Success);
        rig.health.clean_end(permit);
        rig.request(Verdict::Failure)
    };
    assert!((0..9).all(|_| one_of_two().is_none()));
    assert_eq!(
        one_of_two().and_then(|transition| transition.cause),
        Some(Cause::Ratio)
    );
}

// [HEALTH-3]
#[test]
fn results_older_than_the_window_do_not_count_in_the_ratio() {
    let mut rig = Rig::with(Settings {
        consecutive_failures: 100,
        ..Settings::default()
    });
    for _ in 0..19 {
        rig.request(Verdict::Failure);
    }
    rig.pass(Duration::from_mins(1));
    assert_eq!(rig.request(Verdict::Failure), None);
    let snapshot = rig.health.snapshot(rig.now);
    assert_eq!((snapshot.window_volume, snapshot.window_failures), (1, 1));
}

// [HEALTH-3]
#[test]
fn neutral_verdicts_are_no_results() {
    let mut rig = Rig::new();
    for _ in 0..100 {
        assert_eq!(rig.request(Verdict::Neutral), None);
    }
    assert_eq!(rig.health.snapshot(rig.now).window_volume, 0);
}

// [HEALTH-4]
#[test]
fn ejections_in_a_row_last_longer_up_to_the_longest() {
    let mut rig = Rig::new();
    rig.eject();
    let mut expected = 30;
    for _ in 0..20 {
        let Standing::Ejected { until } = rig.standing() else {
            panic!("it is ejected")
        };
        assert_eq!(until.since(rig.now), Duration::from_secs(expected));
        rig.now = until;
        rig.request(Verdict::Failure)
            .expect("a failed probe ejects again");
        expected = 300.min(expected + 30);
    }
    assert_eq!(rig.health.snapshot(rig.now).ejections, 21);
}

// [HEALTH-4]
#[test]
fn jitter_lengthens_an_ejection_by_at_most_a_tenth() {
    for (draw, milliseconds) in [(0.0, 30_000), (0.5, 31_500), (1.0, 33_000)] {
        let mut rig = Rig::with(Settings {
            consecutive_failures: 1,
            ..Settings::default()
        });
        let permit = rig.acquire();
        let ejection = Ejection {
            allowed: true,
            jitter: Draw::new(draw),
        };
        let until = rig
            .health
            .release(rig.now, permit, Verdict::Failure, ejection)
            .and_then(|it| it.until);
        let span = until.expect("one failure ejects here").since(rig.now);
        assert!(
            span.abs_diff(Duration::from_millis(milliseconds)) < Duration::from_micros(1),
            "{span:?} at {draw}"
        );
    }
}

// [HEALTH-10]
#[test]
fn the_stream_of_the_probe_that_readmitted_still_counts_when_it_breaks() {
    let mut rig = Rig::with(Settings {
        consecutive_failures: 1,
        ..Settings::default()
    });
    rig.request(Verdict::Failure).expect("one failure ejects here");
    rig.pass(EJECTION);
    let probe = rig.acquire();
    rig.release(probe, Verdict::Success)
        .expect("a successful probe readmits");
    let cut = rig.health.late_failure(rig.now, probe, at_once());
    assert_eq!(cut.map(|transition| transition.to), Some(State::Ejected));
}

// [HEALTH-11]
#[test]
fn an_endpoint_that_cannot_be_spared_stays_in_until_it_can() {
    let mut rig = Rig::new();
    for _ in 0..50 {
        let permit = rig.acquire();
        let kept = Ejection {
            allowed: false,
            jitter: Draw::new(0.0),
        };
        assert_eq!(rig.health.release(rig.now, permit, Verdict::Failure, kept), None);
    }
    assert_eq!(rig.standing(), Standing::Healthy);
    assert!(rig.request(Verdict::Failure).is_some());
}

// [HEALTH-11]
#[test]
fn the_bound_does_not_readmit_what_is_out_already() {
    let mut rig = Rig::new();
    rig.eject();
    rig.pass(EJECTION);
    let probe = rig.acquire();
    let kept = Ejection {
        allowed: false,
        jitter: Draw::new(0.0),
    };
    let transition = rig.health.release(rig.now, probe, Verdict::Failure, kept);
    assert_eq!(transition.and_then(|it| it.cause), Some(Cause::HalfOpenFailure));
}

#[test]
fn it_knows_what_it_was_set_to() {
    assert_eq!(Rig::new().health.params(), &Params::default());
}

// [RELOAD-14]
#[test]
fn other_settings_apply_to_what_was_learned() {
    let mut rig = Rig::with(Settings {
        half_open_probes: 3,
        ..Settings::default()
    });
    for _ in 0..3 {
        assert_eq!(rig.request(Verdict::Failure), None);
    }
    let settings = Settings {
        consecutive_failures: 4,
        half_open_probes: 3,
        ..Settings::default()
    };
    rig.health
        .set_params(Params::new(settings.clone()).expect("within bounds"));
    assert!(rig.request(Verdict::Failure).is_some(), "the fourth in a row");
    rig.pass(EJECTION);
    let probes = [rig.acquire(), rig.acquire()];
    let settings = Settings {
        half_open_probes: 1,
        ..settings
    };
    rig.health
        .set_params(Params::new(settings).expect("within bounds"));
    assert_eq!(rig.standing(), Standing::Probing, "both are still out");
    for probe in probes {
        assert_eq!(rig.release(probe, Verdict::Neutral), None);
    }
    assert_eq!(rig.standing(), Standing::HalfOpen);
}
