//! One try of one target: what it holds, and what its ending means.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::chain::{Chain, Link};
use super::pool::Pool;
use super::provider::Claim;
use super::run::{Run, Sent};
use crate::metrics::AttemptOutcome;
use crate::policy::aimd::{Generation, Outcome};
use crate::policy::draw::Draw;
use crate::policy::health::{Ejection, Transition, Verdict};
use crate::policy::outcome::{self, Ended, Next, Rules};
use crate::policy::time::Instant;

/// An attempt that was claimed and has not ended. Dropping it says nothing about anyone: the client went away.
#[derive(Debug)]
pub struct Attempt {
    hold: Hold,
    sent: Sent,
    last: bool,
}

/// A committed attempt whose body is still on its way. Dropping it is neutral, like a client's leaving.
#[derive(Debug)]
pub struct Tail {
    hold: Hold,
}

/// What an ended attempt leads to.
#[derive(Debug)]
pub enum Settled {
    /// The response is the client's from now on.
    Committed(Tail),
    /// The same endpoint again on a fresh connection.
    Again(Attempt),
    /// The next target.
    Failover,
    /// This response is the answer, as it is.
    PassOn(Tail),
    /// There is no response to pass on.
    Fail,
}

impl Attempt {
    pub(super) fn new(
        (chain, link): (&Arc<Chain>, usize),
        claim: Claim,
        sent: Sent,
        last: bool,
        ticket: Option<Ticket>,
        now: Instant,
    ) -> Self {
        let hold = Hold {
            chain: Arc::clone(chain),
            link,
            claim,
            ticket,
            started: now,
            reported: false,
        };
        hold.link().in_flight.fetch_add(1, Ordering::Relaxed);
        hold.link().model.metrics.inflight.inc();
        Self { hold, sent, last }
    }

    /// The target, with its timers.
    pub fn link(&self) -> &Link {
        self.hold.link()
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
        let armed = self.sent.streaming && !self.sent.exempt && !self.last;
        self.link()
            .timers
            .first_token
            .filter(|_| armed)
            .map(|limit| self.hold.started + limit)
    }

    /// When its response head must be there.
    pub fn read_deadline(&self) -> Option<Instant> {
        self.link().timers.read.map(|limit| self.hold.started + limit)
    }

    /// The first data frame came, which settles the share's outcome whatever follows. Returns the time it took.
    pub fn first_data(&mut self, now: Instant) -> Duration {
        self.hold.first_data(now);
        now.since(self.hold.started)
    }

