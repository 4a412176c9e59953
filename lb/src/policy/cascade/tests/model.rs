//! The cascade against a model that writes the whole order down before it looks.

use proptest::prelude::{
    Just, ProptestConfig, Strategy as Generator, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use super::*;
use crate::policy::aimd::{Params, Share, Start};
use crate::policy::time::Instant;

fn standing() -> impl Generator<Value = Standing> {
    prop_oneof![
        5 => (0..4u32, 0..4u32).prop_map(|(in_flight, weight)| loaded(in_flight, weight)),
        2 => Just(Standing::Full),
        2 => Just(Standing::Out),
        1 => Just(Standing::Closed),
        1 => Just(Standing::Cooling),
        1 => (1..9u64).prop_map(|until| Standing::Barred { until: Instant::from_nanos(until) }),
    ]
}

/// Sizes of the pools and whether each is weighted.
fn pools() -> impl Generator<Value = Vec<Pool>> {
    let pool = (0..4usize, any::<bool>()).prop_map(|(targets, weighted)| Pool {
        targets,
        strategy: if weighted {
            Strategy::Weighted
        } else {
            Strategy::Priority
        },
    });
    prop::collection::vec(pool, 0..4)
}

#[derive(Default)]
struct Model {
    tried: Vec<usize>,
    attempts: u32,
}

impl Model {
    /// All targets that could be the next one, and whether by fail-open; more than one where a draw decides.
    fn choices(&self, plan: &Plan, standings: &[Standing]) -> (Vec<usize>, bool) {
        let fresh = |target: &usize| !self.tried.contains(target);
        let weight = |target: &usize| match standings[*target] {
            Standing::Ready(load) => load.weight,
            _ => 0,
        };
        let ready = |target: &usize| fresh(target) && weight(target) > 0;
        if self.attempts >= plan.max_attempts {
            return (vec![], false);
        }
        if plan.divert && self.attempts == 0 {
            let first_pool = plan.pools.first().map_or(0, |pool| pool.targets);
            if let Some(target) = (1..first_pool).find(ready) {
                return (vec![target], false);
            }
        }
        let mut start = 0;
        for pool in plan.pools.iter() {
            let mut targets: Vec<usize> = (start..start + pool.targets).filter(ready).collect();
            start += pool.targets;
            if pool.strategy == Strategy::Weighted {
                // In sixths of a request per weight: 1, 2 and 3 divide it.
                let load = |target: &usize| match standings[*target] {
                    Standing::Ready(load) => load.in_flight * 6 / load.weight,
                    _ => u32::MAX,
                };
                let least = targets.iter().map(load).min();
                targets.retain(|target| Some(load(target)) == least);
            } else {
                targets.truncate(1);
            }
            if !targets.is_empty() {
                return (targets, false);
            }
        }
        let cooling =
            (0..standings.len()).find(|target| fresh(target) && standings[*target] == Standing::Cooling);
        if let Some(target) = cooling {
            return (vec![target], false);
        }
        let out = (0..standings.len()).find(|target| fresh(target) && standings[*target] == Standing::Out);
        (out.into_iter().collect(), true)
    }

    fn stop(&self, standings: &[Standing]) -> Stop {
        let lacks_room = !self.tried.is_empty() || standings.contains(&Standing::Full);
        let first = (1..9).map(Instant::from_nanos);
        let barred = first.map(|until| Standing::Barred { until });
        let first = barred.into_iter().find(|standing| standings.contains(standing));
        match (self.attempts, lacks_room, first) {
            (1.., ..) => Stop::Exhausted,
            (0, true, _) => Stop::Full,
            (0, false, Some(Standing::Barred { until })) => Stop::Barred { until },
            (0, false, _) => Stop::Out,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    // [CASCADE-1] [CASCADE-2] [CASCADE-3] [CASCADE-4] [CASCADE-5] [CASCADE-6] [CASCADE-7] [CASCADE-8] [CASCADE-9]
    // [CASCADE-10] [CASCADE-11] [CASCADE-12]
    #[test]
    fn it_does_what_the_plain_model_does(
        pools in pools(),
        max_attempts in 1..8u32,
        divert: bool,
        rounds in prop::collection::vec((prop::collection::vec(standing(), 12), 0.0..1.0, any::<bool>()), 1..14),
    ) {
        let targets: usize = pools.iter().map(|pool| pool.targets).sum();
        let plan = Plan { pools: pools.into(), max_attempts, divert };
        let mut cascade = Cascade::new(plan.clone());
        let mut model = Model::default();
        for (standings, draw, lost) in rounds {
            let standings = &standings[..targets];
            let (choices, by_fail_open) = model.choices(&plan, standings);
            match cascade.next(standings, Draw::new(draw)) {
                Step::Stop(stop) => {
                    prop_assert!(choices.is_empty());
                    prop_assert_eq!(stop, model.stop(standings));
                    prop_assert!(!cascade.has_next(standings));
                }
                Step::Wait { .. } => prop_assert!(false, "nothing to wait for"),
                Step::Try { target, fail_open, last } => {
                    prop_assert!(choices.contains(&target), "{} is none of {:?}", target, choices);
                    prop_assert_eq!(fail_open, by_fail_open);
                    model.tried.push(target);
                    model.attempts += 1;
                    prop_assert_eq!(last, model.choices(&plan, standings).0.is_empty());
                    if lost {
                        cascade.not_sent(target);
                        model.attempts -= 1;
                    }
                }
            }
            prop_assert_eq!(cascade.attempts(), model.attempts);
            prop_assert!((0..targets).all(|target| cascade.tried(target) == model.tried.contains(&target)));
        }
    }

    // [AIMD-28]
    #[test]
    fn without_a_controller_or_with_a_share_of_1_the_steps_are_those_of_plain_priority(
        rounds in prop::collection::vec(prop::collection::vec(standing(), 5), 1..8),
        origin in 0.0..1.0,
    ) {
        let mut share = Share::new(Params::default(), Draw::new(origin));
        let (start, _) = share.begin(Instant::default());
        let mut steered = Cascade::new(Plan { divert: start == Start::Alternate, ..plan(5) });
        let mut off = Cascade::new(plan(5));
        let mut left = vec![0, 1, 2, 3, 4];
        for standings in rounds {
            // Plain priority: the first that can be attempted; else the first that cools, else the first that is out.
            let ready = left.iter().position(|target| is_ready(standings[*target]));
            let cooling = || left.iter().position(|target| standings[*target] == Standing::Cooling);
            let out = || left.iter().position(|target| standings[*target] == Standing::Out);
            let expected = ready.or_else(cooling).or_else(out).map(|at| left.remove(at));
            for cascade in [&mut steered, &mut off] {
                let target = match cascade.next(&standings, Draw::default()) {
                    Step::Try { target, .. } => Some(target),
                    Step::Stop(_) | Step::Wait { .. } => None,
                };
                prop_assert_eq!(target, expected);
            }
        }
    }
}
