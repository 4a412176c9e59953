//! Parking and resuming.

use super::*;

// [AIMD-25]
#[test]
fn resuming_keeps_the_share_and_the_last_adjustment_and_drops_the_samples() {
    let mut rig = Rig::new();
    rig.lower();
    rig.samples(10, Outcome::Healthy);
    rig.share.park();
    assert!(rig.snapshot().parked);
    rig.pass(DWELL / 2);
    rig.share.resume();
    let resumed = rig.snapshot();
    assert_close(resumed.share, 0.8);
    assert_eq!(resumed.since_adjustment, Some(DWELL / 2));
    assert_eq!(
        (resumed.window_samples, resumed.generation, resumed.parked),
        (0, 2, false)
    );
}

// [AIMD-25]
#[test]
fn time_spent_parked_counts_for_idle_recovery() {
    let mut rig = Rig::new();
    rig.lower();
    rig.share.park();
    rig.pass(3 * PERIOD);
    assert_close(rig.snapshot().share, 0.9);
    rig.share.resume();
    let (_, change) = rig.share.begin(rig.now);
    assert_close(change.expect("two steps are due").to, 0.9);
}

// [AIMD-26]
#[test]
fn outcomes_that_come_while_parked_or_from_before_change_nothing() {
    let mut rig = Rig::new();
    let before: Vec<_> = (0..40).map(|_| rig.share.attempt()).collect();
    rig.share.park();
    for generation in &before[..20] {
        assert_eq!(
            rig.share.on_outcome(rig.now, *generation, Outcome::Breach),
            (Counted::Stale, None)
        );
    }
    rig.share.resume();
    for generation in &before[20..] {
        assert_eq!(
            rig.share.on_outcome(rig.now, *generation, Outcome::Breach),
            (Counted::Stale, None)
        );
    }
    let snapshot = rig.snapshot();
    assert_close(snapshot.share, 1.0);
    assert_eq!((snapshot.window_samples, snapshot.in_flight), (0, 0));
}

#[test]
fn resuming_one_that_is_not_parked_changes_nothing() {
    let mut rig = Rig::new();
    rig.lower();
    rig.samples(10, Outcome::Healthy);
    let before = rig.snapshot();
    rig.share.resume();
    assert_eq!(rig.snapshot(), before);
}