    /// Reports how it ended: health, share and counters learn what the table says it means to them.
    pub fn settle(mut self, run: &mut Run, now: Instant, ended: &Ended, jitter: Draw) -> Settled {
        let hold = &mut self.hold;
        let provider = hold.claim.provider();
        let judgement = outcome::judge(
            ended,
            &Rules {
                on_status: &hold.chain.on_status,
                realtime_on_status: (!self.sent.exempt).then_some(&hold.chain.realtime_on_status),
                last: self.last,
                replayable: true,
                repeatable: self.sent.repeatable,
                steered: hold.ticket.as_ref().and_then(Ticket::params),
                another_endpoint_in: provider.another_is_in(&hold.claim.endpoint, now),
                server_error_before: run.server_error_before,
                count_backpressure: provider.config.count_backpressure,
            },
        );
        run.server_error_before |= ended.is_server_error();
        let seen = observed(ended);
        let elapsed = now.since(hold.started);
        hold.link().metrics.attempts(seen).inc();
        hold.measure(ended);
        if let Some(outcome) = judgement.share {
            hold.close_ticket(now, outcome, status_of(ended));
        }
        hold.report(now, judgement.health, jitter);
        match judgement.next {
            Next::Commit => Settled::Committed(Tail { hold: self.hold }),
            Next::PassOn => Settled::PassOn(Tail { hold: self.hold }),
            Next::RetryFresh => {
                self.hold.reported = false;
                Settled::Again(self)
            }
            Next::Failover => {
                run.ended(self.hold.link, seen, elapsed);
                Settled::Failover
            }
            Next::Fail => Settled::Fail,
        }
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
        if let Some(permit) = self.hold.claim.permit {
            self.hold.claim.endpoint.report_clean_end(permit);
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
        if judgement.health != Verdict::Failure {
            return;
        }
        hold.link().metrics.midstream.inc();
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

/// What an attempt holds until its body has ended.
#[derive(Debug)]
struct Hold {
    chain: Arc<Chain>,
    link: usize,
    claim: Claim,
    ticket: Option<Ticket>,
    started: Instant,
    reported: bool,
}

impl Hold {
    fn link(&self) -> &Link {
        &self.chain.links[self.link]
    }

    fn first_data(&mut self, now: Instant) {
        let elapsed = now.since(self.started);
        if let Some(outcome) = self
            .ticket
            .as_ref()
            .and_then(Ticket::params)
            .map(|params| params.on_first_data(elapsed))
        {
            self.close_ticket(now, outcome, None);
        }
    }

    fn ejection(&self, now: Instant, jitter: Draw) -> Ejection {
        Ejection {
            allowed: self.claim.provider().has_ejection_room(&self.claim.endpoint, now),
            jitter,
        }
    }

    fn rules_after_commit(&self) -> Rules<'_> {
        Rules {
            on_status: &self.chain.on_status,
            realtime_on_status: None,
            last: true,
            replayable: false,
            repeatable: false,
            steered: self.ticket.as_ref().and_then(Ticket::params),
            another_endpoint_in: false,
            server_error_before: false,
            count_backpressure: self.claim.provider().config.count_backpressure,
        }
    }

    fn close_ticket(&mut self, now: Instant, outcome: Outcome, overload: Option<u16>) {
        if let Some(ticket) = self.ticket.take() {
            ticket.close(now, outcome, overload);
        }
    }

    fn measure(&self, ended: &Ended) {
        match ended {
            Ended::Committed {
                first_data: Some(after),
            } => {
                self.link().metrics.first_token.observe(after.as_secs_f64());
            }
            Ended::FirstTokenTimeout { .. } => self.link().metrics.first_token_timeouts.inc(),
            _ => {}
        }
    }

    fn report(&mut self, now: Instant, verdict: Verdict, jitter: Draw) {
        self.reported = true;
        let Some(permit) = self.claim.permit else { return };
        let ejection = self.ejection(now, jitter);
        if let Some(transition) = self.claim.endpoint.report(now, permit, verdict, ejection) {
            self.announce(&transition);
        }
    }

    fn announce(&self, transition: &Transition) {
        super::endpoint::announce(self.claim.provider(), &self.claim.endpoint, transition);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.link().in_flight.fetch_sub(1, Ordering::Relaxed);
        self.link().model.metrics.inflight.dec();
        if !self.reported {
            self.link().metrics.attempts(AttemptOutcome::Cancelled).inc();
            // Neutral frees a half-open slot and judges nothing, so neither the time nor the jitter matters.
            self.report(self.started, Verdict::Neutral, Draw::new(0.0));
        }
    }
}

/// An open outcome at the controller; dropped, it is *unknown*.
#[derive(Debug)]
pub(super) struct Ticket {
    pool: Arc<Pool>,
    generation: Generation,
    opened: Instant,
    open: bool,
}

impl Ticket {
    /// Opens an outcome, where the pool has a controller.
    pub(super) fn open(pool: &Arc<Pool>, now: Instant) -> Option<Self> {
        let generation = pool.controller.as_ref()?.attempt();
        Some(Self {
            pool: Arc::clone(pool),
            generation,
            opened: now,
            open: true,
        })
    }

    fn params(&self) -> Option<&crate::policy::aimd::Params> {
        self.pool.controller.as_ref().map(super::pool::Controller::params)
    }

    fn close(mut self, now: Instant, outcome: Outcome, overload: Option<u16>) {
        self.end(now, outcome, overload);
    }

    fn end(&mut self, now: Instant, outcome: Outcome, overload: Option<u16>) {
        if let Some(controller) = self.pool.controller.as_ref().filter(|_| self.open) {
            self.open = false;
            controller.settle(&self.pool, now, self.generation, outcome, overload);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Unknown is in no window, so when it is said does not matter.
        self.end(self.opened, Outcome::Unknown, None);
    }
}

fn status_of(ended: &Ended) -> Option<u16> {
    match ended {
        Ended::Embedded { code } | Ended::LateError { code } | Ended::Status { code } => Some(*code),
        _ => None,
    }
}

fn observed(ended: &Ended) -> AttemptOutcome {
    match ended {
        Ended::BadResponse => AttemptOutcome::Protocol,
        Ended::ClientGone | Ended::Drained | Ended::NotSent => AttemptOutcome::Cancelled,
        // The last two come after the commit, which has counted the attempt already.
        Ended::Committed { .. } | Ended::Broken | Ended::LateError { .. } => AttemptOutcome::Ok,
        Ended::Connect | Ended::ConnectTimeout | Ended::Dns | Ended::Tls => AttemptOutcome::Connect,
        Ended::Embedded { .. } => AttemptOutcome::Embedded,
        Ended::Empty => AttemptOutcome::Empty,
        Ended::FirstTokenTimeout { .. } => AttemptOutcome::FirstTokenTimeout,
        Ended::ReadTimeout | Ended::TotalDeadline => AttemptOutcome::Timeout,
        Ended::StaleConnection => AttemptOutcome::Stale,
        Ended::Status { .. } => AttemptOutcome::Status,
        Ended::Unanswered => AttemptOutcome::Unanswered,
    }
}
