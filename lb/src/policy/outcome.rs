//! What the ending of an attempt means: the one table that every mechanism is told by.
//!
//! The data path reports what it saw as an [`Ended`] and judges nothing; [`judge`] says what it is to the share, to the
//! endpoint's health and to the request. Keeping the columns side by side is what keeps them from contradicting each
//! other: an overload that moves the share, for one, must not also eject the endpoint, or the switch would bring back
//! the oscillation that the share is there to end.

use std::time::Duration;

use super::aimd;
use super::health::Verdict;

mod load;
mod status;

pub use load::load;
pub use status::StatusSet;

/// How an attempt came to its decisive event, as seen by the data path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ended {
    /// The upstream's response head cannot be understood.
    BadResponse,
    /// After commit: the response broke or stalled.
    Broken,
    /// The client went away.
    ClientGone,
    /// The response is committed to the client.
    Committed {
        /// When its first data frame came, counted from the attempt's start; `None` if none was seen: not an event
        /// stream, a peek that came to a cap, or a model whose responses are not peeked at.
        first_data: Option<Duration>,
    },
    /// No connection: refused, unreachable or reset before it stood.
    Connect,
    /// No connection in time.
    ConnectTimeout,
    /// The endpoint's name did not resolve.
    Dns,
    /// We are shutting down, or the endpoint was taken away, before commit.
    Drained,
    /// Before commit: an error event in the stream, with the status that it stands for.
    Embedded {
        /// 400 to 599.
        code: u16,
    },
    /// Before commit: the stream ended with neither data nor `[DONE]`.
    Empty,
    /// The first-token deadline cut the attempt.
    FirstTokenTimeout {
        /// How long after the attempt's start.
        after: Duration,
    },
    /// After commit: an error event in the stream, with the status that it stands for.
    LateError {
        /// 400 to 599.
        code: u16,
    },
    /// A local limit, or another request that was faster, kept the attempt from being sent.
    NotSent,
    /// No response head in time.
    ReadTimeout,
    /// The upstream said that it has not looked at the request (GOAWAY, `REFUSED_STREAM`), or the connection that it was
    /// to share was over before it could be sent.
    Refused {
        /// Whether a fresh connection may do, because this was not one.
        again: bool,
    },
    /// The kernel saw the connection die, before any byte of a response; the socket itself would have known it later.
    Signalled,
    /// A reused connection broke as soon as it was written to, with no response byte: it had been closed meanwhile.
    StaleConnection,
    /// A response head with an error status.
    Status {
        /// As sent.
        code: u16,
    },
    /// TLS was not agreed on.
    Tls,
    /// The cascade's total deadline cut the attempt.
    TotalDeadline,
    /// The connection broke after the request was sent, with no response byte.
    Unanswered,
}

/// What the table needs to know beside the ending.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "six independent facts of one attempt, named where they are given"
)]
pub struct Rules<'a> {
    /// Statuses that go to the next target.
    pub on_status: &'a StatusSet,
    /// Statuses that do so beside these; `None` for a request with the exempt header.
    pub realtime_on_status: Option<&'a StatusSet>,
    /// Whether no other attempt is possible ([`super::cascade::Cascade::has_next`]).
    pub last: bool,
    /// Whether the whole request is still at hand, to be sent again.
    pub replayable: bool,
    /// Whether a request that was sent and not answered may be repeated, by its method, path and
    /// `retry_unanswered_posts`.
    pub repeatable: bool,
    /// The settings of the controller that counts this attempt, until it has been told its outcome.
    pub steered: Option<&'a aimd::Params>,
    /// Whether another endpoint of the same provider is in.
    pub another_endpoint_in: bool,
    /// Whether an endpoint has answered this request with a [server error](Ended::is_server_error) before.
    pub server_error_before: bool,
    /// Whether 429, 503 and 529 count as failures.
    pub count_backpressure: bool,
}

/// What an ending means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub struct Judgement {
    /// To the share: what to tell the controller, once. `None` if no controller counts the attempt, or if its outcome
    /// is still open after this: then the first data frame decides it ([`aimd::Params::on_first_data`]), or, where
    /// none comes, the end of the attempt as unknown.
    pub share: Option<aimd::Outcome>,
    /// To the endpoint's health.
    pub health: Verdict,
    /// To the request.
    pub next: Next,
}

/// What the request does next.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Next {
    /// Goes on with this response; there is never another attempt.
    Commit,
    /// Ends with an error of our own, as far as there is anyone to tell.
    Fail,
    /// Asks the cascade for another attempt.
    Failover,
    /// Ends with this response as it was sent.
    PassOn,
    /// Tries the same endpoint again at once on a new connection, free of charge. It can come only once in a row, since
    /// a new connection is never stale, and none that is refused on one asks for another.
    RetryFresh,
}

