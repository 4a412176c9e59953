use proptest::prelude::*;

use super::{FREE, Maglev, hash};
use crate::policy::select::Candidate;

fn named(weights: &[u32]) -> Vec<(String, u32)> {
    let names = (0..weights.len()).map(|at| format!("http://host-{at}:8000/v1"));
    names.zip(weights.iter().copied()).collect()
}

fn table(endpoints: &[(String, u32)]) -> Maglev {
    Maglev::new(endpoints.iter().map(|(name, weight)| (name.as_str(), *weight)))
}

fn idle(weights: &[u32]) -> Vec<Option<Candidate>> {
    let one = |weight: &u32| {
        Some(Candidate {
            in_flight: 0,
            weight: *weight,
        })
    };
    weights.iter().map(one).collect()
}

fn keys() -> impl Iterator<Item = u64> {
    (0..10_000u32).map(|key| hash(&key.to_le_bytes()))
}

// [BALANCE-5]
#[test]
fn keys_are_spread_by_weight() {
    let weights = [1, 2, 0, 5];
    let table = table(&named(&weights));
    assert!(table.0.iter().all(|at| *at != FREE));
    let mut counts = [0u32; 4];
    // Each place of the table is a key's.
    for place in 0..table.0.len() as u64 {
        counts[table.choose(idle(&weights), place).expect("one has room")] += 1;
    }
    let parts = counts.map(|count| f64::from(count) / 5003.0);
    for (part, expected) in parts.into_iter().zip([0.125, 0.25, 0.0, 0.625]) {
        assert!((part - expected).abs() < 0.002, "{parts:?}");
    }
}

// [BALANCE-5]
#[test]
fn the_lightest_has_a_key_too_beside_the_heaviest_there_can_be() {
    let weights = [1_000_000, 1_000_000, 1, 1_000_000];
    let table = table(&named(&weights));
    let of_the_light = table.0.iter().filter(|at| **at == 2).count();
    assert_eq!(of_the_light, 1);
    let mut candidates = idle(&weights);
    let heavy = |at: &usize| *at != 2;
    for at in (0..4).filter(heavy) {
        candidates[at] = None;
    }
    for key in keys().take(100) {
        assert_eq!(table.choose(candidates.iter().copied(), key), Some(2));
    }
}

// [BALANCE-5]
#[test]
fn when_an_endpoint_goes_hardly_any_key_moves_but_its_own() {
    let weights = [1; 6];
    let endpoints = named(&weights);
    let (all, rest) = (table(&endpoints), table(&endpoints[..5]));
    let mut moved = 0;
    for key in keys() {
        let before = all.choose(idle(&weights), key).expect("one has room");
        let after = rest.choose(idle(&weights[..5]), key).expect("one has room");
        moved += u32::from(before != after && before != 5);
    }
    assert!(moved < 500, "{moved} of 10000 moved without need");
}

// [BALANCE-5]
#[test]
fn one_that_is_out_loses_its_keys_and_gets_them_back() {
    let weights = [1; 4];
    let table = table(&named(&weights));
    let mut without = idle(&weights);
    without[2] = None;
    for key in keys() {
        let home = table.choose(idle(&weights), key);
        let away = table.choose(without.iter().copied(), key);
        assert_ne!(away, Some(2));
        assert!(
            home == Some(2) || home == away,
            "only keys of the one that is out move"
        );
        assert_eq!(
            away,
            table.choose(without.iter().copied(), key),
            "always to the same"
        );
    }
}

// [BALANCE-6]
#[test]
fn a_hot_key_overflows_to_others_before_it_drowns_its_endpoint() {
    let mut in_flight = [0u32; 4];
    let table = table(&named(&[1; 4]));
    let key = hash(b"hot");
    for _ in 0..400 {
        let candidates = in_flight.map(|in_flight| Some(Candidate { in_flight, weight: 1 }));
        in_flight[table.choose(candidates, key).expect("one has room")] += 1;
    }
    assert!(in_flight.iter().all(|load| *load <= 125), "{in_flight:?}");
    assert!(in_flight.contains(&125), "{in_flight:?}");
}

#[test]
fn there_is_no_choice_among_none() {
    assert_eq!(table(&[]).choose([], 7), None);
    assert_eq!(table(&named(&[0])).choose(idle(&[0]), 7), None);
    assert_eq!(table(&named(&[1, 1])).choose([None, None], 7), None);
}

#[test]
fn a_hash_is_the_same_in_every_version() {
    assert_eq!(hash(b""), 0xf52a_15e9_a9b5_e89b);
    assert_eq!(hash(b"a"), 0x02c0_bdbf_4814_20f8);
    assert_eq!(hash(b"conversation"), 0xa4f4_24c8_a1c5_7c76);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    // [BALANCE-5] [BALANCE-6]
    #[test]
    fn the_choice_is_the_first_of_the_keys_order_that_has_room(
        endpoints in prop::collection::vec((0..4u32, prop::option::of(0..12u32)), 1..7),
        key in any::<u64>(),
    ) {
        let weights: Vec<u32> = endpoints.iter().map(|(weight, _)| *weight).collect();
        let table = table(&named(&weights));
        let candidates: Vec<_> = endpoints
            .iter()
            .map(|(weight, load)| load.map(|in_flight| Candidate { in_flight, weight: *weight }))
            .collect();
        // The plain rule, in fractions.
        let choices: Vec<_> = candidates.iter().flatten().filter(|it| it.weight > 0).collect();
        let total: u32 = choices.iter().map(|it| it.weight).sum();
        let load: u32 = choices.iter().map(|it| it.in_flight).sum::<u32>() + 1;
        let room = |it: &Candidate| {
            f64::from(it.in_flight + 1) <= (1.25 * f64::from(load * it.weight) / f64::from(total) - 1e-9).ceil()
        };
        let start = usize::try_from(key % table.0.len().max(1) as u64).expect("small");
        let expected = (0..table.0.len()).map(|step| usize::from(table.0[(start + step) % table.0.len()])).find(|at| {
            candidates[*at].is_some_and(|it| it.weight > 0 && room(&it))
        });
        let choice = table.choose(candidates.iter().copied(), key);
        prop_assert_eq!(choice, expected);
        prop_assert_eq!(choice.is_some(), !choices.is_empty(), "somebody always has room");
    }
}
