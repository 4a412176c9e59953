//! One try of one target: what it holds, and what its ending means.

use std::time::Duration;

use super::chain::Link;
use super::claim::Claim;
use super::hold::Hold;
use super::run::{Hedge, Hedging, Prospects, Run, Sent};
use crate::metrics::AttemptOutcome;
use crate::policy::draw::Draw;
use crate::policy::health::Verdict;
use crate::policy::limiter::Sample;
use crate::policy::outcome::{self, Ended, Next, Rules};
use crate::policy::time::Instant;

/// An attempt that was claimed and has not ended. Dropping it says nothing about anyone: the client went away.
#[derive(Debug)]
pub struct Attempt {
    hold: Hold,
    sent: Sent,
    /// Whether another target, or another endpoint of this one, could still be attempted when this began.
    may_go_on: bool,
    visit_deadline: Option<Instant>,
    wish: Option<Duration>,
    /// Where it is itself the second of two.
    hedge: Option<Hedge>,
}

/// A committed attempt whose body is still on its way. Dropping it is neutral, like a client's leaving.
#[derive(Debug)]
pub struct Tail {
    hold: Hold,
    /// Whether the response counts as a success: a passed-on error ends as cleanly as an answer does.
    success: bool,
}

/// What an ended attempt leads to.
#[derive(Debug)]
pub enum Settled {
    /// The response is the client's from now on.
    Committed(Tail),
    /// The same endpoint again on a fresh connection.
    Again(Attempt),
    /// Another attempt, which the run knows.
    Onward,
    /// This response is the answer, as it is.
    PassOn(Tail),
    /// There is no response to pass on.
    Fail,
    /// The attempt that is under way beside it.
    Yielded,
}

impl Attempt {
    pub(super) fn new(hold: Hold, sent: Sent, may_go_on: bool, visit_deadline: Option<Instant>) -> Self {
        Self {
            hold,
            sent,
            may_go_on,
            visit_deadline,
            wish: None,
            hedge: None,
        }
    }

    /// Has `hedge` learn what becomes of it.
    pub(super) fn counted_by(mut self, hedge: Hedge) -> Self {
        self.hedge = Some(hedge);
        self
    }

    /// When a second attempt may begin beside it: the request may be sent twice, and its provider is set to.
    pub fn hedging(&self) -> Option<Hedging> {
        let claim = self.claim();
        let after = claim.provider().config.retries.hedge_after?;
        let may = self.hold.chain.retries && self.sent.replayable && self.may_repeat() && !self.sent.exempt;
        may.then(|| Hedging {
            at: self.hold.started + after,
            link: self.hold.link,
            endpoint: claim.place,
        })
    }

    /// The target, with its timers.
    pub fn link(&self) -> &Link {
        self.hold.link()
    }

    /// The target's place in its chain.
    pub fn place(&self) -> usize {
        self.hold.link
    }

    /// The endpoint and provider taken.
    pub fn claim(&self) -> &Claim {
        &self.hold.claim
    }

    /// When it was committed to its endpoint.
    pub fn started(&self) -> Instant {
        self.hold.started
    }

    /// Whether the request asked for a stream.
    pub fn is_streaming(&self) -> bool {
        self.sent.streaming
    }

    /// Since its start, when a first token is too late to wait for: only where another attempt is possible.
    pub fn first_token_deadline(&self) -> Option<Instant> {
        // Without leave to repeat the request, cutting it off would only cost it.
        let armed = self.sent.streaming
            && self.sent.replayable
            && self.may_repeat()
            && !self.sent.exempt
            && self.may_go_on;
        self.link()
            .timers
            .first_token
            .filter(|_| armed)
            .map(|limit| self.hold.started + limit)
    }

    /// When its response head must be there, the request having been sent at its start, or still at `sending`.
    pub fn read_deadline(&self, sending: Option<Instant>) -> Option<Instant> {
        let started = self.hold.started;
        let sent = sending.map_or(started, |sending| sending.max(started));
        self.link().timers.read.map(|limit| sent + limit)
    }

    /// The first data frame came, which settles the share's outcome whatever follows. Returns the time it took.
    pub fn first_data(&mut self, now: Instant) -> Duration {
        self.hold.first_data(now);
        now.since(self.hold.started)
    }

