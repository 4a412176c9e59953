//! The closed loop: the policy layer against a simulated provider that gets slower as it gets busier.
//!
//! One seed is one run: arrivals, first-token times and mishaps are drawn before anything is steered, so that a share, a
//! breaker and a fixed split meet the very same requests, and the same seed gives the same trace bit for bit. Time is
//! virtual; an hour takes a fraction of a second. The parts are the product's own (`Share`, `Cascade`, `judge`,
//! `Health`); only the data path between them is played.

mod breaker;
pub mod compare;
pub mod fleet;
mod plant;
mod queue;
mod record;
mod report;
mod run;
mod steering;
mod trace;
mod world;

pub use plant::{Capacity, Plant};
pub use record::Record;
pub use report::table;
pub use run::{Scenario, run};
pub use steering::Strategy;
