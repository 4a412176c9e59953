//! What an attempt holds of its provider, its endpoint and its pool until its body has ended.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::admission::Admitted;
use super::chain::{Chain, Link};
use super::claim::Claim;
use super::endpoint;
use super::ticket::Ticket;
use crate::metrics::AttemptOutcome;
use crate::policy::aimd::{Outcome, Params};
use crate::policy::draw::Draw;
use crate::policy::health::{Ejection, Transition, Verdict};
use crate::policy::outcome::{Cooling, Ended, Rules, StatusSet};
use crate::policy::time::Instant;

/// What an attempt holds until its body has ended.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) chain: Arc<Chain>,
    pub(super) link: usize,
    pub(super) claim: Claim,
    /// The place in the model, where that has limits.
    _admitted: Option<Arc<Admitted>>,
    pub(super) ticket: Option<Ticket>,
    /// Whether a controller counts this attempt, or the one that it is a hedge of.
    steered: bool,
    pub(super) started: Instant,
    pub(super) reported: bool,
}

impl Hold {
    /// Takes the target's place in flight beside what `claim` holds.
    pub(super) fn take(
        (chain, link): (&Arc<Chain>, usize),
        (claim, admitted): (Claim, Option<Arc<Admitted>>),
        ticket: Option<Ticket>,
        now: Instant,
    ) -> Self {
        let hold = Self {
            chain: Arc::clone(chain),
            link,
            claim,
            _admitted: admitted,
            steered: ticket.is_some(),
            ticket,
            started: now,
            reported: false,
        };
        hold.link().in_flight.fetch_add(1, Ordering::Relaxed);
        hold.link().model.metrics.inflight.inc();
        hold
    }

    /// Has what would be a breach of the attempt that this one is a hedge of be no failure to anyone, either; the
    /// controller hears nothing of it.
    pub(super) fn beside(mut self, steered: bool) -> Self {
        self.steered = steered;
        self
    }

    /// The settings of the controller that counts this attempt, also once it has been told the outcome: what is a
    /// breach to it is not a failure to anyone else.
    pub(super) fn steering(&self) -> Option<&Params> {
        self.link()
            .pool
            .controller
            .as_ref()
            .filter(|_| self.steered)
            .map(|controller| controller.params())
    }

    pub(super) fn link(&self) -> &Link {
        &self.chain.links[self.link]
    }

    pub(super) fn first_data(&mut self, now: Instant) {
        let elapsed = now.since(self.started);
        if let Some(outcome) = self.steering().map(|params| params.on_first_data(elapsed)) {
            self.close_ticket(now, outcome, None);
        }
    }

    pub(super) fn ejection(&self, now: Instant, jitter: Draw) -> Ejection {
        Ejection {
            allowed: self.claim.provider().has_ejection_room(&self.claim.endpoint, now),
            jitter,
        }
    }

    pub(super) fn rules_after_commit(&self) -> Rules<'_> {
        Rules {
            on_status: &self.chain.on_status,
            realtime_on_status: None,
            retry_on_status: &StatusSet::NONE,
            last: true,
            retry: false,
            elsewhere: false,
            rival: false,
            asks_for_long: false,
            replayable: false,
            repeatable: false,
            steered: self.steering(),
            another_endpoint_in: false,
            server_error_before: false,
            server_error_here_before: false,
            count_backpressure: self.claim.provider().config.count_backpressure,
        }
    }

    pub(super) fn close_ticket(&mut self, now: Instant, outcome: Outcome, overload: Option<u16>) {
        if let Some(ticket) = self.ticket.take() {
            ticket.close(now, outcome, overload);
        }
    }

    pub(super) fn measure(&self, ended: &Ended) {
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

    /// Tells endpoint and breaker what the attempt came to.
    pub(super) fn report(&mut self, now: Instant, health: Verdict, breaker: Verdict, jitter: Draw) {
        self.reported = true;
        self.claim.report(now, breaker);
        let Some(permit) = self.claim.permit else { return };
        let ejection = self.ejection(now, jitter);
        if let Some(transition) = self.claim.endpoint.report(now, permit, health, ejection) {
            self.announce(&transition);
        }
    }

    /// Does to the cooldown what the attempt's ending means to it; `wish` is how long the provider asks for.
    pub(super) fn cool(
        &self,
        now: Instant,
        cooling: Cooling,
        reason: AttemptOutcome,
        wish: Option<Duration>,
    ) {
        let link = self.link();
        let Some(entry) = link.entries.get(self.claim.place) else {
            return;
        };
        match cooling {
            Cooling::Clear => entry.succeed(self.started),
            Cooling::Leave => {}
            Cooling::Start => {
                let span = link.cooldown.max(wish.unwrap_or_default());
                entry.cool(now, span, reason, &self.chain.name);
            }
        }
    }

    pub(super) fn announce(&self, transition: &Transition) {
        endpoint::announce(self.claim.provider(), &self.claim.endpoint, transition);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.link().in_flight.fetch_sub(1, Ordering::Relaxed);
        self.link().model.metrics.inflight.dec();
        if !self.reported {
            self.link().metrics.attempts(AttemptOutcome::Cancelled).inc();
            // Neutral frees a half-open slot and judges nothing, so neither the time nor the jitter matters.
            self.report(self.started, Verdict::Neutral, Verdict::Neutral, Draw::new(0.0));
        }
    }
}
