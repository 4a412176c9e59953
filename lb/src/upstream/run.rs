//! One request's way through its chain.

use std::sync::Arc;
use std::time::Duration;

use super::attempt::Attempt;
use super::chain::{Chain, Link};
use super::ticket::Ticket;
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
        }
    }

    /// The next step at `now`.
    pub fn next(&mut self, now: Instant, draw: &mut impl FnMut() -> Draw) -> Step {
        loop {
            let standings = Standings::of(&self.chain, now);
            let (link, fail_open, last) = match self.cascade.next(standings.as_slice(), draw()) {
                cascade::Step::Stop(stop) => return Step::Stop(stop),
                cascade::Step::Try {
                    target,
                    fail_open,
                    last,
                } => (target, fail_open, last),
            };
            let Some(claim) = self.chain.links[link].provider.claim(now, fail_open, draw()) else {
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
    fn of(chain: &Chain, now: Instant) -> Self {
        let all = chain.links.iter().map(|link| link.standing(now));
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
