//! Counts a request once, however it ends, and has its line written.

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use http_body::Body as _;

use super::access::{Arrival, Ending, Entry};
use super::body::Body;
use super::spans::Hop;
use super::worker::Worker;
use crate::metrics::RequestOutcome;
use crate::policy::outcome::Ended;
use crate::policy::time::Instant;
use crate::upstream::{Attempt, Chain, Sent};

/// A request's entry in the books. Dropped without a word, the client left.
#[derive(Debug)]
pub(super) struct Account {
    chain: Arc<Chain>,
    worker: Arc<Worker>,
    begun: Instant,
    /// When the request was whole, and when it was first sent on.
    whole: Instant,
    tried: Option<Instant>,
    first_token: Option<Instant>,
    /// Bytes of the body that went to the client.
    sent: u64,
    /// What completing it counts as.
    on_complete: RequestOutcome,
    closed: bool,
    entry: Option<Entry>,
}

impl Account {
    /// Opens the entry of a request to `chain` that is read whole, with a body of `length` bytes.
    pub(super) fn open(
        worker: &Arc<Worker>,
        chain: Arc<Chain>,
        arrival: &mut Arrival,
        sent: Sent,
        length: u64,
    ) -> Self {
        let mut entry = arrival.take();
        if let Some(entry) = &mut entry {
            entry.asked(&chain, sent, length);
        }
        Self {
            chain,
            worker: Arc::clone(worker),
            begun: arrival.begun(),
            whole: arrival.begun(),
            tried: None,
            first_token: None,
            sent: 0,
            on_complete: RequestOutcome::Ok,
            closed: false,
            entry,
        }
    }

    /// All of it was read by then.
    pub(super) fn whole(&mut self, now: Instant) {
        self.whole = now;
    }

    /// An attempt begins; gives its span, where the request is traced.
    pub(super) fn trying(&mut self, attempt: &Attempt) -> Option<Hop> {
        self.tried.get_or_insert_with(|| attempt.started());
        self.entry.as_mut()?.trying(attempt)
    }

    /// An attempt has ended so, or was committed.
    pub(super) fn tried(&mut self, attempt: &Attempt, ended: &Ended, now: Instant) {
        if let Ended::Committed {
            first_data: Some(after),
        } = ended
        {
            self.first_token = Some(attempt.started() + *after);
        }
        if let Some(entry) = &mut self.entry {
            entry.tried(attempt, ended, now);
        }
    }

    /// The first token came after the commit.
    pub(super) fn first_token(&mut self, now: Instant) {
        self.first_token.get_or_insert(now);
    }

    /// How long the request waited to be sent, and how long after its arrival the first token was there.
    pub(super) fn timing(&self) -> (Option<Duration>, Option<Duration>) {
        let queue = self.tried.map(|at| at.since(self.whole));
        (queue, self.first_token.map(|at| at.since(self.begun)))
    }

    /// lb answers by itself, with an error in one piece.
    pub(super) fn answered_whole(&mut self, response: &Response<Body>) {
        self.answered(response.status());
        self.on_complete = RequestOutcome::Failed;
        self.sent(response.body().size_hint().lower());
        self.complete();
    }

    /// The client is answered with this status, which still has to reach it.
    pub(super) fn answered(&mut self, status: StatusCode) {
        if status.as_u16() >= 400 {
            self.on_complete = RequestOutcome::Failed;
        }
        if let Some(entry) = &mut self.entry {
            entry.answered(status);
        }
    }

    /// Bytes of the body went to the client.
    pub(super) fn sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// Bytes of the client went to the provider, besides the request's body.
    pub(super) fn carried(&mut self, bytes: u64) {
        if let Some(entry) = &mut self.entry {
            entry.carried(bytes);
        }
    }

    /// The response ended as it should.
    pub(super) fn complete(&mut self) {
        self.close(self.on_complete);
    }

    /// The response broke off.
    pub(super) fn truncated(&mut self) {
        self.close(RequestOutcome::Truncated);
    }

    fn close(&mut self, outcome: RequestOutcome) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let total = self.worker.now().since(self.begun);
        self.chain.metrics.ended(outcome, total);
        let (queue, first_token) = self.timing();
        if let Some(entry) = self.entry.take() {
            entry.end(&Ending {
                outcome: outcome.as_str(),
                total,
                queue,
                first_token,
                bytes: self.sent,
            });
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if !self.closed {
            self.chain.metrics.cancellations.inc();
            self.close(RequestOutcome::Cancelled);
        }
    }
}
