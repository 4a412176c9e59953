use std::time::Duration;

use proptest::prelude::*;

use super::{Limiter, Params, Sample, Settings};
use crate::policy::time::Instant;

fn at(millis: u64) -> Instant {
    Instant::default() + Duration::from_millis(millis)
}

fn limiter(edit: impl FnOnce(&mut Settings)) -> Limiter {
    let mut settings = Settings::default();
    edit(&mut settings);
    Limiter::new(Params::new(settings).expect("within bounds"), at(0))
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() < 1e-9
}

// [LIMITER-3]
#[test]
fn too_many_failures_lower_it_step_by_step_and_not_below_its_least() {
    let mut limiter = limiter(|s| s.min_factor = 0.5);
    for millis in (100..=1_100).step_by(100) {
        limiter.on_sample(at(millis), Sample::Failed);
        // e^-0.105… is where failures alone come to a tenth.
        assert!(
            close(limiter.factor(at(millis)), if millis < 1_100 { 1.0 } else { 0.8 }),
            "at {millis}"
        );
    }
    limiter.on_sample(at(1_200), Sample::Failed);
    assert!(close(limiter.factor(at(1_200)), 0.8), "once a second at most");
    for millis in (2_100..10_000).step_by(1_000) {
        limiter.on_sample(at(millis), Sample::Failed);
    }
    assert!(close(limiter.factor(at(10_000)), 0.5));
}

// [LIMITER-3]
#[test]
fn a_late_commit_lowers_it_where_there_is_a_bound_and_a_timely_one_lets_it_rise() {
    let late = Sample::Committed(Duration::from_secs(20));
    let mut unbounded = limiter(|_| {});
    unbounded.on_sample(at(1_000), late);
    assert!(close(unbounded.factor(at(1_000)), 1.0));
    let mut limiter = limiter(|s| s.max_latency = Some(Duration::from_secs(15)));
    limiter.on_sample(at(1_000), late);
    assert!(close(limiter.factor(at(1_000)), 0.8));
    assert!(
        close(limiter.factor(at(60_000)), 0.8),
        "no time alone mends what was seen"
    );
    // Long after, the next counts alone, and from then on the factor rises.
    limiter.on_sample(at(600_000), Sample::Committed(Duration::from_secs(1)));
    assert!(close(limiter.factor(at(600_000)), 0.8));
    assert!(close(limiter.factor(at(605_000)), 0.9));
    assert!(close(limiter.factor(at(900_000)), 1.0));
}

// [LIMITER-4]
#[test]
fn a_provider_is_taken_at_its_word_about_when_to_come_back() {
    let mut limiter = limiter(|s| s.max_retry_after = Some(Duration::from_mins(5)));
    limiter.on_retry_after(at(1_000), Duration::from_secs(30));
    limiter.on_sample(at(2_000), Sample::Committed(Duration::from_millis(1)));
    assert!(close(limiter.factor(at(30_999)), 0.1));
    assert!(close(limiter.factor(at(31_000)), 0.1));
    assert!(close(limiter.factor(at(36_000)), 0.2), "from there it rises");
    limiter.on_retry_after(at(40_000), Duration::from_mins(150));
    assert_eq!(
        limiter.snapshot(at(40_000)).asked_until,
        Some(at(340_000)),
        "capped"
    );
    // A shorter wish does not end a longer one.
    limiter.on_retry_after(at(41_000), Duration::from_secs(1));
    assert!(close(limiter.factor(at(339_999)), 0.1));
}

// [LIMITER-4]
#[test]
fn the_word_does_not_count_where_it_is_not_to_be_heeded_nor_where_it_is_now() {
    let mut deaf = limiter(|s| s.honor_retry_after = false);
    deaf.on_retry_after(at(0), Duration::from_secs(30));
    assert!(close(deaf.factor(at(1)), 1.0));
    let mut limiter = limiter(|s| s.max_retry_after = None);
    limiter.on_retry_after(at(0), Duration::ZERO);
    assert!(close(limiter.factor(at(1)), 1.0));
    limiter.on_retry_after(at(0), Duration::from_mins(150));
    assert!(close(limiter.factor(at(8_999_999)), 0.1));
}

