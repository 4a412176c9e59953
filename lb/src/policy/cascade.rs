//! One request's attempts: which target is next, and when there is none.
//!
//! A cascade goes through its targets pool by pool: in a priority pool in order of definition, in a weighted pool by
//! load. It is asked to go through them once more ([`Cascade::begin_pass`]) where its visits allow, and to stay at a
//! target for another try of the same provider ([`Cascade::retry`]). It sees no lock and no clock. Before every attempt the caller hands in how each target stands *now*, then
//! claims the choice; if another request was faster, it reports [`Cascade::not_sent`] and asks again.
//!
//! A target that is cooling down is passed over while any other is ready, and one whose endpoints are all out while any
//! other can be attempted; only when none can are they tried all the same, in order of definition. One that is barred
//! is not. The share has its say once, about where to begin, and only in the first
//! pool: a diverted request begins at another target, and the preferred one, not having been tried, is reached later.

use std::sync::Arc;

use super::draw::Draw;
use super::select::{Candidate, least_inflight};
use super::time::Instant;

mod marks;

use marks::Marks;

/// In what order the targets of one pool are attempted.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Strategy {
    /// In order of definition; the first is the preferred one.
    #[default]
    Priority,
    /// The least loaded first.
    Weighted,
}

/// The targets of one pool within a cascade.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pool {
    /// How many they are.
    pub targets: usize,
    /// Their order.
    pub strategy: Strategy,
}

/// What a cascade may do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The pools in order: the model's own, then those of the fallbacks.
    pub pools: Arc<[Pool]>,
    /// The most visits to targets. Tries within a visit are not counted here.
    pub max_attempts: u32,
    /// Whether the share sent this request to begin at an alternate.
    pub divert: bool,
}

/// How one target stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Not to be attempted for now: its breaker is open, or its endpoints are out without fail-open.
    Barred {
        /// When that may change.
        until: Instant,
    },
    /// Not to be attempted at all: disabled or drained.
    Closed,
    /// Cooling down at every endpoint that is in: to be attempted only if no target is ready.
    Cooling,
    /// It has no room: its provider is at its limit.
    Full,
    /// All its endpoints are out; fail-open may try it.
    Out,
    /// It can be attempted; a weighted pool chooses by the load. Weight 0 drains: it counts as closed.
    Ready(Candidate),
}

/// What to do next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub enum Step {
    /// No more attempts.
    Stop(Stop),
    /// Attempt a target.
    Try {
        /// Its position in the cascade.
        target: usize,
        /// Whether it is tried although all its endpoints are out.
        fail_open: bool,
        /// Whether, as things stand, no attempt could follow: then no first-token deadline is armed.
        last: bool,
    },
    /// Ask again at that instant.
    Wait {
        /// When.
        until: Instant,
    },
}

/// What an attempt is in the order of a request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Visit {
    /// The first visit to its target.
    #[default]
    First,
    /// A visit to a target that an earlier pass has been to.
    Again,
    /// Another try within the visit before.
    Retry,
}

/// Why there is no other attempt.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Stop {
    /// There was none: what could be attempted is barred.
    Barred {
        /// When the first of them may not be any more.
        until: Instant,
    },
    /// There was at least one; its response or error is the answer.
    Exhausted,
    /// There was none, and some target only lacked room.
    Full,
    /// There was none: nothing can be attempted.
    Out,
}

/// Another try of a target.
#[derive(Clone, Copy, Debug)]
struct Stay {
    target: usize,
    may_switch: bool,
}

/// The attempts of one request.
#[derive(Clone, Debug)]
pub struct Cascade {
    plan: Plan,
    attempts: u32,
    targets: usize,
    tried: Marks,
    /// Passes over the targets that were begun, but for the first.
    passes: u32,
    /// Visits of this pass.
    visits: u32,
    /// What the latest attempt is.
    visit: Visit,
    /// Where to stay.
    stay: Option<Stay>,
    /// What to wait for before the next attempt.
    wait: Option<Instant>,
}

