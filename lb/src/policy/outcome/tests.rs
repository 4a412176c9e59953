//! Every row of the outcome table, and what bends it.

use super::*;
use crate::policy::aimd::{Outcome, Params};
use crate::policy::draw::Draw;
use crate::policy::health::{self, Ejection, Health, Standing};
use crate::policy::time::Instant;

mod model;
mod retry;
mod rival;

const LATE: Duration = Duration::from_secs(20);

/// The default lists of a model.
fn on_status() -> StatusSet {
    [429, 499, 500, 502, 503, 504].into_iter().collect()
}

/// The rules of an attempt with everything in favour of going on, counted by `steered`.
fn rules<'a>(on_status: &'a StatusSet, steered: Option<&'a Params>) -> Rules<'a> {
    Rules {
        on_status,
        realtime_on_status: None,
        retry_on_status: &StatusSet::NONE,
        last: false,
        retry: false,
        elsewhere: false,
        rival: false,
        asks_for_long: false,
        replayable: true,
        repeatable: true,
        steered,
        another_endpoint_in: true,
        server_error_before: false,
        server_error_here_before: false,
        count_backpressure: false,
    }
}

const fn status(code: u16) -> Ended {
    Ended::Status { code }
}

/// An ending, and what it is to health, breaker, cooldown and request.
type Row = (Ended, Verdict, Verdict, Cooling, Next);

fn answers() -> Vec<Row> {
    use Cooling::{Clear, Leave, Start};
    use Next::{Commit, Failover, PassOn};
    use Verdict::{Failure, Neutral, Success};

    let embedded = |code| Ended::Embedded { code };
    let late = |code| Ended::LateError { code };
    let first_data = Some(Duration::from_secs(1));
    let in_time = Ended::Committed { first_data };
    let unseen = Ended::Committed { first_data: None };
    vec![
        // 2xx/3xx, stream committed
        (in_time, Success, Success, Clear, Commit),
        (unseen, Success, Success, Clear, Commit),
        // 5xx, listed and not
        (status(500), Failure, Failure, Start, Failover),
        (status(502), Failure, Failure, Start, Failover),
        (status(504), Failure, Failure, Start, Failover),
        (status(501), Failure, Failure, Leave, PassOn),
        (embedded(500), Failure, Failure, Start, Failover),
        // 408 and 499 from upstream
        (status(408), Failure, Failure, Start, PassOn),
        (status(499), Failure, Failure, Start, Failover),
        // Other 4xx
        (status(400), Neutral, Neutral, Leave, PassOn),
        (status(401), Neutral, Neutral, Leave, PassOn),
        (embedded(400), Neutral, Neutral, Leave, PassOn),
        // After commit
        (late(500), Failure, Failure, Leave, PassOn),
        (late(400), Neutral, Neutral, Leave, PassOn),
    ]
}

fn failures() -> Vec<Row> {
    use Cooling::{Leave, Start};
    use Next::{Fail, Failover, RetryFresh};
    use Verdict::{Failure, Neutral};

    let after = Duration::from_secs(1);
    let too_slow = Ended::FirstTokenTimeout { after };
    vec![
        // No connection
        (Ended::Connect, Failure, Failure, Start, Failover),
        (Ended::ConnectTimeout, Failure, Failure, Start, Failover),
        (Ended::Tls, Failure, Failure, Start, Failover),
        (Ended::Dns, Neutral, Failure, Leave, Failover),
        // A reused connection that broke, at once and later
        (Ended::StaleConnection, Neutral, Neutral, Leave, RetryFresh),
        (Ended::Unanswered, Failure, Failure, Start, Failover),
        // Refused before anything was done
        (
            Ended::Refused { again: true },
            Neutral,
            Neutral,
            Leave,
            RetryFresh,
        ),
        (Ended::Refused { again: false }, Neutral, Neutral, Leave, Failover),
        // The kernel saw it die
        (Ended::Signalled, Failure, Failure, Leave, Failover),
        // Timeouts
        (Ended::ReadTimeout, Failure, Failure, Start, Failover),
        (too_slow, Failure, Failure, Start, Failover),
        // After commit
        (Ended::Broken, Failure, Failure, Leave, Fail),
        // Nothing usable
        (Ended::Empty, Failure, Failure, Start, Failover),
        (Ended::BadResponse, Failure, Failure, Start, Failover),
        // Ours or the client's doing
        (Ended::ClientGone, Neutral, Neutral, Leave, Fail),
        (Ended::Drained, Neutral, Neutral, Leave, Fail),
        (Ended::NoSocket, Neutral, Neutral, Leave, Failover),
        (Ended::NotSent, Neutral, Neutral, Leave, Failover),
        (Ended::Outrun, Neutral, Neutral, Leave, Fail),
        (Ended::TotalDeadline, Neutral, Neutral, Leave, Fail),
        (Ended::VisitDeadline, Neutral, Neutral, Leave, Failover),
    ]
}

