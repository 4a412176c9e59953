//! Staying at a target, going through all of them once more, and what is passed over meanwhile.

use super::*;

const LATER: Instant = Instant::from_nanos(7);

fn next(cascade: &mut Cascade, standings: &[Standing]) -> Step {
    cascade.next(standings, Draw::default())
}

fn barred(until: u64) -> Standing {
    Standing::Barred {
        until: Instant::from_nanos(until),
    }
}

// [CASCADE-13]
#[test]
fn a_barred_target_is_passed_over_and_where_all_are_the_request_ends_with_the_first_instant() {
    assert_eq!(run(plan(2), &[barred(9), READY]), (vec![1], Stop::Exhausted));
    let stop = |standings: &[Standing]| run(plan(standings.len()), standings).1;
    let first = Stop::Barred {
        until: Instant::from_nanos(3),
    };
    assert_eq!(stop(&[barred(9), barred(3), Standing::Closed]), first);
    assert_eq!(stop(&[barred(9), Standing::Full]), Stop::Full);
    assert_eq!(stop(&[Standing::Closed]), Stop::Out);
}

// [COOL-4]
#[test]
fn a_cooling_target_is_passed_over_and_where_all_are_they_are_tried_in_order() {
    use Standing::{Cooling, Out};

    assert_eq!(run(plan(3), &[Cooling, READY, READY]).0, [1, 2, 0]);
    assert_eq!(run(plan(3), &[Cooling; 3]), (vec![0, 1, 2], Stop::Exhausted));
    assert_eq!(run(plan(3), &[Out, Cooling, barred(1)]).0, [1, 0]);
    // Even where the others merely lack room.
    assert_eq!(run(plan(2), &[Standing::Full, Cooling]).0, [1]);
    let mut cascade = Cascade::new(plan(2));
    assert_eq!(next(&mut cascade, &[READY, Cooling]), attempt(0, false));
}

// [CASCADE-14]
#[test]
fn another_try_stays_at_its_target_and_is_no_visit() {
    let bounded = Plan {
        max_attempts: 1,
        ..plan(2)
    };
    let mut cascade = Cascade::new(bounded);
    assert_eq!(next(&mut cascade, &[READY; 2]), attempt(0, true));
    cascade.retry(0, Some(LATER), true);
    assert_eq!(next(&mut cascade, &[READY; 2]), Step::Wait { until: LATER });
    assert_eq!(next(&mut cascade, &[READY; 2]), attempt(0, true));
    assert_eq!((cascade.visit(), cascade.attempts()), (Visit::Retry, 1));
    // Lost to a faster request, it is still no visit less.
    cascade.not_sent(0);
    assert_eq!(cascade.attempts(), 1);
    assert_eq!(next(&mut cascade, &[READY; 2]), Step::Stop(Stop::Exhausted));
}

// [CASCADE-14]
#[test]
fn a_target_that_is_not_ready_for_another_try_is_left_for_one_that_is() {
    let after = |standings: [Standing; 2]| {
        let mut cascade = Cascade::new(plan(2));
        assert_eq!(next(&mut cascade, &[READY; 2]), attempt(0, false));
        cascade.retry(0, None, true);
        (next(&mut cascade, &standings), cascade.visit())
    };
    for standing in [
        barred(1),
        Standing::Closed,
        Standing::Cooling,
        Standing::Full,
        Standing::Out,
    ] {
        assert_eq!(
            after([standing, READY]),
            (attempt(1, true), Visit::First),
            "{standing:?}"
        );
    }
    assert_eq!(after([Standing::Cooling; 2]), (attempt(0, false), Visit::Retry));
    let open = Step::Try {
        target: 0,
        fail_open: true,
        last: false,
    };
    assert_eq!(after([Standing::Out; 2]), (open, Visit::Retry));
    assert_eq!(after([barred(1); 2]).0, Step::Stop(Stop::Exhausted));
}

// [CASCADE-14] [RETRY-5]
#[test]
fn another_try_that_is_no_switch_goes_nowhere_else() {
    let after = |standing: Standing| {
        let mut cascade = Cascade::new(plan(2));
        assert_eq!(next(&mut cascade, &[READY; 2]), attempt(0, false));
        cascade.retry(0, None, false);
        next(&mut cascade, &[standing, READY])
    };
    // Of all that it may go to, nothing is ready.
    assert_eq!(after(Standing::Cooling), attempt(0, false));
    for standing in [barred(1), Standing::Closed, Standing::Full] {
        assert_eq!(after(standing), Step::Stop(Stop::Exhausted), "{standing:?}");
    }
    // The next time it is as free as before.
    let mut cascade = Cascade::new(plan(2));
    assert_eq!(next(&mut cascade, &[READY; 2]), attempt(0, false));
    cascade.retry(0, None, false);
    assert_eq!(next(&mut cascade, &[READY; 2]), attempt(0, false));
    assert_eq!(next(&mut cascade, &[READY; 2]), attempt(1, true));
}

// [CASCADE-15]
#[test]
fn another_pass_waits_and_then_goes_through_all_targets_again() {
    let bounded = Plan {
        max_attempts: 3,
        divert: true,
        ..plan(2)
    };
    let mut cascade = Cascade::new(bounded);
    assert!(!cascade.may_pass_again(&[READY; 2]), "nothing was tried yet");
    assert_eq!(next(&mut cascade, &[READY; 2]), attempt(1, false));
    assert_eq!(next(&mut cascade, &[READY; 2]), attempt(0, true));
    assert_eq!(next(&mut cascade, &[READY; 2]), Step::Stop(Stop::Exhausted));
    assert!(cascade.may_pass_again(&[READY, Standing::Closed]));
    assert!(!cascade.may_pass_again(&[barred(1), Standing::Full]));
    cascade.begin_pass(LATER);
    assert_eq!(next(&mut cascade, &[READY; 2]), Step::Wait { until: LATER });
    // The share has had its say.
    assert_eq!(next(&mut cascade, &[READY; 2]), attempt(0, true));
    assert_eq!((cascade.visit(), cascade.passes()), (Visit::Again, 1));
    assert!(!cascade.may_pass_again(&[READY; 2]), "three visits were allowed");
}

// [CASCADE-15]
#[test]
fn a_pass_that_came_to_no_visit_is_the_last() {
    let mut cascade = Cascade::new(plan(2));
    for target in [0, 1] {
        assert_eq!(next(&mut cascade, &[READY; 2]), attempt(target, target == 1));
    }
    cascade.begin_pass(LATER);
    assert_eq!(next(&mut cascade, &[READY; 2]), Step::Wait { until: LATER });
    for target in [0, 1] {
        assert_eq!(next(&mut cascade, &[READY; 2]), attempt(target, target == 1));
        cascade.not_sent(target);
    }
    assert_eq!(next(&mut cascade, &[READY; 2]), Step::Stop(Stop::Exhausted));
    assert!(!cascade.may_pass_again(&[READY; 2]));
}
