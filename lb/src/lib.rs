//! lb
pub mod demo;
