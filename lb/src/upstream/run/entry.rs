//! How a request gets in where room is limited: into a model, and into a provider that it may have to wait for.

use std::sync::Arc;
use std::time::Duration;

use super::Run;
use crate::policy::cascade::Standing;
use crate::policy::time::Instant;
use crate::upstream::admission::{Admitted, Limits};
use crate::upstream::chain::{Model, Points};
use crate::upstream::standings::Standings;
use crate::upstream::waiting::{Granted, Waiting};

/// Why a request to targets that are all full is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Whether it is for the rate of requests alone, and not for how many there are at a time.
    pub by_rate: bool,
    /// When it is worth another try.
    pub retry_after: Duration,
}

impl Run {
    /// Has endpoints chosen by these keys, where they are chosen by one.
    pub fn key(&mut self, points: Points) {
        self.points = points;
    }

    /// The slot that was waited for is there.
    pub fn granted(&mut self, granted: Granted) {
        self.cascade.offer_again(granted.link);
        self.place = Some((granted.link, granted.place));
    }

    /// How each target stands. While a slot is held that was waited for, there is no other target.
    pub(super) fn standings(&self, now: Instant) -> Standings {
        let own = self.place.as_ref().map(|(link, _)| *link);
        Standings::of(&self.chain, |place, link| match own {
            Some(own) if own != place => Standing::Closed,
            Some(_) => link.standing_with_slot(now),
            None if self.is_kept_out_of(&link.model, now) => Standing::Full,
            None => link.standing(now),
        })
    }

    /// Whether the request would have to enter the model and cannot.
    fn is_kept_out_of(&self, model: &Arc<Model>, now: Instant) -> bool {
        let limits = model.limits.as_ref().filter(|_| !self.is_in(model));
        limits.is_some_and(|limits| limits.keep_out(now))
    }

    fn is_in(&self, model: &Arc<Model>) -> bool {
        self.admitted
            .as_ref()
            .is_some_and(|(own, _)| Arc::ptr_eq(own, model))
    }

    /// Enters the model of `link`, where that has limits and the request is not in it yet, and leaves the one before.
    /// The outer `None`: it cannot be entered.
    #[expect(
        clippy::option_option,
        reason = "whether it can be entered, and what by if there are limits"
    )]
    pub(super) fn enter(&mut self, link: usize, now: Instant) -> Option<Option<Arc<Admitted>>> {
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
    pub(super) fn queue(&self, now: Instant) -> Option<Waiting> {
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
            let has_no_slot = limits.is_some_and(Limits::is_full) || link.provider.has_no_slot(now);
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
}
