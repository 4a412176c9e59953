//! lb: a load balancer for LLM traffic.
//!
//! docs/ARCHITECTURE.md has the life of a request and the map of the code; docs/BEHAVIOUR.md has every rule.

pub mod admin;
pub mod cli;
pub mod clock;
pub mod config;
pub mod demo;
pub mod kernel;
pub mod metrics;
pub mod net;
pub mod policy;
pub mod probe;
pub mod proxy;
pub mod run;
pub mod upstream;
pub mod wire;
