//! The table against a second telling of it, row by row in the words of the specification, over every status and every
//! combination of rules.

use super::*;
use crate::policy::limiter::Sample;

/// One row: what the endpoint's health is told, when the request goes to another target, and what it does otherwise.
struct Row {
    health: Verdict,
    breaker: Option<Verdict>,
    cools: Cools,
    over: Over,
    otherwise: Next,
}

#[derive(Clone, Copy)]
enum Cools {
    Clears,
    Always,
    Listed,
    Never,
}

#[derive(Clone, Copy)]
enum Over {
    Always,
    /// Where the status is listed.
    Listed,
    Never,
    /// Where the request is kept.
    Kept,
    /// Where it is kept and may be sent twice.
    Twice,
}

/// How an ending goes on in the same provider.
#[derive(Clone, Copy, PartialEq)]
enum Again {
    Never,
    /// Only if no other target can be attempted.
    Last,
    /// Only if no other target can be attempted, and on another endpoint.
    LastElsewhere,
    /// On another endpoint first; on the same one only if no other target can be attempted.
    First,
}

fn again(ended: &Ended, rules: &Rules<'_>) -> Again {
    match *ended {
        Ended::Connect | Ended::ConnectTimeout | Ended::Dns | Ended::Tls => Again::First,
        Ended::Signalled | Ended::Unanswered if rules.replayable && rules.repeatable => Again::First,
        Ended::Refused { again: false } if rules.replayable => Again::First,
        Ended::FirstTokenTimeout { .. } if rules.replayable && rules.repeatable => Again::LastElsewhere,
        Ended::Status { code } | Ended::Embedded { code } => {
            if !rules.replayable || !rules.retry_on_status.contains(code) {
                Again::Never
            } else if [429, 503, 529].contains(&code) || rules.asks_for_long {
                Again::Last
            } else {
                Again::First
            }
        }
        _ => Again::Never,
    }
}

fn row(ended: &Ended, rules: &Rules<'_>) -> Row {
    use Verdict::{Failure, Neutral, Success};

    let failed_if = |failed| if failed { Failure } else { Neutral };
    let (health, over, otherwise) = match ended {
        Ended::Committed { .. } => (Success, Over::Never, Next::Commit),
        Ended::Status {
            code: 429 | 503 | 529,
        }
        | Ended::Embedded {
            code: 429 | 503 | 529,
        } => (failed_if(rules.count_backpressure), Over::Listed, Next::PassOn),
        Ended::Status { code: 408 | 499 } | Ended::Embedded { code: 408 | 499 } => {
            (Failure, Over::Listed, Next::PassOn)
        }
        Ended::Status { code: 500.. } | Ended::Embedded { code: 500.. } => {
            (failed_if(!rules.server_error_before), Over::Listed, Next::PassOn)
        }
        Ended::Status { .. } | Ended::Embedded { .. } => (Neutral, Over::Listed, Next::PassOn),
        Ended::Connect | Ended::ConnectTimeout | Ended::Tls => (Failure, Over::Always, Next::Fail),
        Ended::Dns | Ended::NoSocket | Ended::NotSent => (Neutral, Over::Always, Next::Fail),
        Ended::StaleConnection if rules.replayable && rules.repeatable => {
            (Neutral, Over::Never, Next::RetryFresh)
        }
        Ended::Refused { again: true } if rules.replayable => (Neutral, Over::Never, Next::RetryFresh),
        Ended::Refused { .. } => (Neutral, Over::Kept, Next::Fail),
        Ended::Unanswered | Ended::Signalled | Ended::ReadTimeout | Ended::FirstTokenTimeout { .. } => {
            (Failure, Over::Twice, Next::Fail)
        }
        Ended::VisitDeadline => (Neutral, Over::Twice, Next::Fail),
        Ended::Empty | Ended::BadResponse => (Failure, Over::Kept, Next::Fail),
        Ended::Broken => (Failure, Over::Never, Next::Fail),
        Ended::LateError { code } => (failed_if(*code >= 500), Over::Never, Next::PassOn),
        Ended::StaleConnection
        | Ended::ClientGone
        | Ended::Drained
        | Ended::Outrun
        | Ended::TotalDeadline => (Neutral, Over::Never, Next::Fail),
    };
    let cools = match *ended {
        Ended::Committed { .. } => Cools::Clears,
        Ended::Status { code } | Ended::Embedded { code } => match code {
            400 => Cools::Never,
            408 | 429 | 499 | 503 | 529 => Cools::Always,
            _ => Cools::Listed,
        },
        _ if health == Failure
            && !matches!(ended, Ended::Broken | Ended::LateError { .. } | Ended::Signalled) =>
        {
            Cools::Always
        }
        _ => Cools::Never,
    };
    let server_error = match *ended {
        Ended::Status { code } | Ended::Embedded { code } => code >= 500 && ![503, 529].contains(&code),
        _ => false,
    };
    let breaker = match ended {
        Ended::Dns => Some(Failure),
        _ if server_error => Some(failed_if(!rules.server_error_here_before)),
        _ => None,
    };
    Row {
        health,
        breaker,
        cools,
        over,
        otherwise,
    }
}

