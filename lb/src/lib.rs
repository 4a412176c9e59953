//! lb

pub mod policy;
