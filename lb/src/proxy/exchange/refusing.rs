//! What it is called when nothing comes of an attempt, and what a client is told when nothing is left to try.

use crate::net;
use crate::policy::cascade::Stop;
use crate::policy::outcome::Ended;
use crate::policy::time::Instant;
use crate::proxy::error::Refusal;
use crate::upstream::Refused;

/// Why a request is refused that finds every target full.
pub(super) fn full(refused: Refused) -> Refusal {
    if !refused.by_rate {
        return Refusal::ConcurrencyLimit;
    }
    let part = u64::from(refused.retry_after.subsec_nanos() > 0);
    Refusal::RateLimit {
        retry_after: (refused.retry_after.as_secs() + part).max(1),
    }
}

/// Why nothing is left to try, as the client is told.
pub(super) fn refusal(stop: Stop, last: Option<Ended>, now: Instant) -> Refusal {
    match stop {
        Stop::Exhausted => last.map_or(Refusal::Exhausted { status: None }, |ended| refused(&ended, None)),
        Stop::Full => Refusal::ConcurrencyLimit,
        Stop::Barred { until } => Refusal::Barred {
            left: until.since(now),
        },
        Stop::Out => Refusal::NoProvider,
    }
}

/// What the client is told of a last attempt that left no response; `before` is how the one before it ended.
pub(super) fn refused(ended: &Ended, before: Option<Ended>) -> Refusal {
    match ended {
        Ended::Drained => Refusal::Draining,
        Ended::Empty => Refusal::UpstreamEmpty,
        Ended::FirstTokenTimeout { .. }
        | Ended::ReadTimeout
        | Ended::TotalDeadline
        | Ended::VisitDeadline => Refusal::UpstreamTimeout,
        Ended::NoSocket => Refusal::NoSocket,
        Ended::NotSent => Refusal::ConcurrencyLimit,
        Ended::Embedded { code } | Ended::Status { code } => Refusal::Exhausted { status: Some(*code) },
        _ => match before {
            Some(Ended::Embedded { code } | Ended::Status { code }) => {
                Refusal::Exhausted { status: Some(code) }
            }
            _ => Refusal::Exhausted { status: None },
        },
    }
}

/// How an attempt ended that left no response.
pub(super) fn ended_by(error: &net::Error) -> Ended {
    match error {
        net::Error::BadResponse(_) => Ended::BadResponse,
        net::Error::Abandoned | net::Error::Connect(_) => Ended::Connect,
        net::Error::ConnectTimeout => Ended::ConnectTimeout,
        net::Error::Cut(_) => Ended::ClientGone,
        net::Error::Dns => Ended::Dns,
        net::Error::Full => Ended::NotSent,
        net::Error::Local(_) => Ended::NoSocket,
        net::Error::Refused { again, .. } => Ended::Refused { again: *again },
        net::Error::Signalled => Ended::Signalled,
        net::Error::Stale(_) => Ended::StaleConnection,
        net::Error::Tls(_) => Ended::Tls,
        net::Error::Unanswered(_) => Ended::Unanswered,
    }
}
