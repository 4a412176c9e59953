use super::*;
use crate::policy::OutOfBounds;

const LIMITS: Limits = Limits {
    consecutive_failures: 3,
    failure_ratio: 0.5,
    failure_min_volume: 4,
    window: Duration::from_secs(10),
};

fn at(seconds: u64) -> Instant {
    Instant::from_nanos(seconds * 1_000_000_000)
}

/// What there is too much of after each of these results; `x` is a failure.
fn after(results: &str) -> Vec<Option<Excess>> {
    let mut failures = Failures::new(LIMITS.window);
    let judged = results.chars().map(|result| {
        failures.record(at(1), result == 'x');
        failures.excess(at(1), &LIMITS)
    });
    judged.collect()
}

#[test]
fn a_run_counts_and_a_ratio_only_once_there_is_enough_to_judge_it_by() {
    assert_eq!(after("xxx"), [None, None, Some(Excess::Consecutive)]);
    // The success that makes the volume enough.
    assert_eq!(after("xx.."), [None, None, None, Some(Excess::Ratio)]);
    assert_eq!(after("....x"), [None; 5]);
}

#[test]
fn only_a_clean_end_ends_a_run_and_only_time_or_a_new_state_empties_the_window() {
    let mut failures = Failures::new(LIMITS.window);
    for _ in 0..2 {
        failures.record(at(1), true);
    }
    failures.clean_end();
    failures.record(at(1), true);
    assert_eq!((failures.run(), failures.counts(at(1)).failures), (1, 3));
    assert_eq!(failures.counts(at(20)).failures, 0);
    failures.clear();
    assert_eq!((failures.run(), failures.counts(at(1)).volume), (0, 0));
}

#[test]
fn each_limit_that_is_out_of_bounds_is_named() {
    let mut bounds = Bounds::default();
    Limits {
        consecutive_failures: 0,
        failure_ratio: 0.0,
        failure_min_volume: 0,
        window: Duration::from_millis(999),
    }
    .check(&mut bounds);
    let named: Vec<&str> = bounds
        .finish(())
        .unwrap_err()
        .iter()
        .map(|OutOfBounds { field, .. }| *field)
        .collect();
    assert_eq!(
        named,
        [
            "consecutive_failures",
            "failure_ratio",
            "failure_min_volume",
            "window_ms"
        ]
    );
}
