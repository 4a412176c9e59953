//! What is live and what has been learned: models, pools, targets, providers, endpoints.
//!
//! One [`Table`] is the whole routing state of an instant, immutable but for the small machines inside it (a share a
//! pool, a health an endpoint, counters of slots). Each machine has a mutex of its own, held for constant work; no
//! function holds two, and none is held over an await. What a request takes (a slot, a half-open permit, a place in a
//! gauge) is a guard that gives it back when dropped, so that a request which vanishes at any await leaves nothing
//! behind.
//!
//! Nothing here knows HTTP bodies or sockets: `proxy` does what a [`Step`] says and reports how it ended.
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the shell reads clocks and draws, not this layer"
)]

mod admission;
mod adopt;
mod attempt;
mod balancer;
mod build;
mod chain;
mod chains;
mod claim;
mod cooldowns;
mod endpoint;
mod gate;
mod hold;
mod limit;
mod pool;
mod probed;
mod provider;
mod purse;
mod route;
mod run;
mod signals;
mod site;
mod slots;
mod standings;
mod state;
mod table;
mod ticket;
mod waiting;

pub use attempt::{Attempt, Settled, Tail, observed};
pub use build::Context;
pub use chain::{Chain, Fallback, Link, Model, Points, Timers};
pub use claim::Claim;
pub use endpoint::Endpoint;
pub use pool::Pool;
pub use provider::Provider;
pub use route::{Route, To};
pub use run::{Hedging, Refused, Run, Sent, Step};
pub use site::{Site, sites};
pub use state::{
    BreakerState, CooldownState, EndpointState, KernelState, LimitState, ModelLimits, ModelState, PoolState,
    ProviderState, RetriesState, State,
};
pub use table::{Listed, Table};
pub use waiting::{Granted, Waiting};

#[cfg(test)]
mod tests;
