//! One run: requests come, the policy decides, the plant answers.

use std::time::Duration;

use lb::policy::cascade::Cascade;
use lb::policy::health::Permit;
use lb::policy::outcome::Ended;

use super::steering::Token;
use super::trace::{Request, Trace};
use super::world::World;
use super::{Capacity, Plant, Record, Strategy};

/// What is run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Chance.
    pub seed: u64,
    /// The preferred provider.
    pub plant: Plant,
    /// How much of it is there.
    pub capacity: Capacity,
    /// How requests are steered.
    pub strategy: Strategy,
    /// How many come.
    pub requests: u32,
    /// Before this, counted from the start, nothing is measured.
    pub warm_up: Duration,
}

/// Runs `scenario` to the end of its last request.
pub fn run(scenario: &Scenario) -> Record {
    let mut world = World::new(scenario);
    for request in Trace::new(scenario.seed, &scenario.plant).take(scenario.requests as usize) {
        world.pass(request.arrives);
        world.arrive(request);
        world.check_invariants();
    }
    world.pass(Duration::MAX);
    world.finish()
}

/// A request on its way.
pub(super) struct Flight {
    pub(super) request: Request,
    pub(super) cascade: Cascade,
    /// The attempt that is under way, on the preferred target.
    pub(super) attempt: Option<Attempt>,
}

#[derive(Clone, Copy)]
pub(super) struct Attempt {
    pub(super) token: Token,
    pub(super) permit: Permit,
    pub(super) started: Duration,
    /// What its answer takes after the first token.
    pub(super) decode: Duration,
}

/// Something that is due.
pub(super) enum Event {
    /// The answer is over; the plant has room for another.
    Done(Permit),
    /// The attempt on the preferred target comes to its decisive event.
    Ends(Box<Flight>, Ended),
}
