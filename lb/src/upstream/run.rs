//! One request's way through its chain.

use std::sync::Arc;
use std::time::Duration;

use super::admission::Admitted;
use super::attempt::Attempt;
use super::chain::{Chain, Link, Model, Points};
use super::provider::{Place, Wish};
use super::ticket::Ticket;
use super::waiting::{Granted, Waiting};
use crate::metrics::AttemptOutcome;
use crate::policy::aimd::Start;
use crate::policy::cascade::{self, Cascade, Plan, Standing, Stop};
use crate::policy::draw::Draw;
use crate::policy::time::{Instant, millis};

/// What of a request the policy wants to know.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent facts of one request, named where they are given"
)]
pub struct Sent {
    /// Whether the body says `stream: true`.
    pub streaming: bool,
    /// Whether the exempt header is there.
    pub exempt: bool,
    /// Whether the whole of it is at hand, to be sent again.
    pub replayable: bool,
    /// Whether it may be sent again when no byte of an answer came.
    pub repeatable: bool,
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
}

/// One request's attempts: asks the pure cascade, takes what it chose, and tells it when another was faster.
#[derive(Debug)]
pub struct Run {
    chain: Arc<Chain>,
    sent: Sent,
    steered: bool,
    cascade: Cascade,
    previous: Option<Previous>,
    pub(super) server_error_before: bool,
    points: Points,
    /// The model that it is in, where that has limits.
    admitted: Option<(Arc<Model>, Arc<Admitted>)>,
    /// A slot that was waited for, and for which link.
    place: Option<(usize, Place)>,
}

/// Why a request to targets that are all full is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Whether it is for the rate of requests alone, and not for how many there are at a time.
    pub by_rate: bool,
    /// When it is worth another try.
    pub retry_after: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Previous {
    link: usize,
    reason: AttemptOutcome,
    elapsed: Duration,
}

impl Run {
    /// Begins a request: draws its start where it is eligible for its pool's share.
    pub fn begin(chain: Arc<Chain>, sent: Sent, now: Instant) -> Self {
        let first = chain.links.first();
        let steered = first.is_some_and(|link| is_eligible(link, sent));
        let divert = steered && first.is_some_and(|link| starts_at_alternate(link, now));
        let plan = Plan {
            pools: Arc::clone(&chain.pools),
            max_attempts: chain.max_attempts,
            divert,
        };
        Self {
            cascade: Cascade::new(plan),
            chain,
            sent,
            steered,
            previous: None,
            server_error_before: false,
            points: None,
            admitted: None,
            place: None,
        }
    }

    /// Has endpoints chosen by these keys, where they are chosen by one.
    #[must_use]
    pub fn keyed(mut self, points: Points) -> Self {
        self.points = points;
        self
    }

    /// The slot that was waited for is there.
    pub fn granted(&mut self, granted: Granted) {
        self.cascade.offer_again(granted.link);
        self.place = Some((granted.link, granted.place));
    }

    /// The next step at `now`.
    pub fn next(&mut self, now: Instant, draw: &mut impl FnMut() -> Draw) -> Step {
        loop {
            let standings = self.standings(now);
            let (link, fail_open, last) = match self.cascade.next(standings.as_slice(), draw()) {
                cascade::Step::Stop(Stop::Full) => {
                    return self.queue(now).map_or(Step::Stop(Stop::Full), Step::Queue);
                }
                cascade::Step::Stop(stop) => return Step::Stop(stop),
                cascade::Step::Try {
                    target,
                    fail_open,
                    last,
                } => (target, fail_open, last),
            };
            let wish = Wish {
                fail_open,
                place: self.place.take().map(|(_, place)| place),
                point: self.points.as_ref().and_then(|points| points[link]),
            };
            let claim = self.enter(link, now).and_then(|admitted| {
                Some((
                    self.chain.links[link].provider.claim(now, wish, draw())?,
                    admitted,
                ))
            });
            let Some(claim) = claim else {
                self.cascade.not_sent(link);
                continue;
            };
            self.announce(link);
            let steered = self.steered && link == 0;
            let ticket = if steered {
                Ticket::open(&self.chain.links[0].pool, now)
            } else {
                None
            };
            return Step::Try(Attempt::new(
                (&self.chain, link),
                claim,
                self.sent,
                last,
                ticket,
                now,
            ));
        }
    }

    /// How each target stands. While a slot is held that was waited for, there is no other target.
    fn standings(&self, now: Instant) -> Standings {
        let own = self.place.as_ref().map(|(link, _)| *link);
        Standings::of(&self.chain, |place, link| match own {
            Some(own) if own != place => Standing::Closed,
            Some(_) => link.provider.standing_with_slot(now, link.load()),
            None if self.is_kept_out_of(&link.model, now) => Standing::Full,
            None => link.standing(now),
        })
    }

