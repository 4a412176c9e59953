//! Another try of a provider, and another pass over the targets: how long each waits, and who pays.

use std::time::Duration;

use super::{Prospects, Run};
use crate::metrics::RetryOutcome;
use crate::policy::backoff::full_jitter;
use crate::policy::cascade::Standing;
use crate::policy::draw::Draw;
use crate::policy::time::Instant;
use crate::upstream::hold::Hold;

impl Run {
    /// Arranges for another try of the provider that `hold` is of, or where that `may_switch` of a target that is ready if
    /// it is not; false where budget or deadline forbid it.
    ///
    /// There is no wait for another endpoint while a target stands by: then the provider would be left at once, too.
    pub(in crate::upstream) fn retry(
        &mut self,
        now: Instant,
        hold: &Hold,
        prospects: &Prospects,
        may_switch: bool,
        jitter: Draw,
    ) -> bool {
        let provider = hold.claim.provider();
        let retries = &provider.config.retries;
        let visit = self.visit.map_or(1, |visit| visit.tries);
        let deadline = self.visit.and_then(|visit| visit.deadline);
        let deadline = deadline.into_iter().chain(self.deadline()).min();
        let wait = if prospects.elsewhere && prospects.another_target {
            Duration::ZERO
        } else {
            full_jitter(retries.base, retries.cap, visit, jitter).max(prospects.wish)
        };
        if wait > retries.cap && deadline.is_none() {
            // Nobody has said how long a client may be kept waiting; it is told itself when to come back.
            return false;
        }
        if deadline.is_some_and(|deadline| now + wait >= deadline) {
            provider.metrics.retries(RetryOutcome::Deadline).inc();
            return false;
        }
        let Some(charge) = provider.pay(now) else {
            return false;
        };
        self.charge = Some(charge);
        let wait = (!wait.is_zero()).then(|| now + wait);
        self.cascade.retry(hold.link, wait, may_switch);
        true
    }

    /// Begins another pass over the targets where visits and deadline allow it.
    pub(super) fn pass_again(&mut self, now: Instant, standings: &[Standing], draw: Draw) -> bool {
        let Some(previous) = self.previous.filter(|_| self.cascade.may_pass_again(standings)) else {
            return false;
        };
        let provider = &self.chain.links[previous.link].provider;
        let retries = &provider.config.retries;
        let wait = full_jitter(retries.base, retries.cap, self.cascade.passes() + 1, draw);
        if self.deadline().is_some_and(|deadline| now + wait >= deadline) {
            provider.metrics.retries(RetryOutcome::Deadline).inc();
            return false;
        }
        // A retry whose provider could not be had is not made.
        self.charge = None;
        self.cascade.begin_pass(now + wait);
        true
    }
}
