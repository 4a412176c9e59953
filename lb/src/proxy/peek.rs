//! The lead peek: a strict stream's head is withheld until its first decisive event, so that a stream that fails
//! before it has said anything can still be answered by another target.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt as _;

use super::timer::{earlier, until};
use super::watch::{Decision, Watch};
use super::worker::Worker;
use crate::net::{BodyError, Incoming};
use crate::policy::time::Instant;
use crate::upstream::Attempt;

/// A stream's beginning, withheld while it was peeked at.
#[derive(Debug)]
pub(super) struct Lead {
    /// What came so far, to be replayed untouched.
    pub(super) withheld: Vec<Frame<Bytes>>,
    /// What is still to come.
    pub(super) body: Incoming,
    /// What happened to the body meanwhile.
    pub(super) end: End,
    /// The stream's observer, where there is something to observe.
    pub(super) watch: Option<Box<Watch>>,
}

impl Lead {
    /// A body of which nothing was withheld.
    pub(super) fn whole(body: Incoming, watch: Option<Box<Watch>>) -> Self {
        Self {
            withheld: Vec::new(),
            body,
            end: End::Open,
            watch,
        }
    }
}

/// How far a body has come.
#[derive(Debug)]
pub(super) enum End {
    /// It broke off.
    Broken,
    /// It is complete.
    Clean,
    /// It goes on.
    Open,
}

/// What a peek came to.
#[derive(Debug)]
pub(super) enum Peeked {
    /// The stream is the answer.
    Commit {
        lead: Lead,
        first_data: Option<Duration>,
    },
    /// It ended, or broke, before its first decisive event.
    Empty,
    /// An error event came first.
    Error { status: u16, data: Bytes },
    /// The first-token deadline passed.
    FirstTokenTimeout,
    /// The cascade's deadline passed.
    TotalDeadline,
}

/// One peek in progress.
struct Peek<'a> {
    worker: &'a Worker,
    attempt: &'a mut Attempt,
    lead: Lead,
    watch: Box<Watch>,
    bytes: usize,
    first_data: Option<Duration>,
    /// Since when only a preamble has come.
    preamble_since: Option<Instant>,
    head_at: Instant,
    total: Option<Instant>,
}

/// Withholds `body` until it decides itself, or a cap is reached.
pub(super) async fn peek(
    worker: &Worker,
    attempt: &mut Attempt,
    body: Incoming,
    watch: Box<Watch>,
    total: Option<Instant>,
) -> Peeked {
    let lead = Lead {
        withheld: Vec::new(),
        body,
        end: End::Open,
        watch: None,
    };
    let head_at = worker.now();
    let peek = Peek {
        worker,
        attempt,
        lead,
        watch,
        bytes: 0,
        first_data: None,
        preamble_since: None,
        head_at,
        total,
    };
    peek.run().await
}

/// Which timer passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Total,
    FirstToken,
    Cap,
}

impl Peek<'_> {
    async fn run(mut self) -> Peeked {
        loop {
            let timer = self.timer();
            let deadline = timer.map(|(at, _)| self.worker.shared.clock.tokio(at));
            let Some(next) = until(deadline, pin!(self.lead.body.frame())).await else {
                return match timer {
                    Some((_, Timer::FirstToken)) => Peeked::FirstTokenTimeout,
                    Some((_, Timer::Total)) => Peeked::TotalDeadline,
                    Some((_, Timer::Cap)) | None => self.commit(),
                };
            };
            match self.take(next) {
                Some(Decision::Commit) => return self.commit(),
                Some(Decision::Error { status, data }) => return Peeked::Error { status, data },
                None if !matches!(self.lead.end, End::Open) => return Peeked::Empty,
                None if self.bytes >= self.attempt.link().model.config.peek.max_bytes => {
                    return self.commit();
                }
                None => {}
            }
        }
    }

    /// The next timer to pass, and which it is. With a first-token deadline armed that is the cap, without one the
    /// peek has a time of its own; once a preamble has come, the deadline is met and only a short wait is left.
    fn timer(&self) -> Option<(Instant, Timer)> {
        let peek = &self.attempt.link().model.config.peek;
        let own = match (self.preamble_since, self.attempt.first_token_deadline()) {
            (Some(since), _) => (since + peek.preamble_wait, Timer::Cap),
            (None, Some(deadline)) if self.first_data.is_none() => (deadline, Timer::FirstToken),
            (None, _) => (self.head_at + peek.max_wait, Timer::Cap),
        };
        earlier(Some(own), self.total.map(|at| (at, Timer::Total)))
    }

    fn take(&mut self, next: Option<Result<Frame<Bytes>, BodyError>>) -> Option<Decision> {
        let seen = match next {
            None => {
                self.lead.end = End::Clean;
                self.watch.finish()
            }
            Some(Err(error)) => {
                tracing::debug!(%error, "stream broke before it was committed");
                self.lead.end = End::Broken;
                // What the break cut off is no event.
                false
            }
            Some(Ok(frame)) => {
                let seen = frame.data_ref().is_some_and(|data| {
                    self.bytes += data.len();
                    self.watch.feed(data)
                });
                self.lead.withheld.push(frame);
                seen
            }
        };
        let now = self.worker.now();
        if seen {
            self.first_data = Some(self.attempt.first_data(now));
        }
        if self.preamble_since.is_none() && self.watch.saw_preamble() {
            self.preamble_since = Some(now);
        }
        self.watch.take_decision()
    }

    fn commit(mut self) -> Peeked {
        self.watch.commit();
        self.lead.watch = Some(self.watch);
        Peeked::Commit {
            lead: self.lead,
            first_data: self.first_data,
        }
    }
}