    /// Whether the request would have to enter the model and cannot.
    fn is_kept_out_of(&self, model: &Arc<Model>, now: Instant) -> bool {
        let Some(limits) = &model.limits else { return false };
        !self.is_in(model) && (limits.is_full() || !limits.wait(now).is_zero())
    }

    fn is_in(&self, model: &Arc<Model>) -> bool {
        self.admitted
            .as_ref()
            .is_some_and(|(own, _)| Arc::ptr_eq(own, model))
    }

    /// Enters the model of `link`, where that has limits and the request is not in it yet, and leaves the one before.
    /// The outer `None`: it cannot be entered.
    fn enter(&mut self, link: usize, now: Instant) -> Option<Option<Arc<Admitted>>> {
        let model = &self.chain.links[link].model;
        let Some(limits) = &model.limits else {
            return Some(None);
        };
        if !self.is_in(model) {
            self.admitted = Some((Arc::clone(model), Arc::new(limits.admit(now)?)));
        }
        Some(self.admitted.as_ref().map(|(_, admitted)| Arc::clone(admitted)))
    }

    /// A place in the queue of the first target that has one and lacks nothing but a slot.
    fn queue(&self, now: Instant) -> Option<Waiting> {
        let mut links = self.chain.links.iter().enumerate();
        links.find_map(|(place, link)| {
            let provider = &link.provider;
            let lacks_only_a_slot = provider.may_wait()
                && link.standing(now) == Standing::Full
                && provider.wait(now).is_zero()
                && !self.is_kept_out_of(&link.model, now);
            lacks_only_a_slot
                .then(|| Waiting::join(provider, place))
                .flatten()
        })
    }

    /// Why a request that finds every target full is refused.
    pub fn refused(&self, now: Instant) -> Refused {
        let mut waits = self.chain.links.iter().map(|link| {
            let limits = link.model.limits.as_ref().filter(|_| !self.is_in(&link.model));
            let has_no_slot = limits.is_some_and(|limits| limits.is_full()) || link.provider.has_no_slot(now);
            let model = limits.map_or(Duration::ZERO, |limits| limits.wait(now));
            (!has_no_slot).then(|| model.max(link.provider.wait(now)))
        });
        let all: Option<Vec<Duration>> = waits.by_ref().collect();
        let shortest = all.and_then(|all| all.into_iter().filter(|wait| !wait.is_zero()).min());
        Refused {
            by_rate: shortest.is_some(),
            retry_after: shortest.unwrap_or(Duration::from_secs(1)),
        }
    }

    /// Remembers how the attempt on `link` ended, for the log line of the switch.
    pub(super) fn ended(&mut self, link: usize, reason: AttemptOutcome, elapsed: Duration) {
        self.previous = Some(Previous {
            link,
            reason,
            elapsed,
        });
    }

    /// Attempts begun.
    pub fn attempts(&self) -> u32 {
        self.cascade.attempts()
    }

    fn announce(&mut self, link: usize) {
        let Some(previous) = self.previous.take() else {
            return;
        };
        self.chain.metrics.failovers(previous.reason).inc();
        tracing::info!(
            model = %self.chain.name,
            from = %self.chain.links[previous.link].provider.name,
            to = %self.chain.links[link].provider.name,
            reason = previous.reason.as_str(),
            elapsed_ms = millis(previous.elapsed),
            "failed over"
        );
    }
}

/// How each target of a chain stands. Chains are short, and those that are need no allocation.
enum Standings {
    Few([Standing; FEW], usize),
    Many(Vec<Standing>),
}

const FEW: usize = 8;

impl Standings {
    fn of(chain: &Chain, standing: impl Fn(usize, &Link) -> Standing) -> Self {
        let all = chain
            .links
            .iter()
            .enumerate()
            .map(|(place, link)| standing(place, link));
        if chain.links.len() > FEW {
            return Self::Many(all.collect());
        }
        let mut few = [Standing::Closed; FEW];
        for (place, standing) in few.iter_mut().zip(all) {
            *place = standing;
        }
        Self::Few(few, chain.links.len())
    }

    fn as_slice(&self) -> &[Standing] {
        match self {
            Self::Few(few, count) => &few[..*count],
            Self::Many(many) => many,
        }
    }
}

/// Whether a request takes part in the share of `link`'s pool.
fn is_eligible(link: &Link, sent: Sent) -> bool {
    let Some(controller) = &link.pool.controller else {
        return false;
    };
    controller
        .params()
        .takes_part(sent.streaming, link.model.is_strict(), sent.exempt)
}

fn starts_at_alternate(link: &Link, now: Instant) -> bool {
    let controller = link.pool.controller.as_ref();
    controller.is_some_and(|controller| controller.begin(&link.pool, now) == Start::Alternate)
}
