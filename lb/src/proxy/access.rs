//! The access log: one line for each request, at its end.
//!
//! A worker notes what only it knows and hands the line over, unformatted, by a bounded queue; a thread of its own
//! makes text of it and writes a batch at a time. A queue that is full drops the line and counts it: nobody waits for
//! a log.

mod line;
mod traced;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Body as _;

use super::body::Body;
use super::headers::Peer;
use super::spans::{Hop, Trace};
use super::worker::Worker;
use crate::policy::outcome::Ended;
use crate::policy::time::Instant;
use crate::upstream::{Attempt, Chain, Sent, observed};

use line::{Line, Tried};

pub use writer::{AccessLog, Form, TARGET, Writer};

/// A request that has come in, until its model is known.
#[derive(Debug)]
pub(super) struct Arrival {
    /// The request's id.
    pub(super) id: HeaderValue,
    begun: Instant,
    entry: Option<Entry>,
}

impl Arrival {
    /// Begins with the request's head. `unix` is the time since the epoch.
    pub(super) fn of<B>(
        worker: &Arc<Worker>,
        unix: Duration,
        peer: &Peer,
        id: HeaderValue,
        request: &Request<B>,
    ) -> Self {
        let begun = worker.now();
        let spans = worker.shared.spans.as_ref();
        let trace = spans.and_then(|spans| spans.begin(request.headers(), peer.trusted));
        let noted = trace.is_some() || worker.shared.access.is_some();
        let entry = noted.then(|| Entry {
            worker: Arc::clone(worker),
            begun,
            line: Some(Box::new(Line::new(unix, peer.ip, &id, request).traced(trace))),
        });
        Self { id, begun, entry }
    }

    /// When its head was there.
    pub(super) fn begun(&self) -> Instant {
        self.begun
    }

    /// The client showed the key of this name.
    pub(super) fn known_as(&mut self, key: &str) {
        if let Some(line) = self.entry.as_mut().and_then(|entry| entry.line.as_mut()) {
            line.known_as(key);
        }
    }

    /// Hands the line over to who sees the request through.
    pub(super) fn take(&mut self) -> Option<Entry> {
        self.entry.take()
    }

    /// lb answers by itself. Says nothing where the line was taken.
    pub(super) fn answered(&mut self, outcome: &'static str, response: &Response<Body>) {
        let Some(mut entry) = self.entry.take() else {
            return;
        };
        entry.answered(response.status());
        let total = entry.worker.now().since(self.begun);
        entry.end(&Ending {
            outcome,
            total,
            queue: None,
            first_token: None,
            bytes: response.body().size_hint().lower(),
        });
    }
}

/// One request's line in the making. Dropped, it is written as that of a client that has left.
#[derive(Debug)]
pub(super) struct Entry {
    worker: Arc<Worker>,
    begun: Instant,
    /// Until it is written.
    line: Option<Box<Line>>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    pub(super) outcome: &'static str,
    /// From the request's head on.
    pub(super) total: Duration,
    /// From the request being whole to its first attempt.
    pub(super) queue: Option<Duration>,
    /// From the request's head to the first token.
    pub(super) first_token: Option<Duration>,
    /// Of the response's body, to the client.
    pub(super) bytes: u64,
}

impl Entry {
    /// The request was read whole, and asks for `chain`.
    pub(super) fn asked(&mut self, chain: &Arc<Chain>, sent: Sent, length: u64) {
        let Some(line) = &mut self.line else { return };
        line.chain = Some(Arc::clone(chain));
        (line.stream, line.exempt, line.bytes_in) = (sent.streaming, sent.exempt, length);
    }

    /// An attempt begins; gives its span, where the request is traced.
    pub(super) fn trying(&mut self, attempt: &Attempt) -> Option<Hop> {
        let line = self.line.as_mut()?;
        let hop = line.traced.map(Trace::hop);
        line.attempts.push(Tried {
            span: hop.map_or(0, |hop| hop.span),
            link: attempt.place(),
            endpoint: Arc::clone(&attempt.claim().endpoint),
            started: attempt.started(),
            ended: None,
        });
        hop
    }

    /// An attempt has ended so; it is the last of its endpoint that is open.
    pub(super) fn tried(&mut self, attempt: &Attempt, ended: &Ended, now: Instant) {
        let endpoint = &attempt.claim().endpoint;
        let open = |tried: &&mut Tried| tried.ended.is_none() && Arc::ptr_eq(&tried.endpoint, endpoint);
        let mut attempts = self
            .line
            .iter_mut()
            .flat_map(|line| line.attempts.iter_mut().rev());
        if let Some(tried) = attempts.find(open) {
            tried.ended = Some((observed(ended), now.since(tried.started)));
        }
    }

    /// Bytes of the client went to the provider, besides the request's body.
    pub(super) fn carried(&mut self, bytes: u64) {
        if let Some(line) = &mut self.line {
            line.bytes_in += bytes;
        }
    }

    /// The client is answered with this status.
    pub(super) fn answered(&mut self, status: StatusCode) {
        if let Some(line) = &mut self.line {
            line.status = Some(status);
        }
    }

    /// Hands the line over.
    pub(super) fn end(mut self, ending: &Ending) {
        self.hand_over(ending);
    }

    fn hand_over(&mut self, ending: &Ending) {
        let Some(mut line) = self.line.take() else { return };
        line.end(ending, self.begun);
        if let (Some(trace), Some(spans)) = (line.traced, &self.worker.shared.spans) {
            spans.send(traced::spans(&line, trace));
        }
        if let Some(log) = &self.worker.shared.access {
            log.write(line);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if self.line.is_some() {
            let total = self.worker.now().since(self.begun);
            self.hand_over(&Ending {
                outcome: "cancelled",
                total,
                queue: None,
                first_token: None,
                bytes: 0,
            });
        }
    }
}

/// The trace that a client says its request belongs to, by the W3C's `traceparent`; 0 where it says none.
pub(super) fn trace_id(headers: &HeaderMap) -> u128 {
    let parsed = headers.get("traceparent").and_then(|value| {
        let text = value.to_str().ok()?;
        let (version, rest) = text.split_once('-')?;
        let (id, _) = rest.split_once('-')?;
        let lower = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (version.len() == 2 && version != "ff" && lower(version) && id.len() == 32 && lower(id)).then_some(id)
    });
    parsed
        .and_then(|id| u128::from_str_radix(id, 16).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
