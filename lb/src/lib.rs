//! lb

pub mod net;
pub mod wire;
