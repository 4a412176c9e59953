//! What an ending says about how much a provider can take.

use std::time::Duration;

use super::{Ended, is_backpressure};
use crate::policy::limiter::Sample;

/// What an attempt that took `elapsed` to this ending says to a limit that follows its provider's state; `None` where
/// it says nothing. Unlike health it does not matter here whose fault a server error was, nor whether the share answers
/// it.
pub fn load(ended: &Ended, elapsed: Duration) -> Option<Sample> {
    match *ended {
        Ended::Committed { .. } => Some(Sample::Committed(elapsed)),
        Ended::BadResponse
        | Ended::Broken
        | Ended::Connect
        | Ended::ConnectTimeout
        | Ended::Empty
        | Ended::FirstTokenTimeout { .. }
        | Ended::ReadTimeout
        | Ended::Signalled
        | Ended::Tls
        | Ended::Unanswered => Some(Sample::Failed),
        Ended::Embedded { code } | Ended::Status { code } => {
            let failed = code >= 500 || is_backpressure(code) || matches!(code, 408 | 499);
            failed.then_some(Sample::Failed)
        }
        Ended::LateError { code } => (code >= 500 || is_backpressure(code)).then_some(Sample::Failed),
        Ended::ClientGone
        | Ended::Dns
        | Ended::Drained
        | Ended::NoSocket
        | Ended::NotSent
        | Ended::Outrun
        | Ended::Refused { .. }
        | Ended::StaleConnection
        | Ended::TotalDeadline
        | Ended::VisitDeadline => None,
    }
}
