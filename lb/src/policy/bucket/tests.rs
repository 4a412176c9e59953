use std::time::Duration;

use proptest::prelude::*;

use super::{Bucket, Params, Settings};
use crate::policy::time::Instant;

fn params(rate: f64, burst: u32) -> Params {
    let settings = Settings {
        requests_per_second: rate,
        burst,
    };
    Params::new(settings).expect("within bounds")
}

fn at(millis: u64) -> Instant {
    Instant::default() + Duration::from_millis(millis)
}

// [LIMITER-1]
#[test]
fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
    let mut bucket = Bucket::new(params(10.0, 3), at(0));
    for _ in 0..3 {
        assert!(bucket.take(at(0), 1.0));
    }
    assert!(!bucket.take(at(0), 1.0));
    assert_eq!(bucket.wait(at(0), 1.0), Duration::from_millis(100));
    assert!(!bucket.take(at(99), 1.0));
    assert!(bucket.take(at(100), 1.0));
    // Full again, and no fuller.
    for _ in 0..3 {
        assert!(bucket.take(at(60_000), 1.0));
    }
    assert!(!bucket.take(at(60_000), 1.0));
}

// [LIMITER-1]
#[test]
fn half_the_rate_is_twice_the_wait() {
    let mut bucket = Bucket::new(params(10.0, 1), at(0));
    assert!(bucket.take(at(0), 0.5));
    assert_eq!(bucket.wait(at(0), 0.5), Duration::from_millis(200));
    assert_eq!(bucket.wait(at(100), 0.5), Duration::from_millis(100));
}

// [LIMITER-2]
#[test]
fn other_settings_keep_what_is_in_it() {
    let mut bucket = Bucket::new(params(1.0, 10), at(0));
    for _ in 0..10 {
        assert!(bucket.take(at(0), 1.0));
    }
    bucket.set_params(params(100.0, 50), at(2_000), 1.0);
    assert!(
        (bucket.level(at(2_000), 1.0) - 2.0).abs() < 1e-9,
        "two came in at the old rate"
    );
    bucket.set_params(params(100.0, 1), at(2_000), 1.0);
    assert!((bucket.level(at(2_000), 1.0) - 1.0).abs() < 1e-9);
}

// [LIMITER-1]
#[test]
fn a_token_that_was_not_used_goes_back() {
    let mut bucket = Bucket::new(params(1.0, 1), at(0));
    assert!(bucket.take(at(0), 1.0));
    bucket.give_back();
    bucket.give_back();
    assert!(bucket.take(at(0), 1.0));
    assert!(!bucket.take(at(0), 1.0));
}

#[test]
fn what_is_out_of_bounds_is_refused_by_name() {
    let refused = |requests_per_second: f64, burst: u32| {
        let settings = Settings {
            requests_per_second,
            burst,
        };
        Params::new(settings)
            .err()
            .unwrap_or_default()
            .iter()
            .map(|out| out.field)
            .collect::<Vec<_>>()
    };
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(refused(rate, 1), ["requests_per_second"]);
    }
    assert_eq!(refused(1.0, 0), ["burst"]);
    assert_eq!(refused(0.001, 1), [""; 0]);
}

proptest! {
    // [LIMITER-1]
    #[test]
    fn it_lets_through_what_a_count_of_millionths_lets_through(
        per_second in 1..50u64,
        burst in 1..8u32,
        passes in prop::collection::vec(0..700u64, 1..80),
    ) {
        // The plain model counts in thousandths of a token, which whole milliseconds times the rate always are.
        let rate = f64::from(u32::try_from(per_second).expect("small"));
        let mut bucket = Bucket::new(params(rate, burst), at(0));
        let (mut millis, mut thousandths) = (0, u64::from(burst) * 1000);
        for pass in passes {
            millis += pass;
            thousandths = (thousandths + pass * per_second).min(u64::from(burst) * 1000);
            let expected = thousandths >= 1000;
            prop_assert_eq!(bucket.wait(at(millis), 1.0).is_zero(), expected);
            prop_assert_eq!(bucket.take(at(millis), 1.0), expected);
            if expected {
                thousandths -= 1000;
            }
        }
    }

    // [LIMITER-1]
    #[test]
    fn after_the_wait_there_is_a_token(rate in 0.01..1000.0, factor in 0.01..=1.0, taken in 1..5u32) {
        let mut bucket = Bucket::new(params(rate, 5), at(0));
        for _ in 0..5 {
            prop_assert!(bucket.take(at(0), factor));
        }
        let mut now = at(0);
        for _ in 0..taken {
            now = now + bucket.wait(now, factor) + Duration::from_nanos(1);
            prop_assert!(bucket.take(now, factor));
        }
    }
}
