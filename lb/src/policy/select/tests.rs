use proptest::prelude::*;

use super::{Candidate, cheaper_of_two, least_inflight, random};
use crate::policy::draw::Draw;

const fn candidate(in_flight: u32, weight: u32) -> Candidate {
    Candidate { in_flight, weight }
}

// [SELECT-1]
#[test]
fn the_least_loaded_for_its_weight_is_chosen() {
    let candidates = [candidate(3, 2), candidate(4, 3), candidate(2, 1)];
    assert_eq!(least_inflight(candidates.map(Some), Draw::new(0.0)), Some(1));
}

// [SELECT-1]
#[test]
fn one_that_is_out_of_the_question_keeps_its_position() {
    assert_eq!(
        least_inflight([None, Some(candidate(9, 1)), None], Draw::new(0.9)),
        Some(1)
    );
}

// [SELECT-3]
#[test]
fn weight_0_drains() {
    assert_eq!(
        least_inflight([candidate(0, 0), candidate(50, 1)].map(Some), Draw::new(0.0)),
        Some(1)
    );
    assert_eq!(least_inflight([Some(candidate(0, 0))], Draw::new(0.0)), None);
}

#[test]
fn there_is_no_choice_among_none() {
    assert_eq!(least_inflight([], Draw::new(0.5)), None);
    assert_eq!(least_inflight([None, None], Draw::new(0.5)), None);
}

// [SELECT-2]
#[test]
fn equals_are_drawn_in_proportion_to_their_weights() {
    // Loads of 0, so that all are equal however they weigh: 1 of 4 parts, then 3 of 4.
    let candidates = [candidate(0, 1), candidate(0, 3)].map(Some);
    for (draw, expected) in [(0.0, 0), (0.249, 0), (0.25, 1), (0.999, 1)] {
        assert_eq!(
            least_inflight(candidates, Draw::new(draw)),
            Some(expected),
            "at {draw}"
        );
    }
}

// [BALANCE-2]
#[test]
fn chance_alone_goes_by_weight() {
    let candidates = [
        Some(candidate(9, 1)),
        None,
        Some(candidate(0, 3)),
        Some(candidate(0, 0)),
    ];
    for (draw, expected) in [(0.0, 0), (0.249, 0), (0.25, 2), (0.999, 2)] {
        assert_eq!(random(candidates, Draw::new(draw)), Some(expected), "at {draw}");
    }
    assert_eq!(random([None], Draw::new(0.5)), None);
}

// [BALANCE-4]
#[test]
fn each_pair_is_as_likely_as_another_and_the_cheaper_of_it_is_chosen() {
    let candidates = [
        Some(candidate(0, 1)),
        None,
        Some(candidate(0, 1)),
        Some(candidate(0, 1)),
    ];
    let costs = [3.0, 0.0, 2.0, 1.0];
    let mut counts = [0; 4];
    for step in 0..6_000 {
        let draw = Draw::new((f64::from(step) + 0.5) / 6_000.0);
        counts[cheaper_of_two(candidates, draw, |at, _| costs[at]).expect("three can be chosen")] += 1;
    }
    // Of the three pairs two have the cheapest, and one the second.
    assert_eq!(counts, [0, 0, 2_000, 4_000]);
    let alone = [None, Some(candidate(5, 1))];
    assert_eq!(cheaper_of_two(alone, Draw::new(0.9), |_, _| 1.0), Some(1));
    assert_eq!(cheaper_of_two([None], Draw::new(0.9), |_, _| 1.0), None);
}

proptest! {
    // [SELECT-1] [SELECT-2]
    #[test]
    fn the_choice_is_one_of_the_lightest_and_every_one_of_them_can_be_chosen(
        candidates in prop::collection::vec(prop::option::of((0..8u32, 0..4u32)), 0..8),
        draw in 0.0..1.0,
    ) {
        let candidates: Vec<_> =
            candidates.into_iter().map(|it| it.map(|(in_flight, weight)| Candidate { in_flight, weight })).collect();
        // Loads in 840ths, which every weight here divides.
        let load = |it: Candidate| it.in_flight * 840 / it.weight;
        let loads: Vec<_> = candidates.iter().map(|it| it.filter(|it| it.weight > 0).map(load)).collect();
        let least = loads.iter().flatten().min();
        let equals: Vec<usize> = (0..loads.len()).filter(|at| loads[*at].as_ref() == least && least.is_some()).collect();

        let choice = least_inflight(candidates.iter().copied(), Draw::new(draw));
        prop_assert_eq!(choice.is_some(), !equals.is_empty());
        prop_assert!(choice.is_none_or(|at| equals.contains(&at)));

        let reached: std::collections::BTreeSet<usize> = (0..100)
            .filter_map(|hundredth| least_inflight(candidates.iter().copied(), Draw::new(f64::from(hundredth) / 100.0)))
            .collect();
        prop_assert_eq!(reached.into_iter().collect::<Vec<_>>(), equals);
    }
}
