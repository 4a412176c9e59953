//! Each rule of the cascade, by name. [`model`] holds all of them together against a plain model.

use super::*;

mod model;
mod passes;

const READY: Standing = Standing::Ready(Candidate {
    in_flight: 0,
    weight: 1,
});

fn loaded(in_flight: u32, weight: u32) -> Standing {
    Standing::Ready(Candidate { in_flight, weight })
}

/// A plan over one priority pool, with as many attempts as targets.
fn plan(targets: usize) -> Plan {
    Plan {
        pools: [Pool {
            targets,
            strategy: Strategy::Priority,
        }]
        .into(),
        max_attempts: u32::MAX,
        divert: false,
    }
}

fn diverted(targets: usize) -> Plan {
    Plan {
        divert: true,
        ..plan(targets)
    }
}

/// The targets that a request fails through, and why it stops.
fn run(plan: Plan, standings: &[Standing]) -> (Vec<usize>, Stop) {
    let mut cascade = Cascade::new(plan);
    let mut targets = Vec::new();
    loop {
        match cascade.next(standings, Draw::default()) {
            Step::Try { target, .. } => targets.push(target),
            Step::Stop(stop) => return (targets, stop),
            Step::Wait { .. } => panic!("nothing to wait for"),
        }
    }
}

fn attempt(target: usize, last: bool) -> Step {
    Step::Try {
        target,
        fail_open: false,
        last,
    }
}

// [CASCADE-1]
#[test]
fn targets_are_tried_once_each_in_order_of_definition() {
    assert_eq!(run(plan(3), &[READY; 3]), (vec![0, 1, 2], Stop::Exhausted));
}

// [CASCADE-2]
#[test]
fn visits_to_targets_are_bounded() {
    let bounded = Plan {
        max_attempts: 2,
        ..plan(3)
    };
    assert_eq!(run(bounded, &[READY; 3]), (vec![0, 1], Stop::Exhausted));
}

// [CASCADE-3]
#[test]
fn a_full_target_is_skipped_at_no_cost_of_an_attempt() {
    let bounded = Plan {
        max_attempts: 2,
        ..plan(3)
    };
    assert_eq!(
        run(bounded, &[Standing::Full, READY, READY]),
        (vec![1, 2], Stop::Exhausted)
    );
}

// [CASCADE-3]
#[test]
fn where_every_target_is_full_the_request_stops_for_that() {
    assert_eq!(run(plan(2), &[Standing::Full; 2]), (vec![], Stop::Full));
    assert_eq!(
        run(plan(2), &[Standing::Full, Standing::Closed]),
        (vec![], Stop::Full)
    );
    assert_eq!(run(plan(2), &[READY, Standing::Full]), (vec![0], Stop::Exhausted));
}

// [CASCADE-4]
#[test]
fn a_lost_race_costs_no_attempt_and_the_target_is_not_offered_again() {
    let mut cascade = Cascade::new(Plan {
        max_attempts: 1,
        ..plan(2)
    });
    assert_eq!(cascade.next(&[READY; 2], Draw::default()), attempt(0, true));
    cascade.not_sent(0);
    assert_eq!(cascade.attempts(), 0);
    assert_eq!(cascade.next(&[READY; 2], Draw::default()), attempt(1, true));
    assert_eq!(cascade.attempts(), 1);
    assert!(cascade.tried(0) && cascade.tried(1) && !cascade.tried(2));
    assert_eq!(
        cascade.next(&[READY; 2], Draw::default()),
        Step::Stop(Stop::Exhausted)
    );
}

// [CASCADE-4]
#[test]
fn where_every_race_is_lost_the_request_stops_for_want_of_room() {
    let mut cascade = Cascade::new(plan(1));
    assert_eq!(cascade.next(&[READY], Draw::default()), attempt(0, true));
    cascade.not_sent(0);
    assert_eq!(cascade.next(&[READY], Draw::default()), Step::Stop(Stop::Full));
}

