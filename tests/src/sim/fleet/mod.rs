//! A fleet: lb's own composition of its machines between simulated clients and simulated providers.
//!
//! What is tested is `lb::upstream` as a whole: tables that are built from configurations and adopt one another's state,
//! runs, claims, slots, permits, budgets, cooldowns, limits, queues and the share. What is played is what lies around
//! it: clients that come, wait and leave, and providers that answer, slow down, refuse, hang, break off, and ask to be
//! left alone. Time is virtual and chance is a seed's, so that the same [`Story`] gives the same run, event for event.
//!
//! After each step the [`Ledger`](ledger::Ledger), which does its own book-keeping, is compared with what lb says of
//! itself. A difference ends the run, and [`Fleet::run`] tells which.

mod attempts;
mod books;
pub(super) mod chance;
mod checks;
mod end;
mod engine;
mod flight;
mod form;
mod happenings;
mod ledger;
mod order;
mod outcomes;
mod play;
mod probes;
mod requests;
mod seen;
mod server;
mod story;
mod tale;

pub use engine::{Broken, Fleet};
pub use flight::Fate;
pub use seen::Seen;
pub use server::{Server, Weather};
pub use story::{Asked, Signal, Story};