fn is_breach(ended: &Ended, budget: Duration) -> bool {
    match *ended {
        Ended::Committed { first_data } => first_data.is_some_and(|after| after > budget),
        Ended::FirstTokenTimeout { after } => after >= budget,
        Ended::Status { code } | Ended::Embedded { code } | Ended::LateError { code } => {
            [429, 503, 529].contains(&code)
        }
        _ => false,
    }
}

fn expected(ended: &Ended, rules: &Rules<'_>) -> Judgement {
    let row = row(ended, rules);
    let budget = Params::default().settings().latency_budget;
    let breach = is_breach(ended, budget);
    let share = match *ended {
        _ if rules.steered.is_none() => None,
        _ if breach => Some(Outcome::Breach),
        Ended::Committed { first_data } => first_data.map(|_| Outcome::Healthy),
        _ => Some(Outcome::Unknown),
    };
    let hung = matches!(ended, Ended::FirstTokenTimeout { .. }) && rules.another_endpoint_in;
    let health = match share {
        Some(Outcome::Breach) if hung => Verdict::Failure,
        Some(Outcome::Breach) => Verdict::Neutral,
        _ => row.health,
    };
    let listed = |code| {
        rules.on_status.contains(code)
            || rules
                .realtime_on_status
                .is_some_and(|statuses| statuses.contains(code))
    };
    let goes_on = match (row.over, ended) {
        (Over::Always, _) => true,
        (Over::Kept, _) => rules.replayable,
        (Over::Twice, _) => rules.replayable && rules.repeatable,
        (Over::Listed, Ended::Status { code } | Ended::Embedded { code }) => {
            rules.replayable && listed(*code)
        }
        _ => false,
    };
    let mended = goes_on || again(ended, rules) != Again::Never;
    let switch = goes_on && !rules.last;
    let retry = match again(ended, rules) {
        Again::Never => false,
        Again::Last => !switch,
        Again::LastElsewhere => rules.last && rules.elsewhere,
        Again::First => rules.elsewhere || !switch,
    };
    let breach = share == Some(Outcome::Breach);
    let cools = match (row.cools, ended) {
        (Cools::Clears, _) if !breach => Cooling::Clear,
        (Cools::Always, _) if !breach => Cooling::Start,
        (Cools::Listed, Ended::Status { code } | Ended::Embedded { code }) if !breach && listed(*code) => {
            Cooling::Start
        }
        _ => Cooling::Leave,
    };
    Judgement {
        share,
        health,
        breaker: if breach {
            Verdict::Neutral
        } else {
            row.breaker.unwrap_or(row.health)
        },
        cooldown: cools,
        next: if rules.rival && mended {
            Next::Yield
        } else if retry && rules.retry {
            Next::Retry
        } else if switch {
            Next::Failover
        } else {
            row.otherwise
        },
    }
}

