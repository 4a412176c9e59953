//! Holding, rising, dwelling, and what becomes of attempts that began before a change.

use super::*;

// [AIMD-17]
#[test]
fn exactly_the_target_holds() {
    let mut rig = Rig::new();
    rig.samples(90, Outcome::Healthy);
    assert_eq!(rig.samples(10, Outcome::Breach), None);
    assert_eq!(rig.snapshot().window_breach_rate, Some(0.1));
}

// [AIMD-17]
#[test]
fn a_rate_within_the_band_holds_and_the_wait_for_a_rise_begins_anew() {
    let mut rig = Rig::new();
    rig.lower();
    rig.samples(97, Outcome::Healthy);
    rig.pass(DWELL);
    // 4 of 101, of which the window drops the first: in the band, just as a rise would be due.
    assert_eq!(
        rig.samples(4, Outcome::Breach).map(|change| change.direction),
        Some(Direction::Up)
    );
    rig.pass(DWELL);
    assert_eq!(
        rig.samples(1, Outcome::Healthy),
        None,
        "4 of 100 is within the band"
    );
    // The breaches leave the window; the rate is low again, but not yet for a dwell.
    assert_eq!(rig.samples(100, Outcome::Healthy), None);
    rig.pass(almost(DWELL));
    assert_eq!(rig.sample(Outcome::Healthy), None);
    rig.pass(Duration::from_nanos(1));
    assert!(rig.sample(Outcome::Healthy).is_some());
}

// [AIMD-18]
#[test]
fn a_low_rate_for_a_dwell_raises_the_share_by_a_step_and_keeps_the_window() {
    let mut rig = Rig::new();
    rig.lower();
    rig.pass(DWELL);
    rig.samples(20, Outcome::Healthy);
    rig.pass(DWELL);
    let change = rig.sample(Outcome::Healthy).expect("healthy for a dwell");
    assert_eq!((change.direction, change.breach_rate), (Direction::Up, Some(0.0)));
    assert_close(change.to, 0.85);
    let raised = rig.snapshot();
    assert_eq!((raised.window_samples, raised.generation), (21, 1));
}

// [AIMD-18]
#[test]
fn exactly_the_recovery_rate_raises() {
    let mut rig = Rig::new();
    rig.lower();
    rig.samples(97, Outcome::Healthy);
    rig.samples(3, Outcome::Breach);
    assert_eq!(rig.snapshot().window_breach_rate, Some(0.03));
    rig.pass(DWELL);
    // A breach goes in and a healthy sample out, and the rate is above recovery: no rise. Without it: a rise.
    assert!(
        rig.share
            .clone()
            .on_outcome(rig.now, rig.share.generation, Outcome::Breach)
            .1
            .is_none()
    );
    assert!(rig.sample(Outcome::Healthy).is_some());
}

// [AIMD-18]
#[test]
fn a_rise_stops_at_1_and_there_is_none_above() {
    let mut rig = Rig::with(Settings {
        share_step: 0.15,
        ..Settings::default()
    });
    rig.lower();
    rig.samples(20, Outcome::Healthy);
    let rises: Vec<f64> = (0..4)
        .filter_map(|_| {
            rig.pass(DWELL);
            rig.sample(Outcome::Healthy).map(|change| change.to)
        })
        .collect();
    assert_eq!(rises.len(), 2);
    assert_close(rises[0], 0.95);
    assert_eq!(rises[1].to_bits(), 1f64.to_bits());
}

// [AIMD-18]
#[test]
fn steps_that_add_up_to_1_arrive_at_exactly_1() {
    let mut rig = Rig::with(Settings {
        share_floor: 0.1,
        share_decay: 0.001,
        share_step: 0.1,
        ..Settings::default()
    });
    rig.lower();
    assert_close(rig.snapshot().share, 0.1);
    rig.samples(20, Outcome::Healthy);
    for _ in 0..9 {
        rig.pass(DWELL);
        assert!(rig.sample(Outcome::Healthy).is_some());
    }
    assert_eq!(rig.snapshot().share.to_bits(), 1f64.to_bits());
}

// [AIMD-19]
#[test]
fn a_decrease_is_followed_by_a_dwell_without_another() {
    let mut rig = Rig::new();
    rig.lower();
    rig.pass(almost(DWELL));
    assert_eq!(rig.samples(20, Outcome::Breach), None);
    rig.pass(Duration::from_nanos(1));
    assert_eq!(rig.snapshot().since_adjustment, Some(DWELL));
    let change = rig.sample(Outcome::Breach).expect("settled");
    assert_close(change.to, 0.64);
}

// [AIMD-19]
#[test]
fn a_rise_is_followed_by_a_dwell_without_a_decrease() {
    let mut rig = Rig::new();
    rig.lower();
    rig.samples(20, Outcome::Healthy);
    rig.pass(DWELL);
    rig.sample(Outcome::Healthy).expect("healthy for a dwell");
    assert_eq!(rig.samples(100, Outcome::Breach), None);
    rig.pass(DWELL);
    assert_eq!(
        rig.sample(Outcome::Breach).map(|change| change.direction),
        Some(Direction::Down)
    );
}

// [AIMD-20]
#[test]
fn outcomes_of_attempts_begun_before_a_decrease_are_dropped() {
    let mut rig = Rig::new();
    let before = rig.share.attempt();
    rig.lower();
    for outcome in [Outcome::Healthy, Outcome::Breach, Outcome::Unknown] {
        assert_eq!(
            rig.share.on_outcome(rig.now, before, outcome),
            (Counted::Stale, None)
        );
    }
    assert_eq!(rig.snapshot().window_samples, 0);
    let after = rig.share.attempt();
    assert_eq!(
        rig.share.on_outcome(rig.now, after, Outcome::Healthy),
        (Counted::Healthy, None)
    );
    let breach = rig.share.attempt();
    assert_eq!(
        rig.share.on_outcome(rig.now, breach, Outcome::Breach),
        (Counted::Breach, None)
    );
}

// [AIMD-20]
#[test]
fn outcomes_of_attempts_begun_before_a_rise_still_count() {
    let mut rig = Rig::new();
    rig.lower();
    let before = rig.share.attempt();
    rig.samples(20, Outcome::Healthy);
    rig.pass(DWELL);
    rig.sample(Outcome::Healthy).expect("healthy for a dwell");
    assert_eq!(
        rig.share.on_outcome(rig.now, before, Outcome::Healthy).0,
        Counted::Healthy
    );
}