// === impl Cascade ===

impl Cascade {
    /// A cascade that has tried nothing.
    pub fn new(plan: Plan) -> Self {
        let targets = plan.pools.iter().map(|pool| pool.targets).sum();
        Self {
            plan,
            attempts: 0,
            targets,
            tried: Marks::default(),
            passes: 0,
            visits: 0,
            visit: Visit::First,
            stay: None,
            wait: None,
        }
    }

    /// The next attempt, given how each target stands; a target without a standing counts as closed.
    ///
    /// `draw` decides between equals of a weighted pool.
    pub fn next(&mut self, standings: &[Standing], draw: Draw) -> Step {
        if let Some(until) = self.wait.take() {
            return Step::Wait { until };
        }
        let stay = self.stay.take();
        let Some((target, fail_open)) = self.choose(stay, standings, draw) else {
            return Step::Stop(self.why_not(standings));
        };
        if stay.is_some_and(|stay| stay.target == target) {
            self.visit = Visit::Retry;
        } else {
            self.visit = if self.passes == 0 {
                Visit::First
            } else {
                Visit::Again
            };
            self.tried.set(target);
            self.attempts += 1;
            self.visits += 1;
        }
        Step::Try {
            target,
            fail_open,
            last: !self.has_next(standings),
        }
    }

    /// The attempt on `target` was lost before anything was sent: it costs no attempt, and the target is not offered
    /// again in this pass.
    pub fn not_sent(&mut self, target: usize) {
        debug_assert!(self.tried(target), "only a target that was offered can be lost");
        if self.visit != Visit::Retry {
            self.attempts = self.attempts.saturating_sub(1);
            self.visits = self.visits.saturating_sub(1);
        }
    }

    /// `target`, which was lost before anything was sent, can be had after all.
    pub fn offer_again(&mut self, target: usize) {
        self.tried.clear(target);
    }

    /// Has the next attempt be another try of `target`, after `wait`, if given. With `may_switch` a target that is ready
    /// comes before this one if this is not any more; without, the ending was worth another try and no switch.
    pub fn retry(&mut self, target: usize, wait: Option<Instant>, may_switch: bool) {
        debug_assert!(
            self.tried(target),
            "only a target that was offered can be tried again"
        );
        self.stay = Some(Stay { target, may_switch });
        self.wait = wait;
    }

    /// Goes through the targets once more, after `wait`.
    pub fn begin_pass(&mut self, wait: Instant) {
        self.tried = Marks::default();
        self.passes += 1;
        self.visits = 0;
        self.wait = Some(wait);
    }

    /// Whether another target can be attempted as things stand.
    pub fn has_next(&self, standings: &[Standing]) -> bool {
        self.attempts < self.plan.max_attempts
            && self.untried(standings).any(|(_, standing)| is_possible(standing))
    }

    /// Whether the targets may be gone through once more, and there is one to go to. A pass that came to no visit is the
    /// last.
    pub fn may_pass_again(&self, standings: &[Standing]) -> bool {
        let mut targets = standings.iter().take(self.targets);
        self.visits > 0
            && (1..self.plan.max_attempts).contains(&self.attempts)
            && targets.any(|standing| is_possible(*standing))
    }

    /// What the latest attempt is.
    pub const fn visit(&self) -> Visit {
        self.visit
    }

    /// Passes over the targets that were begun, but for the first.
    pub const fn passes(&self) -> u32 {
        self.passes
    }

    /// Visits to targets so far.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Whether `target` has been chosen before.
    pub fn tried(&self, target: usize) -> bool {
        self.tried.contains(target)
    }

