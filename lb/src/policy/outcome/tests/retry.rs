//! Same provider or next target?

use super::*;

/// The default list of a provider's retries.
fn retries() -> StatusSet {
    [500, 502, 503, 504, 408, 499, 429].into_iter().collect()
}

/// What becomes of `ended` where the provider can be tried again.
fn next(ended: &Ended, change: impl Fn(&mut Rules<'_>)) -> Next {
    let (on_status, retries) = (on_status(), retries());
    let mut rules = Rules {
        retry: true,
        retry_on_status: &retries,
        ..rules(&on_status, None)
    };
    change(&mut rules);
    judge(ended, &rules).next
}

const MENDED_BY_A_REPLICA: [Ended; 9] = [
    status(500),
    status(502),
    status(504),
    status(499),
    Ended::Connect,
    Ended::Dns,
    Ended::Signalled,
    Ended::Tls,
    Ended::Unanswered,
];

// [RETRY-1]
#[test]
fn an_endpoint_that_was_not_tried_comes_before_the_next_target() {
    for ended in MENDED_BY_A_REPLICA {
        assert_eq!(
            next(&ended, |rules| rules.elsewhere = true),
            Next::Retry,
            "{ended:?}"
        );
    }
}

// [RETRY-1]
#[test]
fn the_next_target_comes_before_the_same_endpoint_again() {
    for ended in MENDED_BY_A_REPLICA {
        assert_eq!(next(&ended, |_| ()), Next::Failover, "{ended:?}");
        assert_eq!(next(&ended, |rules| rules.last = true), Next::Retry, "{ended:?}");
    }
}

// [RETRY-2]
#[test]
fn who_has_no_room_or_asks_for_long_is_left_for_the_next_target() {
    for code in [429, 503] {
        let elsewhere = |rules: &mut Rules<'_>| rules.elsewhere = true;
        assert_eq!(next(&status(code), elsewhere), Next::Failover);
        assert_eq!(next(&status(code), |rules| rules.last = true), Next::Retry);
    }
    let long = |last: bool| {
        move |rules: &mut Rules<'_>| {
            (rules.elsewhere, rules.asks_for_long, rules.last) = (true, true, last);
        }
    };
    assert_eq!(next(&status(500), long(false)), Next::Failover);
    assert_eq!(next(&status(500), long(true)), Next::Retry);
}

// [RETRY-3]
#[test]
fn a_slow_provider_is_left_for_the_next_target_and_else_for_a_replica_only() {
    let late = Ended::FirstTokenTimeout { after: LATE };
    assert_eq!(next(&late, |rules| rules.elsewhere = true), Next::Failover);
    let last =
        |elsewhere: bool| move |rules: &mut Rules<'_>| (rules.last, rules.elsewhere) = (true, elsewhere);
    assert_eq!(next(&late, last(true)), Next::Retry);
    assert_eq!(next(&late, last(false)), Next::Fail);
    for ended in [Ended::ReadTimeout, Ended::VisitDeadline] {
        assert_eq!(next(&ended, |rules| rules.elsewhere = true), Next::Failover);
        assert_eq!(next(&ended, last(true)), Next::Fail);
    }
}

// [RETRY-4]
#[test]
fn what_may_have_been_answered_is_repeated_only_where_that_is_allowed() {
    let forbidden =
        |rules: &mut Rules<'_>| (rules.repeatable, rules.last, rules.elsewhere) = (false, true, true);
    for ended in [Ended::Unanswered, Ended::Signalled] {
        assert_eq!(next(&ended, forbidden), Next::Fail, "{ended:?}");
    }
    for ended in [Ended::Connect, Ended::Dns, Ended::Tls, status(500)] {
        assert_eq!(next(&ended, forbidden), Next::Retry, "{ended:?}");
    }
    let unkept = |rules: &mut Rules<'_>| (rules.replayable, rules.last) = (false, true);
    assert_eq!(next(&status(500), unkept), Next::PassOn);
}

// [RETRY-5]
#[test]
fn a_status_that_is_listed_for_one_only_goes_there_only() {
    // 408 is no reason to switch, and 529 none to try again.
    assert_eq!(next(&status(408), |_| ()), Next::Retry);
    assert_eq!(next(&status(529), |rules| rules.last = true), Next::PassOn);
    assert_eq!(next(&status(408), |rules| rules.retry = false), Next::PassOn);
}

// [OUTCOME-9]
#[test]
fn the_first_server_error_of_a_request_counts_for_each_provider_that_gave_one() {
    let on_status = on_status();
    let second = |here: bool| Rules {
        server_error_before: true,
        server_error_here_before: here,
        ..rules(&on_status, None)
    };
    let judged = judge(&status(500), &second(false));
    assert_eq!(
        (judged.health, judged.breaker),
        (Verdict::Neutral, Verdict::Failure)
    );
    let judged = judge(&status(500), &second(true));
    assert_eq!(
        (judged.health, judged.breaker),
        (Verdict::Neutral, Verdict::Neutral)
    );
}
