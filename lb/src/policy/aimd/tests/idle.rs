//! Idle recovery.

use super::*;

/// A controller at 0.64, its second decrease just now.
fn lowered_twice(settings: Settings) -> Rig {
    let mut rig = Rig::with(settings);
    rig.lower();
    rig.lower();
    assert_close(rig.snapshot().share, 0.64);
    rig
}

/// The share that a request finds after `span`.
fn share_after(rig: &mut Rig, span: Duration) -> f64 {
    rig.pass(span);
    let (_, change) = rig.share.begin(rig.now);
    assert!(change.is_none_or(|change| change.direction == Direction::Idle && change.breach_rate.is_none()));
    rig.snapshot().share
}

// [AIMD-21]
#[test]
fn each_whole_period_without_enough_traffic_is_a_step_up() {
    // The 20 breaches that lowered it lie in the span for a period, so the count begins when they have left it.
    let mut rig = lowered_twice(Settings::default());
    assert_close(share_after(&mut rig, almost(2 * PERIOD)), 0.64);
    assert_close(share_after(&mut rig, Duration::from_nanos(1)), 0.69);
    assert_close(share_after(&mut rig, PERIOD), 0.74);
}

// [AIMD-21]
#[test]
fn with_too_few_samples_in_the_span_from_the_start_the_adjustment_is_counted_from() {
    // 2 samples lie together only for an instant: 200 s apart in a span of 100 s, they never do.
    let period = Duration::from_secs(100);
    let settings = Settings {
        min_samples: 2,
        idle_recovery: Some(period),
        ..Settings::default()
    };
    let mut rig = Rig::with(settings);
    rig.sample(Outcome::Breach);
    rig.pass(2 * period);
    assert!(rig.sample(Outcome::Breach).is_some());
    assert_close(share_after(&mut rig, almost(period)), 0.8);
    assert_close(share_after(&mut rig, Duration::from_nanos(1)), 0.85);
}

// [AIMD-22]
#[test]
fn all_steps_that_are_due_are_taken_at_once_and_the_phase_is_kept() {
    let mut rig = lowered_twice(Settings::default());
    rig.pass(PERIOD);
    assert_close(share_after(&mut rig, 3 * PERIOD + PERIOD / 2), 0.79);
    assert_close(share_after(&mut rig, almost(PERIOD / 2)), 0.79);
    assert_close(share_after(&mut rig, Duration::from_nanos(1)), 0.84);
}

// [AIMD-22]
#[test]
fn steps_stop_at_1() {
    let mut rig = lowered_twice(Settings::default());
    assert_eq!(share_after(&mut rig, 10_000 * PERIOD).to_bits(), 1f64.to_bits());
    rig.pass(10_000 * PERIOD);
    assert_eq!(rig.share.begin(rig.now), (Start::Preferred, None));
}

// [AIMD-22]
#[test]
fn a_step_keeps_window_and_generation_and_lets_the_wait_for_a_rise_begin_anew() {
    let period = Duration::from_secs(20);
    let mut rig = lowered_twice(Settings {
        idle_recovery: Some(period),
        ..Settings::default()
    });
    rig.samples(20, Outcome::Healthy);
    assert_close(share_after(&mut rig, 2 * period), 0.69);
    let stepped = rig.snapshot();
    assert_eq!((stepped.window_samples, stepped.generation), (20, 2));
    // 40 s of low rates lie behind it, more than a dwell, but the step came in between.
    assert_eq!(rig.sample(Outcome::Healthy), None);
    rig.pass(DWELL);
    assert_eq!(
        rig.sample(Outcome::Healthy).map(|change| change.direction),
        Some(Direction::Up)
    );
}

// [AIMD-22]
#[test]
fn a_step_is_no_adjustment_so_a_decrease_need_not_wait_for_it() {
    let mut rig = lowered_twice(Settings::default());
    share_after(&mut rig, 2 * PERIOD);
    assert_eq!(
        rig.samples(20, Outcome::Breach).map(|change| change.direction),
        Some(Direction::Down)
    );
}

// [AIMD-23]
#[test]
fn while_enough_samples_lie_in_the_span_there_is_no_step() {
    let mut rig = lowered_twice(Settings::default());
    // One in the band every 15 s: 20 of them in each span of 300 s.
    for n in 0..400 {
        rig.pass(Duration::from_secs(15));
        rig.sample(if n % 16 == 0 {
            Outcome::Breach
        } else {
            Outcome::Healthy
        });
        assert_eq!(rig.share.begin(rig.now).1, None, "sample {n}");
    }
}

// [AIMD-23]
#[test]
fn old_breaches_do_not_hold_a_quiet_pool_at_the_floor() {
    let mut rig = Rig::new();
    for _ in 0..14 {
        rig.lower();
    }
    rig.pass(DWELL);
    rig.samples(100, Outcome::Breach);
    assert_close(rig.snapshot().share, 0.05);
    // One healthy answer a minute is far from enough to judge by, and the window is full of breaches: read as the
    // window's content alone, they would rule for an hour and a half.
    for _ in 0..20 {
        rig.pass(Duration::from_mins(1));
        share_after(&mut rig, Duration::ZERO);
        rig.sample(Outcome::Healthy);
    }
    // Up to 0.10 after two periods, whereupon the old breaches have their last word (0.08), then a step a period.
    assert_close(rig.snapshot().share, 0.18);
}

// [AIMD-21]
#[test]
fn unknown_outcomes_are_no_traffic_to_judge() {
    let mut rig = lowered_twice(Settings::default());
    for _ in 0..600 {
        rig.pass(Duration::from_secs(1));
        rig.sample(Outcome::Unknown);
    }
    assert_close(share_after(&mut rig, Duration::ZERO), 0.69);
}

// [AIMD-21]
#[test]
fn turned_off_or_at_1_there_are_no_steps() {
    let mut off = lowered_twice(Settings {
        idle_recovery: None,
        ..Settings::default()
    });
    assert_close(share_after(&mut off, 1_000 * PERIOD), 0.64);
    let mut full = Rig::new();
    full.pass(1_000 * PERIOD);
    assert_eq!(full.share.begin(full.now).1, None);
}

// [AIMD-24]
#[test]
fn a_reading_shows_due_steps_without_taking_them() {
    let mut rig = lowered_twice(Settings::default());
    rig.pass(4 * PERIOD);
    assert_close(rig.snapshot().share, 0.79);
    assert_close(rig.snapshot().share, 0.79);
    let (_, change) = rig.share.begin(rig.now);
    let change = change.expect("the steps were still due");
    assert_close(change.from, 0.64);
    assert_close(change.to, 0.79);
}
