//! When a response's head has to come, and what it means to its attempt.

use std::time::Duration;

use http::response::Parts;
use http::{HeaderMap, Response};

use super::{Reply, Tried};
use crate::net::Incoming;
use crate::policy::outcome::Ended;
use crate::policy::time::Instant;
use crate::proxy::asked::is_encoded;
use crate::proxy::peek::{Lead, Peeked};
use crate::proxy::timer::earlier;
use crate::proxy::watch::Watch;
use crate::proxy::worker::Worker;
use crate::upstream::Attempt;
use crate::wire::retry_after;

/// What a response head comes to.
pub(super) enum Judged {
    Tried(Tried),
    /// It begins a strict stream, which is peeked at first.
    Peeks(Parts, Box<Incoming>, Box<Watch>),
}

/// When the response head has to be there, and what it is called if it is not; the request was still being sent at
/// `sending`.
pub(super) fn head_deadline(
    attempt: &Attempt,
    total: Option<Instant>,
    sending: Option<Instant>,
) -> (Option<Instant>, fn(Duration) -> Ended) {
    let first_token = attempt.first_token_deadline();
    let earliest = earlier(total, earlier(first_token, attempt.read_deadline(sending)));
    let ending: fn(Duration) -> Ended = if earliest.is_some() && earliest == total {
        |_| Ended::TotalDeadline
    } else if earliest.is_some() && earliest == first_token {
        |after| Ended::FirstTokenTimeout { after }
    } else {
        |_| Ended::ReadTimeout
    };
    (earliest, ending)
}

/// What a response head means: an error status is decisive, a strict stream is peeked at, all else commits.
pub(super) fn judge_head(attempt: &mut Attempt, response: Response<Incoming>) -> Judged {
    let (parts, body) = response.into_parts();
    let code = parts.status.as_u16();
    if code >= 400 {
        attempt.asked_for(retry_after::parse(&parts.headers, Worker::unix_now()));
        return Judged::Tried(Tried {
            ended: Ended::Status { code },
            response: Some(Reply::head(parts, Lead::whole(body, None))),
        });
    }
    let model = &attempt.link().model;
    let observed = model.is_observed() && is_event_stream(&parts.headers) && !is_encoded(&parts.headers);
    let peeked = observed && model.is_strict() && attempt.is_streaming();
    let watch = observed.then(|| Box::new(Watch::new(&model.config, peeked, model.counts_tokens())));
    match watch {
        Some(watch) if peeked => Judged::Peeks(parts, Box::new(body), watch),
        watch => Judged::Tried(Tried {
            ended: Ended::Committed { first_data: None },
            response: Some(Reply::head(parts, Lead::whole(body, watch))),
        }),
    }
}

/// What a strict stream's peek means.
pub(super) fn judge_peeked(worker: &Worker, attempt: &Attempt, parts: Parts, peeked: Peeked) -> Tried {
    match peeked {
        Peeked::Commit { lead, first_data } => Tried {
            ended: Ended::Committed { first_data },
            response: Some(Reply::head(parts, lead)),
        },
        Peeked::Empty => Tried::without_response(Ended::Empty),
        Peeked::Error { status: code, data } => Tried {
            ended: Ended::Embedded { code },
            response: Some(Reply::Embedded { status: code, data }),
        },
        Peeked::FirstTokenTimeout => Tried::without_response(Ended::FirstTokenTimeout {
            after: worker.now().since(attempt.started()),
        }),
        Peeked::TotalDeadline => Tried::without_response(Ended::TotalDeadline),
    }
}

pub(super) fn is_event_stream(headers: &HeaderMap) -> bool {
    is_of_type(headers, b"text/event-stream")
}

pub(super) fn is_readable_json(headers: &HeaderMap) -> bool {
    is_of_type(headers, b"application/json") && !is_encoded(headers)
}

fn is_of_type(headers: &HeaderMap, wanted: &[u8]) -> bool {
    let value = headers
        .get(http::header::CONTENT_TYPE)
        .map_or(&b""[..], |value| value.as_bytes());
    let essence = value.split(|byte| *byte == b';').next().unwrap_or_default();
    essence.trim_ascii().eq_ignore_ascii_case(wanted)
}
