//! lb

pub mod config;
