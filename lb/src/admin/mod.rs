//! The operators' listener: liveness, readiness, metrics, state.
//!
//! It runs on a thread of its own, so that load on the workers never makes lb look dead, and it knows neither proxy
//! nor table: [`View`] is all it can ask.

mod answer;
mod server;
mod token;

pub use answer::{Check, Reloaded, View};
pub use server::serve;
pub use token::Token;
