//! What the ending of an attempt means: the one table that every mechanism is told by.
//!
//! The data path reports what it saw as an [`Ended`] and judges nothing; [`judge`] says what it is to the share, to the
//! endpoint's health, to the provider's breaker, to the cooldown and to the request. Keeping the columns side by side is what keeps them from contradicting each
//! other: an overload that moves the share, for one, must not also eject the endpoint, or the switch would bring back
//! the oscillation that the share is there to end.

use std::time::Duration;

use super::aimd;
use super::health::Verdict;

mod load;
mod next;
mod status;

pub use load::load;
use next::next;
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
    /// This machine had no socket to send it with: it is out of descriptors, ports or memory.
    NoSocket,
    /// A local limit, or another request that was faster, kept the attempt from being sent.
    NotSent,
    /// The attempt that ran beside it, one of the two being the other's hedge, answered first.
    Outrun,
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
    /// The total deadline of the provider's visit cut the attempt.
    VisitDeadline,
}

/// What the table needs to know beside the ending.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts of one attempt, named where they are given"
)]
pub struct Rules<'a> {
    /// Statuses that go to the next target.
    pub on_status: &'a StatusSet,
    /// Statuses that do so beside these; `None` for a request with the exempt header.
    pub realtime_on_status: Option<&'a StatusSet>,
    /// Statuses that are tried again in the same provider.
    pub retry_on_status: &'a StatusSet,
    /// Whether no other target can be attempted ([`super::cascade::Cascade::has_next`]).
    pub last: bool,
    /// Whether the provider can be tried again: its tries, its budget and the deadlines allow it.
    pub retry: bool,
    /// Whether that would be at an endpoint which this request has not tried.
    pub elsewhere: bool,
    /// Whether another attempt of the request is under way beside this one: it is what comes next.
    pub rival: bool,
    /// Whether the response asks to be left alone for longer than any backoff lasts.
    pub asks_for_long: bool,
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
    /// Whether an endpoint of this provider has.
    pub server_error_here_before: bool,
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
    /// To the provider's breaker.
    pub breaker: Verdict,
    /// To the cooldown of the model at the endpoint.
    pub cooldown: Cooling,
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
    /// Asks the cascade for the next target.
    Failover,
    /// Ends with this response as it was sent.
    PassOn,
    /// Tries the same provider again, on another endpoint where there is one.
    Retry,
    /// Tries the same endpoint again at once on a new connection, free of charge. It can come only once in a row, since
    /// a new connection is never stale, and none that is refused on one asks for another.
    RetryFresh,
    /// Leaves the answer to the attempt that is under way beside this one.
    Yield,
}

/// What an ending does to a cooldown.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Cooling {
    /// Ends it.
    Clear,
    /// Nothing.
    Leave,
    /// Starts it, or has it last longer.
    Start,
}

impl Rules<'_> {
    /// Whether a response with this status goes to the next target.
    fn is_listed(&self, code: u16) -> bool {
        let realtime = || self.realtime_on_status.is_some_and(|more| more.contains(code));
        self.on_status.contains(code) || realtime()
    }
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
    let next = next(ended, rules);
    if share == Some(aimd::Outcome::Breach) {
        return Judgement {
            share,
            health: answered_by_the_share(ended, rules),
            breaker: Verdict::Neutral,
            cooldown: Cooling::Leave,
            next,
        };
    }
    Judgement {
        share,
        health: health_verdict(ended, rules),
        breaker: breaker_verdict(ended, rules),
        cooldown: cooling(ended, rules),
        next,
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
        | Ended::NoSocket
        | Ended::NotSent
        | Ended::Outrun
        | Ended::Refused { .. }
        | Ended::StaleConnection
        | Ended::TotalDeadline
        | Ended::VisitDeadline => Verdict::Neutral,
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

/// The breaker's column: as health's, but for what is about the provider and not about any one address.
fn breaker_verdict(ended: &Ended, rules: &Rules<'_>) -> Verdict {
    match ended {
        Ended::Dns => Verdict::Failure,
        // One request adds at most one of these to a provider, at however many of its endpoints it was tried.
        _ if ended.is_server_error() => failure_if(!rules.server_error_here_before),
        _ => health_verdict(ended, rules),
    }
}

/// The cooldown's column.
fn cooling(ended: &Ended, rules: &Rules<'_>) -> Cooling {
    let start_if = |cools: bool| if cools { Cooling::Start } else { Cooling::Leave };
    match *ended {
        Ended::Committed { .. } => Cooling::Clear,
        Ended::BadResponse
        | Ended::Connect
        | Ended::ConnectTimeout
        | Ended::Empty
        | Ended::FirstTokenTimeout { .. }
        | Ended::ReadTimeout
        | Ended::Tls
        | Ended::Unanswered => Cooling::Start,
        Ended::Embedded { code } | Ended::Status { code } => start_if(match code {
            // It judges one request, and clients are strangers to each other.
            400 => false,
            408 | 499 => true,
            _ => is_backpressure(code) || rules.is_listed(code),
        }),
        Ended::Broken
        | Ended::ClientGone
        | Ended::Dns
        | Ended::Drained
        | Ended::LateError { .. }
        | Ended::NoSocket
        | Ended::NotSent
        | Ended::Outrun
        | Ended::Refused { .. }
        | Ended::Signalled
        | Ended::StaleConnection
        | Ended::TotalDeadline
        | Ended::VisitDeadline => Cooling::Leave,
    }
}

/// What a breach that the share has been told is to endpoint health: nothing, but for a deadline where another endpoint
/// is in. The share steers between providers, health between replicas: one that hangs must not move the whole share,
/// and the last one in is never ejected for being slow.
fn answered_by_the_share(ended: &Ended, rules: &Rules<'_>) -> Verdict {
    failure_if(matches!(ended, Ended::FirstTokenTimeout { .. }) && rules.another_endpoint_in)
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
