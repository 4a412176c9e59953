//! The closed loop over many seeds: the share finds the split that a provider can serve, where a breaker hunts.
//!
//! `LB_SIM_STEPS=n` makes each run at least that many requests long (11000). `-- --nocapture` shows a run as a table.

use std::sync::OnceLock;
use std::time::Duration;

use lb::policy::aimd::{Direction, Settings};

use lb_tests::sim::{Capacity, Plant, Record, Scenario, Strategy, run, table};

use super::seeds::{Failures, for_all, number, seeds};

/// Different providers; a seed's is the one of its remainder.
const PLANTS: u64 = 16;
const DWELL: Duration = Duration::from_secs(30);
/// The share begins at 1 and needs some dwells to come down to where it is to be judged.
const WARM_UP: Duration = Duration::from_mins(5);

fn scenario(seed: u64, strategy: Strategy) -> Scenario {
    let steps = number("LB_SIM_STEPS").and_then(|steps| u32::try_from(steps).ok());
    Scenario {
        seed,
        plant: Plant::numbered(seed % PLANTS),
        capacity: Capacity::constant(1.0),
        strategy,
        requests: steps.unwrap_or(0).max(11_000),
        warm_up: WARM_UP,
    }
}

/// The largest share at which a plant breaches at most at the target rate, found by fixing the share.
fn largest_sustainable_share(plant: u64) -> f64 {
    static SHARES: [OnceLock<f64>; 16] = [const { OnceLock::new() }; 16];
    let search = || {
        let breach_rate = |share| {
            let seed = 0xF1_0000 * PLANTS + plant;
            run(&Scenario {
                requests: 6_000,
                ..scenario(seed, Strategy::Fixed(share))
            })
            .breach_rate()
        };
        let target = Settings::default().breach_rate_target;
        (0..7)
            .fold((0.0, 1.0), |(low, high), _| {
                let middle = f64::midpoint(low, high);
                if breach_rate(middle) <= target {
                    (middle, high)
                } else {
                    (low, middle)
                }
            })
            .0
    };
    *SHARES[usize::try_from(plant).expect("few")].get_or_init(search)
}

fn decreases_per_ten_dwells(record: &Record) -> f64 {
    let is_decrease = |(at, change): &&(Duration, lb::policy::aimd::Change)| {
        *at >= WARM_UP && change.direction == Direction::Down
    };
    let count = u32::try_from(record.changes.iter().filter(is_decrease).count()).expect("few");
    f64::from(count) * 10.0 * DWELL.as_secs_f64() / record.end.saturating_sub(WARM_UP).as_secs_f64()
}

/// What clients and the bill saw of several runs.
#[derive(Default)]
struct Cost {
    first_tokens: Vec<Duration>,
    requests: u32,
    by_alternates: u32,
}

impl Cost {
    fn add(&mut self, record: Record) {
        self.first_tokens.extend(record.first_tokens);
        self.requests += record.requests[0];
        self.by_alternates += record.requests[1];
    }

    fn first_token_p99(&mut self) -> Duration {
        let at = self.first_tokens.len() * 99 / 100;
        *self.first_tokens.select_nth_unstable(at).1
    }

    fn alternate_spend(&self) -> f64 {
        f64::from(self.by_alternates) / f64::from(self.requests)
    }
}

// [AIMD-29]
#[test]
fn the_share_settles_near_what_the_provider_can_serve_and_beats_a_breaker() {
    let mut failures = Failures::default();
    let mut costs: Vec<[Cost; 2]> = (0..PLANTS).map(|_| <[Cost; 2]>::default()).collect();
    let seeds = seeds(256);
    let runs = for_all(&seeds, |seed| {
        let sustainable = largest_sustainable_share(seed % PLANTS);
        (
            sustainable,
            [Strategy::Share, Strategy::Breaker].map(|strategy| run(&scenario(seed, strategy))),
        )
    });
    for (seed, (sustainable, [share, breaker])) in runs {
        let mean = share.mean_share;
        failures.require((mean - sustainable).abs() <= 0.15, seed, || {
            format!("the share is {mean:.3} in the mean where {sustainable:.3} can be served")
        });
        let decreases = decreases_per_ten_dwells(&share);
        failures.require(decreases <= 4.0, seed, || {
            format!("{decreases:.2} decreases in ten dwells")
        });
        let swings = [share.swing(WARM_UP), breaker.swing(WARM_UP)];
        failures.require(swings[0] <= swings[1] / 2.0, seed, || {
            format!(
                "the share swings by {:.2}, the breaker by {:.2}",
                swings[0], swings[1]
            )
        });
        let costs = &mut costs[usize::try_from(seed % PLANTS).expect("few")];
        costs[0].add(share);
        costs[1].add(breaker);
    }
    // Costs are compared over all runs against a provider, since the 99th percentile of a single one rests on some
    // eighty requests; a handful of seeds says nothing about them.
    if seeds.len() as u64 >= 8 * PLANTS {
        for (plant, mut costs) in (0..).zip(costs) {
            let p99 = costs.each_mut().map(Cost::first_token_p99);
            let spend = costs.each_ref().map(Cost::alternate_spend);
            let no_worse = p99[0] <= p99[1] && spend[0] <= spend[1];
            failures.require(
                no_worse && (p99[0] < p99[1] || spend[0] < spend[1]),
                plant,
                || format!("share and breaker: first token p99 {p99:.2?}, alternates' part {spend:.3?}"),
            );
        }
    }
    failures.finish();
}

