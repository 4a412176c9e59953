//! A second attempt beside one that is slow: what it takes, and what became of it.

use std::sync::Arc;

use super::{Run, Visiting};
use crate::metrics::HedgeOutcome;
use crate::policy::draw::Draw;
use crate::policy::outcome::{Ended, Next};
use crate::policy::time::Instant;
use crate::upstream::attempt::Attempt;
use crate::upstream::claim::Claim;
use crate::upstream::hold::Hold;
use crate::upstream::provider::{Provider, Wish};
use crate::upstream::purse::Charge;

/// A second attempt that may become necessary.
#[derive(Clone, Copy, Debug)]
pub struct Hedging {
    /// When it is to begin, if the first has not answered by then.
    pub at: Instant,
    /// The first one's target and endpoint.
    pub(in crate::upstream) link: usize,
    pub(in crate::upstream) endpoint: usize,
}

/// Counts what a hedge comes to. Dropped without a word, its client left.
#[derive(Debug)]
pub(in crate::upstream) struct Hedge {
    provider: Arc<Provider>,
    outcome: HedgeOutcome,
}

impl Hedge {
    /// It ended so, and this is what follows.
    pub(in crate::upstream) fn came_to(mut self, ended: &Ended, next: Next) {
        self.outcome = match (ended, next) {
            (Ended::Outrun, _) => HedgeOutcome::Lost,
            (Ended::TotalDeadline | Ended::VisitDeadline, _) => HedgeOutcome::Cancelled,
            (_, Next::Commit) => HedgeOutcome::Won,
            _ => HedgeOutcome::Failed,
        };
    }
}

impl Drop for Hedge {
    fn drop(&mut self) {
        self.provider.metrics.hedges(self.outcome).inc();
    }
}

impl Run {
    /// Begins a second attempt beside the one that `hedging` is of, at another endpoint of its provider; `None` where
    /// tries, budget or room forbid it. It is a retry in all but that the first goes on.
    ///
    /// From here on the run has two attempts under way, until one of them has been settled.
    pub fn hedge(&mut self, now: Instant, hedging: Hedging, draw: Draw) -> Option<Attempt> {
        let link = hedging.link;
        let visit = self.visit?;
        if !self.may_try_again(&self.chain.links[link], visit) {
            return None;
        }
        let admitted = self.enter(link, now)?;
        let target = &self.chain.links[link];
        let provider = &target.provider;
        let (claim, charge) = match self.elsewhere(hedging, visit, now, draw) {
            Ok(taken) => taken,
            Err(why) => {
                provider.metrics.hedges(why).inc();
                return None;
            }
        };
        charge.spend();
        let mut visit = visit;
        visit.tries += 1;
        visit.tried.insert(claim.place);
        let may_go_on =
            self.cascade.has_next(self.standings(now).as_slice()) || self.has_replica(target, visit, now);
        tracing::info!(
            model = %self.chain.name, provider = %provider.name, endpoint = %claim.endpoint.name, "hedging"
        );
        let hedge = Hedge {
            provider: Arc::clone(provider),
            outcome: HedgeOutcome::Cancelled,
        };
        let hold = Hold::take((&self.chain, link), (claim, admitted), None, now);
        let hold = hold.beside(self.steered && link == 0);
        self.visit = Some(visit);
        self.attempts += 1;
        self.racing = true;
        Some(Attempt::new(hold, self.sent, may_go_on, visit.deadline).counted_by(hedge))
    }

    /// What the hedge takes of its provider, or why it is not to be had.
    fn elsewhere(
        &self,
        hedging: Hedging,
        visit: Visiting,
        now: Instant,
        draw: Draw,
    ) -> Result<(Claim, Charge), HedgeOutcome> {
        let target = &self.chain.links[hedging.link];
        let provider = &target.provider;
        let wish = Wish {
            point: self.points.as_ref().and_then(|points| points[hedging.link]),
            ..visit.wish(target, false)
        };
        if !provider.has_elsewhere(now, wish) {
            return Err(HedgeOutcome::Room);
        }
        let charge = provider.purse.withdraw(now).ok_or(HedgeOutcome::Budget)?;
        let claim = provider.claim(now, None, wish, draw).ok_or(HedgeOutcome::Room)?;
        // Another request may have been faster, so that none but those that were tried was left.
        if claim.place == hedging.endpoint || visit.tried.contains(claim.place) {
            return Err(HedgeOutcome::Room);
        }
        Ok((claim, charge))
    }

    /// Whether two attempts are under way.
    pub(in crate::upstream) fn is_racing(&self) -> bool {
        self.racing
    }

    /// One of them has ended.
    pub(in crate::upstream) fn decided(&mut self) {
        self.racing = false;
    }
}

#[cfg(test)]
mod tests;