    /// The target that is due, and whether by fail-open; `stay` is where to stay if that is possible.
    fn choose(&self, stay: Option<Stay>, standings: &[Standing], draw: Draw) -> Option<(usize, bool)> {
        let standing = |target: usize| standings.get(target).copied().unwrap_or(Standing::Closed);
        let stays = |wanted: fn(Standing) -> bool| {
            let target = stay.map(|stay| stay.target);
            target.filter(|target| wanted(standing(*target)))
        };
        let new = self.attempts < self.plan.max_attempts && stay.is_none_or(|stay| stay.may_switch);
        let goes = |wanted: fn(Standing) -> bool| {
            let mut untried = self.untried(standings).filter(|_| new);
            let found = untried.find(|(_, standing)| wanted(*standing));
            found.map(|(target, _)| target)
        };
        let ready = stays(is_ready).or_else(|| {
            let diverted = self.diverted(standings);
            diverted
                .or_else(|| self.in_order(standings, draw))
                .filter(|_| new)
        });
        let cooling = || stays(is_cooling).or_else(|| goes(is_cooling));
        let out = || stays(is_out).or_else(|| goes(is_out));
        ready
            .or_else(cooling)
            .map(|target| (target, false))
            .or_else(|| out().map(|target| (target, true)))
    }

    /// Where a diverted request begins: at the first ready target of the first pool but the preferred one.
    fn diverted(&self, standings: &[Standing]) -> Option<usize> {
        if !self.plan.divert || self.attempts > 0 || self.passes > 0 {
            return None;
        }
        let first_pool = self.plan.pools.first().map_or(0, |pool| pool.targets);
        self.untried(standings)
            .take_while(|(target, _)| *target < first_pool)
            .find(|(target, standing)| *target > 0 && is_ready(*standing))
            .map(|(target, _)| target)
    }

    /// The first ready target, pool by pool.
    fn in_order(&self, standings: &[Standing], draw: Draw) -> Option<usize> {
        let mut start = 0;
        self.plan.pools.iter().find_map(|pool| {
            let targets = start..start + pool.targets;
            start = targets.end;
            let ready = targets.clone().map(|target| match standings.get(target) {
                Some(Standing::Ready(load)) if !self.tried(target) && load.weight > 0 => Some(*load),
                _ => None,
            });
            let position = match pool.strategy {
                Strategy::Priority => ready.clone().position(|load| load.is_some()),
                Strategy::Weighted => least_inflight(ready, draw),
            };
            position.map(|position| targets.start + position)
        })
    }

    /// Targets that have not been chosen, in order of definition.
    fn untried<'a>(&'a self, standings: &'a [Standing]) -> impl Iterator<Item = (usize, Standing)> + 'a {
        let targets = standings.iter().take(self.targets).enumerate();
        targets
            .filter(|(target, _)| !self.tried(*target))
            .map(|(target, standing)| (target, *standing))
    }

    /// Why nothing can be attempted.
    fn why_not(&self, standings: &[Standing]) -> Stop {
        if self.attempts > 0 {
            return Stop::Exhausted;
        }
        // One that was chosen and lost to a faster request lacked room just then, whatever it looks like now.
        let lost = !self.tried.is_empty();
        if lost || standings.contains(&Standing::Full) {
            return Stop::Full;
        }
        let barred = standings.iter().filter_map(|standing| match standing {
            Standing::Barred { until } => Some(*until),
            _ => None,
        });
        barred.min().map_or(Stop::Out, |until| Stop::Barred { until })
    }
}

/// Whether the target can be attempted without fail-open.
fn is_ready(standing: Standing) -> bool {
    matches!(standing, Standing::Ready(load) if load.weight > 0)
}

fn is_cooling(standing: Standing) -> bool {
    standing == Standing::Cooling
}

fn is_out(standing: Standing) -> bool {
    standing == Standing::Out
}

/// Whether the target can be attempted in any way.
fn is_possible(standing: Standing) -> bool {
    is_ready(standing) || is_cooling(standing) || is_out(standing)
}

#[cfg(test)]
mod tests;
