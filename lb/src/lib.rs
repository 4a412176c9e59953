//! lb

pub mod kernel;
pub mod policy;
