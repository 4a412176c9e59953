//! lb

pub mod wire;