// [LIMITER-6]
#[test]
fn a_target_whose_slot_was_waited_for_is_offered_again_wherever_it_stands() {
    // Marks of the first 64 targets are kept apart from those of the others.
    for own in [0, 3, 64, 70] {
        let mut standings = vec![Standing::Closed; 71];
        standings[own] = READY;
        let mut cascade = Cascade::new(plan(71));
        // Whatever was never offered is offered all the same.
        cascade.offer_again(own);
        assert_eq!(cascade.next(&standings, Draw::default()), attempt(own, true));
        cascade.not_sent(own);
        assert_eq!(
            cascade.next(&standings, Draw::default()),
            Step::Stop(Stop::Full),
            "of {own}"
        );
        cascade.offer_again(own);
        assert!(!cascade.tried(own));
        assert_eq!(cascade.next(&standings, Draw::default()), attempt(own, true));
        assert_eq!(cascade.attempts(), 1);
    }
}

// [CASCADE-5]
#[test]
fn a_target_that_is_out_is_passed_over_while_another_can_be_attempted() {
    assert_eq!(
        run(plan(3), &[Standing::Out, READY, Standing::Out]),
        (vec![1, 0, 2], Stop::Exhausted)
    );
}

// [CASCADE-5]
#[test]
fn where_none_can_be_attempted_fail_open_tries_in_order_and_says_so() {
    let standings = [Standing::Full, Standing::Out, Standing::Out];
    let mut cascade = Cascade::new(plan(3));
    let open = |target, last| Step::Try {
        target,
        fail_open: true,
        last,
    };
    assert_eq!(cascade.next(&standings, Draw::default()), open(1, false));
    assert_eq!(cascade.next(&standings, Draw::default()), open(2, true));
    assert_eq!(
        cascade.next(&standings, Draw::default()),
        Step::Stop(Stop::Exhausted)
    );
}

// [CASCADE-6]
#[test]
fn a_closed_target_is_never_tried() {
    assert_eq!(
        run(plan(3), &[Standing::Closed, READY, Standing::Closed]),
        (vec![1], Stop::Exhausted)
    );
    assert_eq!(run(plan(2), &[Standing::Closed; 2]), (vec![], Stop::Out));
    assert_eq!(
        run(plan(2), &[READY]),
        (vec![0], Stop::Exhausted),
        "one without a standing is closed"
    );
    assert_eq!(run(plan(0), &[]), (vec![], Stop::Out));
}

// [CASCADE-7]
#[test]
fn a_diverted_request_begins_at_the_first_other_target_and_reaches_the_preferred_one_later() {
    assert_eq!(run(diverted(3), &[READY; 3]), (vec![1, 0, 2], Stop::Exhausted));
    assert_eq!(
        run(diverted(3), &[READY, Standing::Full, READY]),
        (vec![2, 0], Stop::Exhausted)
    );
    assert_eq!(
        run(diverted(3), &[READY, Standing::Out, READY]),
        (vec![2, 0, 1], Stop::Exhausted)
    );
}

// [CASCADE-7]
#[test]
fn a_diverted_request_with_no_other_target_to_begin_at_begins_at_the_preferred_one() {
    assert_eq!(
        run(diverted(2), &[READY, Standing::Full]),
        (vec![0], Stop::Exhausted)
    );
    assert_eq!(
        run(diverted(2), &[READY, Standing::Out]),
        (vec![0, 1], Stop::Exhausted)
    );
    assert_eq!(run(diverted(1), &[READY]), (vec![0], Stop::Exhausted));
}

// [CASCADE-7]
#[test]
fn a_diverted_request_that_loses_its_first_race_is_still_diverted() {
    let mut cascade = Cascade::new(diverted(3));
    assert_eq!(cascade.next(&[READY; 3], Draw::default()), attempt(1, false));
    cascade.not_sent(1);
    assert_eq!(cascade.next(&[READY; 3], Draw::default()), attempt(2, false));
    assert_eq!(cascade.next(&[READY; 3], Draw::default()), attempt(0, true));
}

