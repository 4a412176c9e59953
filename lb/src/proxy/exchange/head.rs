//! What a response's head means to its attempt.

use http::{HeaderMap, Response};

use super::{Reply, Tried, is_of_type};
use crate::net::Incoming;
use crate::policy::outcome::Ended;
use crate::policy::time::Instant;
use crate::proxy::asked::is_encoded;
use crate::proxy::peek::{Lead, Peeked, peek};
use crate::proxy::watch::Watch;
use crate::proxy::worker::Worker;
use crate::upstream::Attempt;
use crate::wire::retry_after;

/// What a response head means: an error status is decisive, a strict stream is peeked at, all else commits.
pub(super) async fn judge_head(
    worker: &Worker,
    attempt: &mut Attempt,
    response: Response<Incoming>,
    total: Option<Instant>,
) -> Tried {
    let (parts, body) = response.into_parts();
    let code = parts.status.as_u16();
    if code >= 400 {
        attempt.asked_for(retry_after::parse(&parts.headers, Worker::unix_now()));
        return Tried {
            ended: Ended::Status { code },
            response: Some(Reply::head(parts, Lead::whole(body, None))),
        };
    }
    let model = &attempt.link().model;
    let committed = Ended::Committed { first_data: None };
    if !model.is_observed() || !is_event_stream(&parts.headers) || is_encoded(&parts.headers) {
        return Tried {
            ended: committed,
            response: Some(Reply::head(parts, Lead::whole(body, None))),
        };
    }
    let peeked = model.is_strict() && attempt.is_streaming();
    let watch = Box::new(Watch::new(&model.config, peeked, model.counts_tokens()));
    if !peeked {
        return Tried {
            ended: committed,
            response: Some(Reply::head(parts, Lead::whole(body, Some(watch)))),
        };
    }
    // Boxed, so that answers that are no streams do not carry its room.
    let (ended, response) = match Box::pin(peek(worker, attempt, body, watch, total)).await {
        Peeked::Commit { lead, first_data } => {
            (Ended::Committed { first_data }, Some(Reply::head(parts, *lead)))
        }
        Peeked::Empty => (Ended::Empty, None),
        Peeked::Error { status: code, data } => (
            Ended::Embedded { code },
            Some(Reply::Embedded { status: code, data }),
        ),
        Peeked::FirstTokenTimeout => (
            Ended::FirstTokenTimeout {
                after: worker.now().since(attempt.started()),
            },
            None,
        ),
        Peeked::TotalDeadline => (Ended::TotalDeadline, None),
    };
    Tried { ended, response }
}

pub(super) fn is_event_stream(headers: &HeaderMap) -> bool {
    is_of_type(headers, b"text/event-stream")
}
