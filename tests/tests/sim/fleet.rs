//! A fleet under everything that befalls fleets, over many seeds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use lb_tests::sim::fleet::{Broken, Fate, Fleet, Seen, Story};

use super::seeds::{Failures, for_all, seeds};

/// Plays the story of `seed`; a panic is a failure like any other.
fn play(seed: u64) -> Result<(Vec<Fate>, Seen), Broken> {
    let story = Story::numbered(seed);
    catch_unwind(AssertUnwindSafe(|| Fleet::run(&story))).unwrap_or_else(|_| {
        Err(Broken {
            what: "lb panicked, as told above".to_owned(),
            events: Vec::new(),
        })
    })
}

// [FLEET-1] [FLEET-2]
#[test]
fn what_a_fleet_holds_is_what_its_books_say_after_every_step() {
    let seeds = seeds(256);
    let mut failures = Failures::default();
    let mut all = Seen::default();
    for (seed, told) in for_all(&seeds, play) {
        match told {
            Ok((_, seen)) => all += seen,
            Err(Broken { what, events }) => {
                failures.require(false, seed, || format!("{what}\n    {}", events.join("\n    ")));
            }
        }
    }
    failures.finish();
    if seeds.len() >= 256 {
        let missed: Vec<_> = all.all().into_iter().filter(|(_, count)| *count < 20).collect();
        assert!(
            missed.is_empty(),
            "the stories hardly come to {missed:?}: {all:?}"
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_another() {
    let fates = |seed: u64| play(seed).map(|(fates, _)| fates).unwrap_or_default();
    for seed in seeds(8) {
        assert_eq!(fates(seed), fates(seed), "LB_SIM_SEED={seed}");
        assert_ne!(fates(seed), fates(seed + 1), "LB_SIM_SEED={seed}");
    }
}