    /// The provider asked, with an error response, to be left alone for so long. Whoever learns of it learns no more
    /// than is believed. [RETRY-15]
    pub fn asked_for(&mut self, wish: Option<Duration>) {
        let provider = self.hold.claim.provider();
        let most = provider.config.retries.max_retry_after;
        let capped = most.filter(|most| wish.is_some_and(|wish| wish > *most));
        if capped.is_some() {
            provider.metrics.retry_after_capped.inc();
        }
        self.wish = capped.or(wish);
    }

    /// Since the start of the provider's visit, when it has to have answered.
    pub fn visit_deadline(&self) -> Option<Instant> {
        self.visit_deadline
    }

    /// Reports how it ended: everyone whom it concerns learns what the table says it means to them.
    pub fn settle(mut self, run: &mut Run, now: Instant, ended: &Ended, jitter: Draw) -> Settled {
        let prospects = match ended {
            Ended::Committed { .. } => Prospects::default(),
            _ => run.prospects(now, &self.hold, self.wish),
        };
        let (judgement, otherwise) = {
            let rules = self.rules(run, now, &prospects);
            let judgement = outcome::judge(ended, &rules);
            let otherwise = match judgement.next {
                Next::Retry => {
                    outcome::judge(
                        ended,
                        &Rules {
                            retry: false,
                            ..rules
                        },
                    )
                    .next
                }
                next => next,
            };
            (judgement, otherwise)
        };
        let hold = &mut self.hold;
        if ended.is_server_error() {
            run.server_error(hold.claim.provider());
        }
        let seen = observed(ended);
        hold.link().metrics.attempts(seen).inc();
        if judgement.next == Next::RetryFresh {
            // Nothing was learned about anyone, and the permit is still needed.
            return Settled::Again(self);
        }
        run.decided();
        if let Some(hedge) = self.hedge.take() {
            hedge.came_to(ended, judgement.next);
        }
        hold.measure(ended);
        let asked = self.wish.filter(|_| status_of(ended) == Some(429));
        let sample = outcome::load(ended, now.since(hold.started));
        hold.claim.learn(now, sample, asked);
        if let Some(outcome) = judgement.share {
            hold.close_ticket(now, outcome, status_of(ended));
        }
        hold.cool(now, judgement.cooldown, seen, self.wish);
        hold.report(now, judgement.health, judgement.breaker, jitter);
        let next = match judgement.next {
            Next::Retry if !run.retry(now, hold, &prospects, otherwise == Next::Failover, jitter) => {
                otherwise
            }
            next => next,
        };
        self.go(run, next, seen, now)
    }

    fn rules<'a>(&'a self, run: &Run, now: Instant, prospects: &Prospects) -> Rules<'a> {
        let hold = &self.hold;
        let provider = hold.claim.provider();
        Rules {
            on_status: &hold.chain.on_status,
            realtime_on_status: (!self.sent.exempt).then_some(&hold.chain.realtime_on_status),
            retry_on_status: &provider.config.retries.on_status,
            last: prospects.last,
            retry: prospects.retry,
            elsewhere: prospects.elsewhere,
            rival: run.is_racing(),
            asks_for_long: prospects.asks_for_long,
            replayable: self.sent.replayable,
            repeatable: self.may_repeat(),
            steered: hold.steering(),
            another_endpoint_in: provider.another_is_in(&hold.claim.endpoint, now),
            server_error_before: run.had_server_error(),
            server_error_here_before: run.had_server_error_of(provider),
            count_backpressure: provider.config.count_backpressure,
        }
    }

    fn go(self, run: &mut Run, next: Next, seen: AttemptOutcome, now: Instant) -> Settled {
        let tail = |success: bool, hold: Hold| Tail { hold, success };
        match next {
            Next::Commit => Settled::Committed(tail(true, self.hold)),
            Next::PassOn => Settled::PassOn(tail(false, self.hold)),
            Next::Failover | Next::Retry => {
                run.ended(self.hold.link, seen, now.since(self.hold.started));
                Settled::Onward
            }
            Next::Fail | Next::RetryFresh => Settled::Fail,
            Next::Yield => Settled::Yielded,
        }
    }

    /// Whether the request may be sent again when no byte of an answer came.
    fn may_repeat(&self) -> bool {
        let allowed = self.hold.claim.provider().config.retries.unanswered_posts;
        self.sent.repeatable && (self.sent.idempotent || allowed)
    }
}

