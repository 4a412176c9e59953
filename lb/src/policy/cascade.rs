//! One request's attempts: which target is next, and when there is none.
//!
//! A cascade goes through its targets once, pool by pool: in a priority pool in order of definition, in a weighted pool
//! by load. It sees no lock and no clock. Before every attempt the caller hands in how each target stands *now*, then
//! claims the choice; if another request was faster, it reports [`Cascade::not_sent`] and asks again.
//!
//! A target whose endpoints are all out is passed over while any other can be attempted; only when none can does
//! fail-open try it, in order of definition. The share has its say once, about where to begin, and only in the first
//! pool: a diverted request begins at another target, and the preferred one, not having been tried, is reached later.

use std::sync::Arc;

use super::draw::Draw;
use super::select::{Candidate, least_inflight};

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
    /// The most visits to targets. Each target is visited once, so a number above theirs changes nothing.
    pub max_attempts: u32,
    /// Whether the share sent this request to begin at an alternate.
    pub divert: bool,
}

/// How one target stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// Not to be attempted at all: disabled, drained, or out without fail-open.
    Closed,
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
}

/// Why there is no other attempt.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Stop {
    /// There was at least one; its response or error is the answer.
    Exhausted,
    /// There was none, and some target only lacked room.
    Full,
    /// There was none: nothing can be attempted.
    Out,
}

/// The attempts of one request.
#[derive(Clone, Debug)]
pub struct Cascade {
    plan: Plan,
    attempts: u32,
    targets: usize,
    tried: Marks,
}

/// One mark for each target. Up to 64 of them, which is more than chains have, need no allocation.
#[derive(Clone, Debug, Default)]
struct Marks {
    first: u64,
    more: Vec<u64>,
}

impl Marks {
    fn set(&mut self, place: usize) {
        let bit = 1 << (place % 64);
        let Some(word) = (place / 64).checked_sub(1) else {
            self.first |= bit;
            return;
        };
        if word >= self.more.len() {
            self.more.resize(word + 1, 0);
        }
        self.more[word] |= bit;
    }

    fn clear(&mut self, place: usize) {
        let bit = 1 << (place % 64);
        match (place / 64).checked_sub(1) {
            None => self.first &= !bit,
            Some(word) => {
                if let Some(word) = self.more.get_mut(word) {
                    *word &= !bit;
                }
            }
        }
    }

    fn contains(&self, place: usize) -> bool {
        let word = match (place / 64).checked_sub(1) {
            None => self.first,
            Some(word) => self.more.get(word).copied().unwrap_or(0),
        };
        word >> (place % 64) & 1 == 1
    }

    fn is_empty(&self) -> bool {
        self.first == 0 && self.more.iter().all(|word| *word == 0)
    }
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
        }
    }

    /// The next attempt, given how each target stands; a target without a standing counts as closed.
    ///
    /// `draw` decides between equals of a weighted pool.
    pub fn next(&mut self, standings: &[Standing], draw: Draw) -> Step {
        let Some((target, fail_open)) = self.choose(standings, draw) else {
            return Step::Stop(self.why_not(standings));
        };
        self.tried.set(target);
        self.attempts += 1;
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
        self.attempts = self.attempts.saturating_sub(1);
    }

    /// `target`, which was lost before anything was sent, can be had after all.
    pub fn offer_again(&mut self, target: usize) {
        self.tried.clear(target);
    }

    /// Whether another attempt is possible as things stand.
    pub fn has_next(&self, standings: &[Standing]) -> bool {
        let possible = |standing: Standing| standing == Standing::Out || is_ready(standing);
        self.attempts < self.plan.max_attempts
            && self.untried(standings).any(|(_, standing)| possible(standing))
    }

    /// Attempts so far.
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Whether `target` has been chosen before.
    pub fn tried(&self, target: usize) -> bool {
        self.tried.contains(target)
    }

    /// The target that is due, and whether by fail-open.
    fn choose(&self, standings: &[Standing], draw: Draw) -> Option<(usize, bool)> {
        if self.attempts >= self.plan.max_attempts {
            return None;
        }
        let ready = self
            .diverted(standings)
            .or_else(|| self.in_order(standings, draw));
        ready.map(|target| (target, false)).or_else(|| {
            let out = self
                .untried(standings)
                .find(|(_, standing)| *standing == Standing::Out);
            out.map(|(target, _)| (target, true))
        })
    }

    /// Where a diverted request begins: at the first ready target of the first pool but the preferred one.
    fn diverted(&self, standings: &[Standing]) -> Option<usize> {
        if !self.plan.divert || self.attempts > 0 {
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
            Stop::Full
        } else {
            Stop::Out
        }
    }
}

/// Whether the target can be attempted without fail-open.
fn is_ready(standing: Standing) -> bool {
    matches!(standing, Standing::Ready(load) if load.weight > 0)
}

#[cfg(test)]
mod tests;