// [LIMITER-2]
#[test]
fn other_settings_keep_what_was_learned() {
    let mut limiter = limiter(|_| {});
    limiter.on_retry_after(at(0), Duration::from_secs(10));
    let settings = Settings {
        min_factor: 0.3,
        recover_per_second: 0.1,
        ..Settings::default()
    };
    limiter.set_params(Params::new(settings).expect("within bounds"), at(1_000));
    assert!(close(limiter.factor(at(9_999)), 0.3));
    assert!(close(limiter.factor(at(11_000)), 0.4));
}

#[test]
fn the_defaults_are_the_documented_ones_and_what_is_out_of_bounds_is_refused_by_name() {
    type Edit = fn(&mut Settings);
    assert_eq!(Params::new(Settings::default()), Ok(Params::default()));
    let cases: [(Edit, &str); 9] = [
        (|s| s.tau = Duration::from_millis(99), "tau_ms"),
        (|s| s.tau = Duration::from_millis(3_600_001), "tau_ms"),
        (|s| s.max_error_rate = 0.0, "max_error_rate"),
        (|s| s.max_error_rate = 1.1, "max_error_rate"),
        (|s| s.min_factor = 0.0, "min_factor"),
        (|s| s.min_factor = f64::NAN, "min_factor"),
        (|s| s.decrease_factor = 1.0, "decrease_factor"),
        (|s| s.decrease_factor = 0.0, "decrease_factor"),
        (|s| s.recover_per_second = 0.0, "recover_per_second"),
    ];
    for (edit, field) in cases {
        let mut settings = Settings::default();
        edit(&mut settings);
        let refused = Params::new(settings).expect_err("out of bounds");
        assert_eq!(refused.iter().map(|out| out.field).collect::<Vec<_>>(), [field]);
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Commit(u64),
    Fail,
    Asked(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..4_000u64).prop_map(Event::Commit),
        3 => Just(Event::Fail),
        1 => (0..20u64).prop_map(Event::Asked),
    ]
}

proptest! {
    // [LIMITER-3] [LIMITER-4]
    #[test]
    fn it_is_what_a_clock_that_ticks_every_ten_milliseconds_makes_of_it(
        events in prop::collection::vec((1..80u64, event()), 1..60),
    ) {
        let settings = Settings {
            max_latency: Some(Duration::from_secs(2)),
            recover_per_second: 0.05,
            ..Settings::default()
        };
        let mut limiter = Limiter::new(Params::new(settings).expect("within bounds"), at(0));
        // The plain model: times in ticks of 10 ms, the factor moved tick by tick.
        let (mut factor, mut until, mut decreased) = (1.0, 0u64, None::<u64>);
        let (mut errors, mut latency, mut updated) = (0.0f64, None::<f64>, 0u64);
        let mut tick = 0u64;
        for (pass, event) in events {
            for _ in 0..pass {
                let in_trouble = errors > 0.1 || latency.is_some_and(|latency| latency > 2.0);
                if tick >= until && !in_trouble {
                    factor = f64::min(factor + 0.05 * 0.01, 1.0);
                }
                tick += 1;
            }
            let now = at(tick * 10);
            let shown = if tick < until { 0.1 } else { factor };
            prop_assert!((limiter.factor(now) - shown).abs() < 1e-6, "{} and not {}", limiter.factor(now), shown);
            let failed = match event {
                Event::Asked(seconds) => {
                    limiter.on_retry_after(now, Duration::from_secs(seconds));
                    if seconds > 0 {
                        until = until.max(tick + seconds * 100);
                        factor = 0.1;
                    }
                    continue;
                }
                Event::Fail => {
                    limiter.on_sample(now, Sample::Failed);
                    1.0
                }
                Event::Commit(millis) => {
                    limiter.on_sample(now, Sample::Committed(Duration::from_millis(millis)));
                    0.0
                }
            };
            let gone = Duration::from_millis((tick - updated) * 10).as_secs_f64();
            updated = tick;
            let left = (-gone / 10.0).exp();
            errors = errors * left + failed * (1.0 - left);
            if let Event::Commit(millis) = event {
                let value = Duration::from_millis(millis).as_secs_f64();
                latency = Some(latency.map_or(value, |before| before * left + value * (1.0 - left)));
            }
            let in_trouble = errors > 0.1 || latency.is_some_and(|latency| latency > 2.0);
            if in_trouble && tick >= until && decreased.is_none_or(|before| tick - before >= 100) {
                factor = f64::max(factor * 0.8, 0.1);
                decreased = Some(tick);
            }
        }
    }
}
