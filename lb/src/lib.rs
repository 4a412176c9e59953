//! lb

pub mod config;
pub mod policy;