// [OUTCOME-1] [AIMD-10]
#[test]
fn every_row_of_the_table_is_what_it_says() {
    let (on_status, params) = (on_status(), Params::default());
    for (ended, health, breaker, cooldown, next) in answers().into_iter().chain(failures()) {
        let expected = Judgement {
            share: match ended {
                Ended::Committed { first_data } => first_data.map(|_| Outcome::Healthy),
                _ => Some(Outcome::Unknown),
            },
            health,
            breaker,
            cooldown,
            next,
        };
        let judgement = judge(&ended, &rules(&on_status, Some(&params)));
        assert_eq!(judgement, expected, "of {ended:?}");
    }
}

// [OUTCOME-1]
#[test]
fn backpressure_is_a_failure_only_where_it_is_made_one() {
    let on_status = on_status();
    for code in [429, 503, 529] {
        let lenient = rules(&on_status, None);
        assert_eq!(
            judge(&status(code), &lenient).health,
            Verdict::Neutral,
            "of {code}"
        );
        let strict = Rules {
            count_backpressure: true,
            ..lenient
        };
        assert_eq!(
            judge(&status(code), &strict).health,
            Verdict::Failure,
            "of {code}"
        );
    }
}

// [AIMD-27]
#[test]
fn an_attempt_that_no_controller_counts_tells_the_share_nothing() {
    let on_status = on_status();
    for ended in [
        status(529),
        Ended::Committed {
            first_data: Some(LATE),
        },
        Ended::FirstTokenTimeout { after: LATE },
    ] {
        assert_eq!(
            judge(&ended, &rules(&on_status, None)).share,
            None,
            "of {ended:?}"
        );
    }
}

// [AIMD-9] [AIMD-27]
#[test]
fn an_overload_is_a_breach_whether_or_not_it_fails_over() {
    let (on_status, nothing, params) = (on_status(), StatusSet::default(), Params::default());
    for code in [429, 503, 529] {
        for listed in [&on_status, &nothing] {
            for last in [false, true] {
                for ended in [status(code), Ended::Embedded { code }, Ended::LateError { code }] {
                    let rules = Rules {
                        last,
                        ..rules(listed, Some(&params))
                    };
                    assert_eq!(
                        judge(&ended, &rules).share,
                        Some(Outcome::Breach),
                        "{ended:?}, last {last}"
                    );
                }
            }
        }
    }
}

// [OUTCOME-2]
#[test]
fn what_the_share_counts_as_a_breach_is_nothing_to_health() {
    let (on_status, params) = (on_status(), Params::default());
    let steered = Rules {
        count_backpressure: true,
        ..rules(&on_status, Some(&params))
    };
    for ended in [
        status(529),
        Ended::Embedded { code: 503 },
        Ended::LateError { code: 529 },
    ] {
        assert_eq!(judge(&ended, &steered).health, Verdict::Neutral, "of {ended:?}");
        let free = Rules {
            steered: None,
            ..steered
        };
        assert_eq!(judge(&ended, &free).health, Verdict::Failure, "of {ended:?}");
    }
    let late = Ended::Committed {
        first_data: Some(LATE),
    };
    assert_eq!(judge(&late, &steered).health, Verdict::Neutral);
    assert_eq!(judge(&late, &steered).next, Next::Commit);
}

// [OUTCOME-3]
#[test]
fn a_first_token_deadline_is_an_endpoint_failure_only_while_another_endpoint_is_in() {
    let (on_status, params) = (on_status(), Params::default());
    let breach = Ended::FirstTokenTimeout { after: LATE };
    let among_others = rules(&on_status, Some(&params));
    assert_eq!(judge(&breach, &among_others).health, Verdict::Failure);
    let alone = Rules {
        another_endpoint_in: false,
        ..among_others
    };
    assert_eq!(judge(&breach, &alone).health, Verdict::Neutral);
    // What the share does not count goes by the table, alone or not.
    let below_the_budget = Ended::FirstTokenTimeout {
        after: Duration::from_secs(1),
    };
    assert_eq!(judge(&below_the_budget, &alone).health, Verdict::Failure);
    assert_eq!(
        judge(
            &breach,
            &Rules {
                steered: None,
                ..alone
            }
        )
        .health,
        Verdict::Failure
    );
}

// [OUTCOME-4]
#[test]
fn a_listed_status_fails_over_and_the_last_response_is_passed_on() {
    let on_status = on_status();
    for ended in [status(503), Ended::Embedded { code: 503 }] {
        let more = rules(&on_status, None);
        assert_eq!(judge(&ended, &more).next, Next::Failover);
        assert_eq!(judge(&ended, &Rules { last: true, ..more }).next, Next::PassOn);
        assert_eq!(
            judge(
                &ended,
                &Rules {
                    replayable: false,
                    ..more
                }
            )
            .next,
            Next::PassOn
        );
    }
}