// [AIMD-29]
#[test]
fn the_same_seed_gives_the_same_trace_and_another_one_another() {
    let bits = |record: &Record| -> Vec<(Duration, u64, u32)> {
        record
            .series
            .iter()
            .map(|(at, share, in_flight)| (*at, share.to_bits(), *in_flight))
            .collect()
    };
    for (seed, [first, again, other]) in for_all(&seeds(8), |seed| {
        [seed, seed, seed + PLANTS].map(|seed| run(&scenario(seed, Strategy::Share)))
    }) {
        assert_eq!(bits(&first), bits(&again), "LB_SIM_SEED={seed}");
        assert_eq!(first, again, "LB_SIM_SEED={seed}");
        assert_ne!(bits(&first), bits(&other), "LB_SIM_SEED={seed}");
    }
}

// [AIMD-29]
#[test]
fn a_provider_with_room_to_spare_keeps_every_request() {
    let mut failures = Failures::default();
    for (seed, record) in for_all(&seeds(16), |seed| {
        run(&Scenario {
            capacity: Capacity::constant(8.0),
            ..scenario(seed, Strategy::Share)
        })
    }) {
        failures.require(record.changes.is_empty(), seed, || {
            format!("{:?}", record.changes)
        });
    }
    failures.finish();
}

/// How long a share takes from `at` back to 1, and how long it may take.
///
/// The breaches of before have to leave the window, at the rate that the share lets samples in; then it takes a
/// dwell of low rates and a dwell for each step, each of which waits for the next sample to be noticed.
fn recovery(record: &Record, plant: &Plant, at: Duration) -> (f64, Duration, Duration) {
    let settings = Settings::default();
    let mut from = 1.0;
    let mut back = record.end;
    for (when, change) in &record.changes {
        if *when < at {
            from = change.to;
        } else if change.to >= 1.0 {
            back = *when;
            break;
        }
    }
    let steps = ((1.0 - from) / settings.share_step).ceil();
    let forgetting = f64::from(settings.window_samples) / (from * plant.arrivals);
    let allowed = DWELL.mul_f64(1.05 * (steps + 2.0)) + Duration::from_secs_f64(1.5 * forgetting);
    (from, back.saturating_sub(at), allowed)
}

/// Runs with `before` of the provider there for a quarter of an hour, then four times all of it.
fn check_recovery(before: f64, starts_within: std::ops::RangeInclusive<f64>) {
    let change_at = Duration::from_mins(15);
    let mut failures = Failures::default();
    for (seed, (from, taken, allowed)) in for_all(&seeds(32), |seed| {
        let plant = Plant::numbered(seed % PLANTS);
        let capacity = Capacity {
            before,
            change_at,
            after: 4.0,
        };
        let record = run(&Scenario {
            capacity,
            requests: 20_000,
            ..scenario(seed, Strategy::Share)
        });
        recovery(&record, &plant, change_at)
    }) {
        failures.require(starts_within.contains(&from), seed, || {
            format!("the share was {from:.2} before")
        });
        failures.require(taken <= allowed, seed, || {
            format!("from {from:.2} back to 1 took {taken:.0?}, {allowed:.0?} allowed")
        });
    }
    failures.finish();
}

// [AIMD-29]
#[test]
fn the_share_is_back_within_a_dwell_a_step_of_capacity_returning() {
    check_recovery(1.0, 0.15..=0.8);
}

// [AIMD-29]
#[test]
fn a_share_at_the_floor_never_sticks_there() {
    check_recovery(0.0, 0.05..=0.2);
}

#[test]
#[expect(
    clippy::print_stdout,
    reason = "`--nocapture` shows the run to whoever asks for it"
)]
fn a_run_can_be_read_as_a_table() {
    let seed = number("LB_SIM_SEED").unwrap_or(0);
    let record = run(&scenario(seed, Strategy::Share));
    let text = table(&record);
    assert_eq!(text.lines().count(), 1 + record.series.len().div_ceil(4));
    assert!(
        text.contains(" 0:00  1.00 ########################################"),
        "{text}"
    );
    println!(
        "seed {seed}, of which {:.2} can be served\n{text}",
        largest_sustainable_share(seed % PLANTS)
    );
}
