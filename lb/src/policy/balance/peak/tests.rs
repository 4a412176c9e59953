use std::time::Duration;

use proptest::prelude::*;

use super::Peak;
use crate::policy::draw::Draw;
use crate::policy::select::{Candidate, cheaper_of_two};
use crate::policy::time::Instant;

const IDLE: Candidate = Candidate {
    in_flight: 0,
    weight: 1,
};

fn at(millis: u64) -> Instant {
    Instant::default() + Duration::from_millis(millis)
}

fn of(millis: u64, latency: u64) -> Peak {
    let mut peak = Peak::default();
    peak.on_latency(at(millis), Duration::from_millis(latency));
    peak
}

// [BALANCE-4]
#[test]
fn a_peak_counts_at_once_and_fades() {
    let mut peak = of(1_000, 100);
    peak.on_latency(at(1_010), Duration::from_secs(2));
    assert!((peak.cost(at(1_010), IDLE) - 2.0).abs() < 1e-9);
    let later = peak.cost(at(11_010), IDLE);
    assert!((later - 2.0 / std::f64::consts::E).abs() < 1e-9, "{later}");
    peak.on_latency(at(11_010), Duration::from_millis(100));
    let falling = peak.cost(at(11_010), IDLE);
    assert!(falling < later + 0.1 && falling > 0.1, "{falling}");
}

// [BALANCE-4]
#[test]
fn what_fails_fast_attracts_nobody_until_the_failure_has_faded() {
    let slow = of(0, 5_000);
    let mut failing = of(0, 1);
    failing.on_failure(at(10));
    let peaks = [slow, failing];
    let chosen = |now: Instant, draw: f64| {
        let idle = [Some(IDLE), Some(IDLE)];
        cheaper_of_two(idle, Draw::new(draw), |place, it| peaks[place].cost(now, it))
    };
    for draw in [0.0, 0.3, 0.7, 0.99] {
        assert_eq!(chosen(at(20), draw), Some(0));
    }
    // Both have been left alone: neither is thought of as it was, but the failure still counts for more.
    assert_eq!(chosen(at(20_000), 0.7), Some(0));
    let cost = failing.cost(at(120_000), IDLE);
    assert!(cost < 0.001, "{cost}");
}

// [BALANCE-4]
#[test]
fn load_weighs_on_the_cost_and_weight_lightens_it() {
    let peak = of(0, 100);
    let busy = |in_flight, weight| peak.cost(at(0), Candidate { in_flight, weight });
    assert!((busy(3, 1) - 0.4).abs() < 1e-9);
    assert!((busy(3, 4) - 0.1).abs() < 1e-9);
    assert!(
        Peak::default().cost(
            at(0),
            Candidate {
                in_flight: 1,
                weight: 1
            }
        ) > Peak::default().cost(at(0), IDLE)
    );
}

proptest! {
    // [BALANCE-4]
    #[test]
    fn the_cost_is_that_of_the_whole_history_read_anew(
        events in prop::collection::vec((0..5_000u64, prop::option::of(0..20_000u64)), 1..40),
        after in 0..30_000u64,
    ) {
        let tau = 10.0;
        let mut peak = Peak::default();
        let mut now = 0;
        // Seconds; (time, value) of the latest average and of the latest failure.
        let (mut average, mut failure) = ((0.0, 0.0), None);
        for (pass, latency) in events {
            now += pass;
            let time = Duration::from_millis(now).as_secs_f64();
            match latency {
                None => {
                    peak.on_failure(at(now));
                    failure = Some(time);
                }
                Some(latency) => {
                    peak.on_latency(at(now), Duration::from_millis(latency));
                    let latency = Duration::from_millis(latency).as_secs_f64();
                    let (then, value): (f64, f64) = average;
                    let left = (-(time - then) / tau).exp();
                    average = (time, latency.max(value * left + latency * (1.0 - left)));
                }
            }
        }
        now += after;
        let time = Duration::from_millis(now).as_secs_f64();
        let faded = |(then, value): (f64, f64)| value * (-(time - then) / tau).exp();
        let expected = (faded(average) + failure.map_or(0.0, |then| faded((then, 30.0)))).max(1e-6);
        let cost = peak.cost(at(now), IDLE);
        prop_assert!((cost - expected).abs() <= 1e-9 * expected.max(1.0), "{cost} and not {expected}");
    }
}