impl Ended {
    /// Whether the upstream answered that it failed at this request, as opposed to having no room for it.
    ///
    /// Within one request only the first such answer counts against an endpoint: a request that breaks every server it
    /// meets must not eject them all.
    pub const fn is_server_error(&self) -> bool {
        match self {
            Self::Status { code } | Self::Embedded { code } => *code >= 500 && !is_backpressure(*code),
            _ => false,
        }
    }
}

/// Works out what `ended` means under `rules`.
pub fn judge(ended: &Ended, rules: &Rules<'_>) -> Judgement {
    let share = rules.steered.and_then(|params| share_outcome(ended, params));
    let table = health_verdict(ended, rules);
    let health = if share == Some(aimd::Outcome::Breach) {
        answered_by_the_share(ended, rules)
    } else {
        table
    };
    Judgement {
        share,
        health,
        next: next(ended, rules),
    }
}

/// The share's column. `None` where the outcome stays open.
fn share_outcome(ended: &Ended, params: &aimd::Params) -> Option<aimd::Outcome> {
    match *ended {
        Ended::Committed { first_data } => first_data.map(|after| params.on_first_data(after)),
        Ended::FirstTokenTimeout { after } => Some(params.on_deadline(after)),
        Ended::Status { code } | Ended::Embedded { code } | Ended::LateError { code } => {
            Some(params.on_status(code))
        }
        _ => Some(aimd::Outcome::Unknown),
    }
}

/// The health column, for what the share does not answer.
fn health_verdict(ended: &Ended, rules: &Rules<'_>) -> Verdict {
    match *ended {
        Ended::Committed { .. } => Verdict::Success,
        Ended::BadResponse
        | Ended::Broken
        | Ended::Connect
        | Ended::ConnectTimeout
        | Ended::Empty
        | Ended::FirstTokenTimeout { .. }
        | Ended::ReadTimeout
        | Ended::Signalled
        | Ended::Tls
        | Ended::Unanswered => Verdict::Failure,
        // A name that does not resolve is no fault of any one address.
        Ended::ClientGone
        | Ended::Dns
        | Ended::Drained
        | Ended::NotSent
        | Ended::Refused { .. }
        | Ended::StaleConnection
        | Ended::TotalDeadline => Verdict::Neutral,
        Ended::LateError { code } => failure_if(code >= 500),
        Ended::Embedded { code } | Ended::Status { code } => {
            let failed = match code {
                _ if is_backpressure(code) => rules.count_backpressure,
                408 | 499 => true,
                _ => ended.is_server_error() && !rules.server_error_before,
            };
            failure_if(failed)
        }
    }
}

/// What a breach that the share has been told is to endpoint health: nothing, but for a deadline where another endpoint
/// is in. The share steers between providers, health between replicas: one that hangs must not move the whole share,
/// and the last one in is never ejected for being slow.
fn answered_by_the_share(ended: &Ended, rules: &Rules<'_>) -> Verdict {
    failure_if(matches!(ended, Ended::FirstTokenTimeout { .. }) && rules.another_endpoint_in)
}

/// The request's column.
fn next(ended: &Ended, rules: &Rules<'_>) -> Next {
    let failover_if = |may_be_sent_again: bool| {
        if may_be_sent_again && !rules.last {
            Next::Failover
        } else {
            Next::Fail
        }
    };
    match *ended {
        Ended::Committed { .. } => Next::Commit,
        // Nothing was sent, so nothing can have been done twice.
        Ended::Connect | Ended::ConnectTimeout | Ended::Dns | Ended::NotSent | Ended::Tls => {
            failover_if(true)
        }
        Ended::FirstTokenTimeout { .. } | Ended::ReadTimeout | Ended::Signalled | Ended::Unanswered => {
            failover_if(rules.replayable && rules.repeatable)
        }
        // Nothing was done with it, so it may be repeated whatever it is.
        Ended::Refused { again: true } if rules.replayable => Next::RetryFresh,
        Ended::BadResponse | Ended::Empty | Ended::Refused { .. } => failover_if(rules.replayable),
        Ended::StaleConnection if rules.replayable && rules.repeatable => Next::RetryFresh,
        Ended::Embedded { code } | Ended::Status { code } => {
            let listed = rules.on_status.contains(code)
                || rules
                    .realtime_on_status
                    .is_some_and(|realtime| realtime.contains(code));
            if listed && rules.replayable && !rules.last {
                Next::Failover
            } else {
                Next::PassOn
            }
        }
        Ended::LateError { .. } => Next::PassOn,
        Ended::Broken
        | Ended::ClientGone
        | Ended::Drained
        | Ended::StaleConnection
        | Ended::TotalDeadline => Next::Fail,
    }
}

/// Whether the status says "not now" rather than "not well".
const fn is_backpressure(code: u16) -> bool {
    matches!(code, 429 | 503 | 529)
}

const fn failure_if(failed: bool) -> Verdict {
    if failed {
        Verdict::Failure
    } else {
        Verdict::Neutral
    }
}

#[cfg(test)]
mod tests;
