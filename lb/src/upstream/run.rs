//! One request's way through its chain.

use std::sync::Arc;
use std::time::Duration;

use super::admission::Admitted;
use super::attempt::Attempt;
use super::chain::{Chain, Link, Model, Points};
use super::claim::Place;
use super::hold::Hold;
use super::provider::{Provider, Tried, Wish};
use super::purse::Charge;
use super::ticket::Ticket;
use super::waiting::Waiting;
use crate::metrics::{AttemptOutcome, RetryOutcome};
use crate::policy::cascade::{self, Cascade, Stop, Visit};
use crate::policy::draw::Draw;
use crate::policy::time::{Instant, millis};

mod again;
mod entry;
mod hedge;
mod start;

pub use entry::Refused;
pub(super) use hedge::Hedge;
pub use hedge::Hedging;

/// What of a request the policy wants to know.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts of one request, named where they are given"
)]
pub struct Sent {
    /// Whether the body says `stream: true`.
    pub streaming: bool,
    /// Whether the exempt header is there.
    pub exempt: bool,
    /// Whether the whole of it is at hand, to be sent again.
    pub replayable: bool,
    /// Whether it may be sent again when no byte of an answer came, where the provider's settings allow it.
    pub repeatable: bool,
    /// Whether they have no say in that, because sending it twice is as good as once.
    pub idempotent: bool,
}

/// What to do next.
#[derive(Debug)]
pub enum Step {
    /// Send it there.
    Try(Attempt),
    /// Wait for a slot, then say so with [`Run::granted`] and ask again.
    Queue(Waiting),
    /// Nothing is left to try.
    Stop(Stop),
    /// Ask again then.
    Wait(Instant),
}

/// One request's attempts: asks the pure cascade, takes what it chose, and tells it when another was faster.
///
/// Dropped while it waits, it gives back what the retry that it waited for was to cost.
#[derive(Debug)]
pub struct Run {
    chain: Arc<Chain>,
    sent: Sent,
    steered: bool,
    begun: Instant,
    cascade: Cascade,
    attempts: u32,
    visit: Option<Visiting>,
    /// What the next attempt has been paid with, where it is a retry.
    charge: Option<Charge>,
    previous: Option<Previous>,
    /// Who has answered with a server error.
    server_errors: Vec<Arc<Provider>>,
    points: Points,
    /// The model that it is in, where that has limits.
    admitted: Option<(Arc<Model>, Arc<Admitted>)>,
    /// A slot that was waited for, and for which link.
    place: Option<(usize, Place)>,
    /// Whether two attempts are under way, neither of which has ended.
    racing: bool,
}

/// The visit to a target that is under way.
#[derive(Clone, Copy, Debug)]
struct Visiting {
    tries: u32,
    tried: Tried,
    deadline: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Previous {
    link: usize,
    reason: AttemptOutcome,
    elapsed: Duration,
}

/// What could follow an attempt.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, named where they are given"
)]
pub(super) struct Prospects {
    /// No other target, nor another pass over them.
    pub(super) last: bool,
    /// Another try of the same provider.
    pub(super) retry: bool,
    /// That would be at an endpoint which has not been tried.
    pub(super) elsewhere: bool,
    /// The provider asks to be left alone for longer than a backoff lasts.
    pub(super) asks_for_long: bool,
    /// How long that is.
    wish: Duration,
    /// Whether another target of this pass is ready, so that there is no need to wait here.
    another_target: bool,
}

impl Run {
    /// The next step at `now`.
    pub fn next(&mut self, now: Instant, draw: &mut impl FnMut() -> Draw) -> Step {
        loop {
            let standings = self.standings(now);
            let (link, fail_open, last) = match self.cascade.next(standings.as_slice(), draw()) {
                cascade::Step::Wait { until } => return Step::Wait(until),
                cascade::Step::Stop(stop) => {
                    // A slot whose target cannot be attempted after all is for another, and so are the other targets
                    // for this request. [TABLE-9]
                    if self.place.take().is_some() {
                        continue;
                    }
                    if self.pass_again(now, standings.as_slice(), draw()) {
                        continue;
                    }
                    let waiting = (stop == Stop::Full).then(|| self.queue(now)).flatten();
                    return waiting.map_or(Step::Stop(stop), Step::Queue);
                }
                cascade::Step::Try {
                    target,
                    fail_open,
                    last,
                } => (target, fail_open, last),
            };
            if let Some(attempt) = self.attempt(link, fail_open, last, now, draw()) {
                return Step::Try(attempt);
            }
            self.cascade.not_sent(link);
        }
    }

