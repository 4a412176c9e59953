//! The request's column: go on, go elsewhere, or give up.

use super::{Ended, Next, Rules, is_backpressure};

/// What the request does after `ended`.
///
/// Three things decide: whether it may be sent again at all, whether this ending is one that another try may mend, and
/// where that would be best. A provider that has no room, that is too slow, or that asks to be left alone for long is
/// left for the next target; after any other failure an endpoint that has not been tried comes first. The same endpoint
/// again, which takes waiting, is what is left when there is no other target.
///
/// Beside another attempt of the request, all that one more could mend is left to that one. [HEDGE-4]
pub(super) fn next(ended: &Ended, rules: &Rules<'_>) -> Next {
    if !rules.rival {
        return alone(ended, rules);
    }
    let open = Rules {
        last: false,
        retry: true,
        elsewhere: true,
        ..*rules
    };
    match alone(ended, &open) {
        Next::Failover | Next::Retry => Next::Yield,
        decided => decided,
    }
}

fn alone(ended: &Ended, rules: &Rules<'_>) -> Next {
    let may_repeat = rules.replayable && rules.repeatable;
    match *ended {
        Ended::Committed { .. } => Next::Commit,
        // Nothing was sent, so nothing can have been done twice.
        Ended::Connect | Ended::ConnectTimeout | Ended::Dns | Ended::Tls => onward(rules, true, true),
        Ended::NoSocket | Ended::NotSent => onward(rules, true, false),
        Ended::Signalled | Ended::Unanswered if may_repeat => onward(rules, true, true),
        // Switching is the retry; where nobody is left to switch to, a replica may be faster.
        Ended::FirstTokenTimeout { .. } if may_repeat => {
            if rules.last && rules.retry && rules.elsewhere {
                Next::Retry
            } else {
                onward(rules, true, false)
            }
        }
        Ended::ReadTimeout | Ended::VisitDeadline if may_repeat => onward(rules, true, false),
        Ended::BadResponse | Ended::Empty if rules.replayable => onward(rules, true, false),
        // Nothing was done with it, so it may be repeated whatever it is.
        Ended::Refused { again: true } if rules.replayable => Next::RetryFresh,
        Ended::Refused { .. } if rules.replayable => onward(rules, true, true),
        Ended::StaleConnection if may_repeat => Next::RetryFresh,
        Ended::Embedded { code } | Ended::Status { code } => status(code, rules),
        Ended::LateError { .. } => Next::PassOn,
        Ended::BadResponse
        | Ended::Broken
        | Ended::ClientGone
        | Ended::Drained
        | Ended::Empty
        | Ended::FirstTokenTimeout { .. }
        | Ended::Outrun
        | Ended::ReadTimeout
        | Ended::Refused { .. }
        | Ended::Signalled
        | Ended::StaleConnection
        | Ended::TotalDeadline
        | Ended::Unanswered
        | Ended::VisitDeadline => Next::Fail,
    }
}

/// After an answer that says no.
fn status(code: u16, rules: &Rules<'_>) -> Next {
    if !rules.replayable {
        return Next::PassOn;
    }
    let (switch, retry) = (rules.is_listed(code), rules.retry_on_status.contains(code));
    let next = if is_backpressure(code) || rules.asks_for_long {
        target_first(rules, switch, retry)
    } else {
        onward(rules, switch, retry)
    };
    if next == Next::Fail { Next::PassOn } else { next }
}

/// An endpoint that has not been tried, else the next target, else the same provider again; of these what is possible
/// and what this ending is worth.
fn onward(rules: &Rules<'_>, switch: bool, retry: bool) -> Next {
    if retry && rules.retry && rules.elsewhere {
        Next::Retry
    } else {
        target_first(rules, switch, retry)
    }
}

/// The next target, else the same provider again.
fn target_first(rules: &Rules<'_>, switch: bool, retry: bool) -> Next {
    if switch && !rules.last {
        Next::Failover
    } else if retry && rules.retry {
        Next::Retry
    } else {
        Next::Fail
    }
}
