use proptest::prelude::*;

use super::Turns;
use crate::policy::select::Candidate;

#[expect(clippy::unnecessary_wraps, reason = "what `next` takes")]
fn candidate(weight: u32) -> Option<Candidate> {
    Some(Candidate { in_flight: 0, weight })
}

// [BALANCE-3]
#[test]
fn turns_are_spread_and_come_by_weight() {
    let mut turns = Turns::new(3);
    let order: Vec<_> = (0..7).map(|_| turns.next([5, 1, 1].map(candidate))).collect();
    assert_eq!(order, [0, 0, 1, 0, 2, 0, 0].map(Some));
}

// [BALANCE-3]
#[test]
fn one_that_comes_back_has_no_backlog_of_turns() {
    let mut turns = Turns::new(2);
    for _ in 0..100 {
        assert_eq!(turns.next([None, candidate(1)]), Some(1));
    }
    let order: Vec<_> = (0..4).map(|_| turns.next([candidate(1), candidate(1)])).collect();
    assert_eq!(order, [0, 1, 0, 1].map(Some));
}

#[test]
fn there_is_no_turn_among_none() {
    let mut turns = Turns::new(2);
    assert_eq!(turns.next([None, candidate(0)]), None);
    assert_eq!(Turns::new(0).next([]), None);
}

proptest! {
    // [BALANCE-3]
    #[test]
    fn each_turn_goes_to_whoever_is_furthest_behind_its_part(
        weights in prop::collection::vec(0..20u32, 1..6),
        steps in 1..200usize,
    ) {
        let total: i64 = weights.iter().map(|weight| i64::from(*weight)).sum();
        let mut given = vec![0i64; weights.len()];
        let mut turns = Turns::new(weights.len());
        for step in 1..=i64::try_from(steps).expect("small") {
            // The plain rule: by how much each would be short of its part if it were passed over.
            let behind = |at: usize| step * i64::from(weights[at]) - given[at] * total;
            let eligible = (0..weights.len()).filter(|at| weights[*at] > 0);
            let expected = eligible.reduce(|best, at| if behind(at) > behind(best) { at } else { best });
            let turn = turns.next(weights.iter().copied().map(candidate));
            prop_assert_eq!(turn, expected);
            if let Some(at) = turn {
                given[at] += 1;
            }
        }
    }

    #[test]
    fn a_turn_is_always_of_one_that_can_have_it(
        rounds in prop::collection::vec(prop::collection::vec(prop::option::of(0..5u32), 4), 1..60),
    ) {
        let mut turns = Turns::new(4);
        for round in rounds {
            let turn = turns.next(round.iter().map(|weight| weight.and_then(candidate)));
            let possible = round.iter().any(|weight| weight.is_some_and(|weight| weight > 0));
            prop_assert_eq!(turn.is_some(), possible);
            prop_assert!(turn.is_none_or(|at| round[at].is_some_and(|weight| weight > 0)));
        }
    }
}