    /// Takes what an attempt on `link` needs; `None` where that is not to be had.
    fn attempt(
        &mut self,
        link: usize,
        fail_open: bool,
        last: bool,
        now: Instant,
        draw: Draw,
    ) -> Option<Attempt> {
        let paid = self.charge.take();
        let waited = self.place.take().map(|(_, place)| place);
        let admitted = self.enter(link, now)?;
        let target = &self.chain.links[link];
        let provider = &target.provider;
        let (visit, charge) = match self.cascade.visit() {
            Visit::First => (None, None),
            Visit::Again => (None, Some(provider.pay(now)?)),
            Visit::Retry => (self.visit, paid),
        };
        let mut visit = visit.unwrap_or_else(|| Visiting::begin(provider, now));
        let wish = Wish {
            point: self.points.as_ref().and_then(|points| points[link]),
            ..visit.wish(target, fail_open)
        };
        let claim = provider.claim(now, waited, wish, draw)?;
        match charge {
            None => provider.purse.on_request(now),
            Some(charge) => {
                charge.spend();
                provider.metrics.retries(RetryOutcome::Sent).inc();
            }
        }
        visit.tries += 1;
        visit.tried.insert(claim.place);
        let may_go_on = !last || self.has_replica(target, visit, now);
        self.visit = Some(visit);
        self.attempts += 1;
        if let Some(previous) = self.previous.take() {
            announce(&self.chain, previous, link, &claim.endpoint.name);
        }
        let ticket = if self.steered && link == 0 {
            Ticket::open(&target.pool, now)
        } else {
            None
        };
        let hold = Hold::take((&self.chain, link), (claim, admitted), ticket, now);
        Some(Attempt::new(hold, self.sent, may_go_on, visit.deadline))
    }

    /// Whether the tries of a visit allow one more.
    fn may_try_again(&self, target: &Link, visiting: Visiting) -> bool {
        self.chain.retries && visiting.tries < target.provider.config.retries.max_attempts
    }

    /// On the last target a replica may be what is left; that will be a retry.
    fn has_replica(&self, target: &Link, visit: Visiting, now: Instant) -> bool {
        let provider = &target.provider;
        self.may_try_again(target, visit)
            && provider.has_elsewhere(now, visit.wish(target, false))
            && provider.purse.allows(now)
    }

    /// What could follow the attempt that holds `hold`, whose provider asks to be left alone for `wish`.
    pub(super) fn prospects(&self, now: Instant, hold: &Hold, wish: Option<Duration>) -> Prospects {
        let standings = self.standings(now);
        let another_target = self.cascade.has_next(standings.as_slice());
        let target = hold.link();
        let visit = self
            .visit
            .unwrap_or_else(|| Visiting::begin(&target.provider, now));
        let cap = target.provider.config.retries.cap;
        let retry = self.may_try_again(target, visit);
        Prospects {
            last: !another_target && !self.cascade.may_pass_again(standings.as_slice()),
            retry,
            elsewhere: retry && target.provider.has_elsewhere(now, visit.wish(target, false)),
            asks_for_long: wish.is_some_and(|wish| wish > cap),
            wish: wish.unwrap_or_default(),
            another_target,
        }
    }

    /// When the whole cascade has to have answered.
    fn deadline(&self) -> Option<Instant> {
        self.chain.total_deadline.map(|limit| self.begun + limit)
    }

    /// Remembers how the attempt on `link` ended, for the log line of what follows.
    pub(super) fn ended(&mut self, link: usize, reason: AttemptOutcome, elapsed: Duration) {
        self.previous = Some(Previous {
            link,
            reason,
            elapsed,
        });
    }

    /// `provider` has answered with a server error.
    pub(super) fn server_error(&mut self, provider: &Arc<Provider>) {
        if !self.had_server_error_of(provider) {
            self.server_errors.push(Arc::clone(provider));
        }
    }

    pub(super) fn had_server_error(&self) -> bool {
        !self.server_errors.is_empty()
    }

    pub(super) fn had_server_error_of(&self, provider: &Arc<Provider>) -> bool {
        self.server_errors
            .iter()
            .any(|known| Arc::ptr_eq(known, provider))
    }

    /// Attempts begun.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }
}

impl Visiting {
    fn begin(provider: &Provider, now: Instant) -> Self {
        Self {
            tries: 0,
            tried: Tried::default(),
            deadline: provider.config.retries.total_deadline.map(|limit| now + limit),
        }
    }

    fn wish(self, target: &Link, fail_open: bool) -> Wish<'_> {
        Wish {
            fail_open,
            tried: self.tried,
            entries: &target.entries,
            point: None,
        }
    }
}

/// Says what follows the attempt before: another try, or a switch.
fn announce(chain: &Chain, previous: Previous, link: usize, endpoint: &str) {
    let (from, to) = (&chain.links[previous.link].provider, &chain.links[link].provider);
    let reason = previous.reason.as_str();
    let elapsed_ms = millis(previous.elapsed);
    if previous.link == link {
        tracing::info!(model = %chain.name, provider = %to.name, endpoint, reason, elapsed_ms, "retrying");
        return;
    }
    chain.metrics.failovers(previous.reason).inc();
    tracing::info!(
        model = %chain.name, from = %from.name, to = %to.name, reason, elapsed_ms, "failed over"
    );
}