fn endings() -> Vec<Ended> {
    let budget = Params::default().settings().latency_budget;
    let around = [
        Duration::ZERO,
        budget.saturating_sub(Duration::from_nanos(1)),
        budget,
        budget * 2,
    ];
    let mut all = vec![
        Ended::BadResponse,
        Ended::Broken,
        Ended::ClientGone,
        Ended::Committed { first_data: None },
        Ended::Connect,
        Ended::ConnectTimeout,
        Ended::Dns,
        Ended::Drained,
        Ended::Empty,
        Ended::NoSocket,
        Ended::NotSent,
        Ended::Outrun,
        Ended::ReadTimeout,
        Ended::Refused { again: false },
        Ended::Refused { again: true },
        Ended::StaleConnection,
        Ended::Tls,
        Ended::TotalDeadline,
        Ended::Signalled,
        Ended::Unanswered,
        Ended::VisitDeadline,
    ];
    all.extend(around.map(|after| Ended::Committed {
        first_data: Some(after),
    }));
    all.extend(around.map(|after| Ended::FirstTokenTimeout { after }));
    let codes = || {
        (200..=999)
            .step_by(7)
            .chain([400, 408, 429, 499, 500, 502, 503, 504, 529, 599, 600])
    };
    all.extend(codes().map(|code| Ended::Status { code }));
    all.extend(codes().map(|code| Ended::Embedded { code }));
    all.extend(codes().map(|code| Ended::LateError { code }));
    all
}

// [OUTCOME-1] [OUTCOME-2] [OUTCOME-3] [OUTCOME-4] [OUTCOME-5] [OUTCOME-6] [OUTCOME-7] [HEDGE-4]
#[test]
fn the_table_is_the_same_told_row_by_row() {
    let (on_status, realtime, params) = (on_status(), [529].into_iter().collect(), Params::default());
    let retries = [500, 502, 503, 504, 408, 499, 429].into_iter().collect();
    for ended in endings() {
        for flags in 0..8192u32 {
            let flag = |n: u32| flags >> n & 1 == 1;
            let rules = Rules {
                on_status: &on_status,
                realtime_on_status: flag(0).then_some(&realtime),
                last: flag(1),
                replayable: flag(2),
                repeatable: flag(3),
                steered: flag(4).then_some(&params),
                another_endpoint_in: flag(5),
                server_error_before: flag(6),
                count_backpressure: flag(7),
                retry_on_status: &retries,
                retry: flag(8),
                elsewhere: flag(9),
                asks_for_long: flag(10),
                server_error_here_before: flag(11),
                rival: flag(12),
            };
            assert_eq!(
                judge(&ended, &rules),
                expected(&ended, &rules),
                "of {ended:?} under {rules:?}"
            );
        }
    }
}

// [LIMITER-3]
#[test]
fn what_speaks_for_a_lower_limit_is_what_fails_an_endpoint_and_what_says_not_now() {
    let (on_status, elapsed) = (on_status(), Duration::from_millis(7));
    for ended in endings() {
        let rules = Rules {
            count_backpressure: true,
            ..rules(&on_status, None)
        };
        let not_now = matches!(
            ended,
            Ended::LateError {
                code: 429 | 503 | 529
            }
        );
        let wanted = match judge(&ended, &rules).health {
            Verdict::Success => Some(Sample::Committed(elapsed)),
            Verdict::Failure => Some(Sample::Failed),
            Verdict::Neutral => not_now.then_some(Sample::Failed),
        };
        assert_eq!(load(&ended, elapsed), wanted, "of {ended:?}");
    }
}

// [OUTCOME-8]
#[test]
fn after_commit_there_is_never_another_attempt() {
    let on_status = StatusSet::from_ranges([400..=599]);
    let rules = rules(&on_status, None);
    let late = |ended: &Ended| {
        matches!(
            ended,
            Ended::Committed { .. } | Ended::Broken | Ended::LateError { .. } | Ended::ClientGone
        )
    };
    for ended in endings().iter().filter(|ended| late(ended)) {
        let next = judge(ended, &rules).next;
        assert!(
            !matches!(next, Next::Failover | Next::Retry | Next::RetryFresh),
            "{next:?} of {ended:?}"
        );
    }
}