// [CASCADE-8]
#[test]
fn the_share_diverts_within_the_first_pool_only() {
    let pool = |targets| Pool {
        targets,
        strategy: Strategy::Priority,
    };
    let chain = Plan {
        pools: [pool(2), pool(2)].into(),
        ..diverted(0)
    };
    assert_eq!(
        run(chain.clone(), &[READY; 4]),
        (vec![1, 0, 2, 3], Stop::Exhausted)
    );
    // The second pool is a fallback's: not a place to begin at while the preferred target can be attempted.
    assert_eq!(
        run(chain, &[READY, Standing::Full, READY, READY]),
        (vec![0, 2, 3], Stop::Exhausted)
    );
}

// [CASCADE-9]
#[test]
fn a_weighted_pool_is_tried_by_load_and_weight_0_drains() {
    let pools = [Pool {
        targets: 4,
        strategy: Strategy::Weighted,
    }]
    .into();
    let standings = [loaded(4, 1), loaded(4, 2), loaded(0, 0), loaded(1, 1)];
    assert_eq!(
        run(Plan { pools, ..plan(0) }, &standings),
        (vec![3, 1, 0], Stop::Exhausted)
    );
    assert_eq!(run(plan(2), &[loaded(0, 0), READY]), (vec![1], Stop::Exhausted));
}

// [CASCADE-9]
#[test]
fn equals_of_a_weighted_pool_are_drawn() {
    let pools: Arc<[Pool]> = [Pool {
        targets: 2,
        strategy: Strategy::Weighted,
    }]
    .into();
    for (draw, expected) in [(0.0, 0), (0.49, 0), (0.5, 1), (0.99, 1)] {
        let mut cascade = Cascade::new(Plan {
            pools: Arc::clone(&pools),
            ..plan(0)
        });
        assert_eq!(
            cascade.next(&[READY; 2], Draw::new(draw)),
            attempt(expected, false),
            "at {draw}"
        );
    }
}

// [CASCADE-10]
#[test]
fn pools_are_gone_through_one_after_the_other() {
    let pools = [
        Pool {
            targets: 2,
            strategy: Strategy::Weighted,
        },
        Pool {
            targets: 2,
            strategy: Strategy::Priority,
        },
    ];
    let standings = [loaded(9, 1), loaded(8, 1), loaded(7, 1), loaded(0, 1)];
    assert_eq!(
        run(
            Plan {
                pools: pools.into(),
                ..plan(0)
            },
            &standings
        ),
        (vec![1, 0, 2, 3], Stop::Exhausted)
    );
}

// [CASCADE-11]
#[test]
fn an_attempt_is_the_last_when_as_things_stand_none_can_follow() {
    //    standings of the other two, attempts allowed, last
    let cases = [
        ([READY, READY], 3, false),
        ([READY, READY], 1, true),
        ([Standing::Full, Standing::Closed], 3, true),
        ([Standing::Full, Standing::Out], 3, false),
        ([Standing::Closed, loaded(0, 0)], 3, true),
    ];
    for (others, max_attempts, last) in cases {
        let mut cascade = Cascade::new(Plan {
            max_attempts,
            ..plan(3)
        });
        let standings = [READY, others[0], others[1]];
        assert_eq!(
            cascade.next(&standings, Draw::default()),
            attempt(0, last),
            "before {others:?}"
        );
        assert_eq!(cascade.has_next(&standings), !last);
    }
}

// [CASCADE-12]
#[test]
fn standings_are_asked_for_again_before_every_attempt() {
    let mut cascade = Cascade::new(plan(3));
    assert_eq!(
        cascade.next(&[READY, READY, Standing::Closed], Draw::default()),
        attempt(0, false)
    );
    assert_eq!(
        cascade.next(&[READY, Standing::Full, READY], Draw::default()),
        attempt(2, true)
    );
    assert_eq!(
        cascade.next(&[READY, READY, READY], Draw::default()),
        attempt(1, true)
    );
}

// [CASCADE-2]
#[test]
fn a_cascade_of_many_targets_tries_each_of_them_once() {
    for targets in [63, 64, 65, 200] {
        let standings = vec![READY; targets];
        let all = (0..targets).collect::<Vec<_>>();
        assert_eq!(run(plan(targets), &standings), (all, Stop::Exhausted));
    }
}