// [OUTCOME-5]
#[test]
fn realtime_statuses_fail_over_only_without_the_exempt_header_and_where_a_target_is_left() {
    let (on_status, realtime) = (on_status(), [529].into_iter().collect());
    let exempt = rules(&on_status, None);
    assert_eq!(judge(&status(529), &exempt).next, Next::PassOn);
    let not_exempt = Rules {
        realtime_on_status: Some(&realtime),
        ..exempt
    };
    assert_eq!(judge(&status(529), &not_exempt).next, Next::Failover);
    assert_eq!(
        judge(
            &status(529),
            &Rules {
                last: true,
                ..not_exempt
            }
        )
        .next,
        Next::PassOn
    );
    assert_eq!(judge(&status(500), &not_exempt).next, Next::Failover);
}

// [OUTCOME-6]
#[test]
fn what_was_sent_decides_what_may_be_repeated() {
    use Next::{Fail, Failover, RetryFresh};

    let on_status = on_status();
    let deadline = Ended::FirstTokenTimeout { after: LATE };
    //                              kept, not to be repeated · not kept · neither
    let cases = [
        (Ended::Connect, [Failover, Failover, Failover]),
        (Ended::ConnectTimeout, [Failover, Failover, Failover]),
        (Ended::Tls, [Failover, Failover, Failover]),
        (Ended::Dns, [Failover, Failover, Failover]),
        (Ended::NoSocket, [Failover, Failover, Failover]),
        (Ended::NotSent, [Failover, Failover, Failover]),
        (Ended::Signalled, [Fail, Fail, Fail]),
        (Ended::Unanswered, [Fail, Fail, Fail]),
        (Ended::ReadTimeout, [Fail, Fail, Fail]),
        (Ended::StaleConnection, [Fail, Fail, Fail]),
        (deadline, [Fail, Fail, Fail]),
        (Ended::Empty, [Failover, Fail, Fail]),
        (Ended::BadResponse, [Failover, Fail, Fail]),
    ];
    let may = rules(&on_status, None);
    for (ended, expected) in cases {
        let unrepeatable = Rules {
            repeatable: false,
            ..may
        };
        let unkept = Rules {
            replayable: false,
            ..may
        };
        let neither = Rules {
            replayable: false,
            repeatable: false,
            ..may
        };
        let next = [unrepeatable, unkept, neither].map(|rules| judge(&ended, &rules).next);
        assert_eq!(next, expected, "of {ended:?}");
        let last = judge(&ended, &Rules { last: true, ..may }).next;
        let at_the_end = if ended == Ended::StaleConnection {
            RetryFresh
        } else {
            Fail
        };
        assert_eq!(last, at_the_end, "of {ended:?} on the last target");
    }
}

// [OUTCOME-7]
#[test]
fn only_the_first_server_error_of_a_request_counts_against_an_endpoint() {
    let on_status = on_status();
    let first = rules(&on_status, None);
    let second = Rules {
        server_error_before: true,
        ..first
    };
    for ended in [status(500), Ended::Embedded { code: 502 }, status(600)] {
        assert!(ended.is_server_error());
        assert_eq!(judge(&ended, &first).health, Verdict::Failure, "of {ended:?}");
        assert_eq!(judge(&ended, &second).health, Verdict::Neutral, "of {ended:?}");
    }
    // Anything else that fails is still the endpoint's own.
    for ended in [
        status(408),
        Ended::Connect,
        Ended::ReadTimeout,
        Ended::LateError { code: 500 },
    ] {
        assert!(!ended.is_server_error());
        assert_eq!(judge(&ended, &second).health, Verdict::Failure, "of {ended:?}");
    }
    assert!(!status(503).is_server_error());
    assert!(!status(429).is_server_error());
}

/// An endpoint that `count` requests end at as `ended` says.
fn endpoint_after(count: usize, ended: &Ended, rules: &Rules<'_>) -> Standing {
    let mut endpoint = Health::new(health::Params::default());
    for _ in 0..count {
        let Some(permit) = endpoint.acquire(Instant::default()) else {
            break;
        };
        let ejection = Ejection {
            allowed: true,
            jitter: Draw::default(),
        };
        let _transition = endpoint.release(Instant::default(), permit, judge(ended, rules).health, ejection);
    }
    endpoint.standing(Instant::default())
}

// [OUTCOME-1] Field faults K1 and K3.
#[test]
fn neither_bad_requests_nor_backpressure_eject_an_endpoint() {
    let on_status = on_status();
    for code in [400, 404, 413, 422, 429, 503, 529] {
        let standing = endpoint_after(100, &status(code), &rules(&on_status, None));
        assert_eq!(standing, Standing::Healthy, "after 100 times {code}");
    }
    let standing = endpoint_after(100, &status(500), &rules(&on_status, None));
    assert!(matches!(standing, Standing::Ejected { .. }));
}

// [OUTCOME-3]
#[test]
fn the_last_endpoint_in_is_never_ejected_by_deadlines_that_the_share_answers() {
    let (on_status, params) = (on_status(), Params::default());
    let among_others = rules(&on_status, Some(&params));
    let hung = Ended::FirstTokenTimeout { after: LATE };
    assert!(matches!(
        endpoint_after(100, &hung, &among_others),
        Standing::Ejected { .. }
    ));
    let alone = Rules {
        another_endpoint_in: false,
        ..among_others
    };
    assert_eq!(endpoint_after(100, &hung, &alone), Standing::Healthy);
}