impl Tail {
    /// The target that answered.
    pub fn link(&self) -> &Link {
        self.hold.link()
    }

    /// The endpoint that answered.
    pub fn claim(&self) -> &Claim {
        &self.hold.claim
    }

    /// Whether the controller still waits for this attempt's first frame.
    pub fn is_awaited(&self) -> bool {
        self.hold.ticket.is_some()
    }

    /// Nothing that still comes can be a first frame: the controller learns *unknown* now, not at the end.
    pub fn forget(&mut self) {
        self.hold.ticket = None;
    }

    /// The first data frame came after the commit.
    pub fn first_data(&mut self, now: Instant) {
        self.hold.first_data(now);
    }

    /// The body ended as its framing promised.
    pub fn clean_end(self) {
        if let Some(permit) = self.hold.claim.permit.filter(|_| self.success) {
            self.hold.claim.endpoint.report_clean_end(permit);
        }
        if self.success {
            self.hold.claim.report_clean_end();
        }
    }

    /// A clean end of a stream that had neither a finish event nor `[DONE]`.
    pub fn incomplete(&self) {
        self.link().model.metrics.incomplete.inc();
        tracing::warn!(
            model = %self.hold.chain.name, provider = %self.claim().provider().name,
            endpoint = %self.claim().endpoint.name, "stream ended without a finish event"
        );
    }

    /// The stream failed after the commit: its connection broke or stalled, or it carried an error event.
    pub fn failed(&mut self, now: Instant, ended: &Ended, jitter: Draw) {
        let hold = &mut self.hold;
        let judgement = outcome::judge(ended, &hold.rules_after_commit());
        if let Some(outcome) = judgement.share {
            hold.close_ticket(now, outcome, status_of(ended));
        }
        if judgement.breaker == Verdict::Failure {
            hold.claim.report_late_failure(now);
        }
        if judgement.health != Verdict::Failure {
            return;
        }
        hold.link().metrics.midstream.inc();
        hold.claim.learn(now, Some(Sample::Failed), None);
        tracing::warn!(
            model = %hold.chain.name, provider = %hold.claim.provider().name,
            endpoint = %hold.claim.endpoint.name, "stream failed after it was committed"
        );
        let Some(permit) = hold.claim.permit else { return };
        let ejection = hold.ejection(now, jitter);
        if let Some(transition) = hold.claim.endpoint.report_late_failure(now, permit, ejection) {
            hold.announce(&transition);
        }
    }
}

fn status_of(ended: &Ended) -> Option<u16> {
    match ended {
        Ended::Embedded { code } | Ended::LateError { code } | Ended::Status { code } => Some(*code),
        _ => None,
    }
}

/// What an ending counts as in metrics and logs.
pub fn observed(ended: &Ended) -> AttemptOutcome {
    match ended {
        Ended::BadResponse => AttemptOutcome::Protocol,
        Ended::ClientGone | Ended::Drained | Ended::NotSent => AttemptOutcome::Cancelled,
        // The last two come after the commit, which has counted the attempt already.
        Ended::Committed { .. } | Ended::Broken | Ended::LateError { .. } => AttemptOutcome::Ok,
        Ended::Connect | Ended::ConnectTimeout | Ended::Dns | Ended::Tls => AttemptOutcome::Connect,
        Ended::Embedded { .. } => AttemptOutcome::Embedded,
        Ended::Empty => AttemptOutcome::Empty,
        Ended::FirstTokenTimeout { .. } => AttemptOutcome::FirstTokenTimeout,
        Ended::Outrun => AttemptOutcome::Outrun,
        Ended::NoSocket => AttemptOutcome::NoSocket,
        Ended::ReadTimeout | Ended::TotalDeadline | Ended::VisitDeadline => AttemptOutcome::Timeout,
        Ended::Refused { .. } => AttemptOutcome::Refused,
        Ended::Signalled => AttemptOutcome::Signalled,
        Ended::StaleConnection => AttemptOutcome::Stale,
        Ended::Status { .. } => AttemptOutcome::Status,
        Ended::Unanswered => AttemptOutcome::Unanswered,
    }
}
