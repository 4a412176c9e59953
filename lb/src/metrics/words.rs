//! The closed sets of label values.

/// How a request ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOutcome {
    /// The client left first.
    Cancelled,
    /// Answered with an error, lb's own or the last target's.
    Failed,
    /// A response was relayed to its end.
    Ok,
    /// The stream broke after it was committed.
    Truncated,
}

impl RequestOutcome {
    /// The label's value, and the word of the access log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Ok => "ok",
            Self::Truncated => "truncated",
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The client left, or the attempt was dropped.
    Cancelled,
    /// Connecting failed or took too long.
    Connect,
    /// The stream ended before its first event.
    Empty,
    /// An error event before the first data frame.
    Embedded,
    /// The first-token deadline passed.
    FirstTokenTimeout,
    /// This machine had no socket for it.
    NoSocket,
    /// The response was committed.
    Ok,
    /// The attempt beside it answered first.
    Outrun,
    /// A response that was no valid HTTP.
    Protocol,
    /// Turned down by GOAWAY or `REFUSED_STREAM` before it was looked at.
    Refused,
    /// The kernel saw its connection die.
    Signalled,
    /// A reused connection turned out dead.
    Stale,
    /// An error status.
    Status,
    /// The response head did not come in time.
    Timeout,
    /// Sent, and the connection broke without an answer.
    Unanswered,
}

impl AttemptOutcome {
    /// All outcomes, in the order of their discriminants.
    pub const ALL: [Self; 15] = [
        Self::Cancelled,
        Self::Connect,
        Self::Empty,
        Self::Embedded,
        Self::FirstTokenTimeout,
        Self::NoSocket,
        Self::Ok,
        Self::Outrun,
        Self::Protocol,
        Self::Refused,
        Self::Signalled,
        Self::Stale,
        Self::Status,
        Self::Timeout,
        Self::Unanswered,
    ];

    /// The label's value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Connect => "connect",
            Self::Empty => "empty",
            Self::Embedded => "embedded_error",
            Self::FirstTokenTimeout => "first_token_timeout",
            Self::NoSocket => "no_socket",
            Self::Ok => "ok",
            Self::Outrun => "outrun",
            Self::Protocol => "protocol",
            Self::Refused => "refused",
            Self::Signalled => "kernel_signal",
            Self::Stale => "stale_connection",
            Self::Status => "status",
            Self::Timeout => "timeout",
            Self::Unanswered => "unanswered",
        }
    }
}

/// What a second attempt beside a slow one came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HedgeOutcome {
    /// Not made: the retry budget is used up.
    Budget,
    /// Its client left, or a deadline cut both.
    Cancelled,
    /// It failed.
    Failed,
    /// The first answered before it did.
    Lost,
    /// Not made: there is no other endpoint that takes it.
    Room,
    /// It answered.
    Won,
}

impl HedgeOutcome {
    /// All outcomes, in the order of their discriminants.
    pub const ALL: [Self; 6] = [
        Self::Budget,
        Self::Cancelled,
        Self::Failed,
        Self::Lost,
        Self::Room,
        Self::Won,
    ];

    /// The label's value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Lost => "lost",
            Self::Room => "room",
            Self::Won => "won",
        }
    }
}

/// What a retry in a provider came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryOutcome {
    /// Not made: the budget is used up.
    Budget,
    /// Not made: a deadline would have passed meanwhile.
    Deadline,
    /// Made.
    Sent,
}

impl RetryOutcome {
    /// All outcomes, in the order of their discriminants.
    pub const ALL: [Self; 3] = [Self::Budget, Self::Deadline, Self::Sent];

    /// The label's value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Deadline => "deadline",
            Self::Sent => "sent",
        }
    }
}

/// A target's place in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Any but the first.
    Alternate,
    /// The first in definition order.
    Preferred,
}

impl Role {
    /// The label's value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Alternate => "alternate",
            Self::Preferred => "preferred",
        }
    }
}
