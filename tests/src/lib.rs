//! What the tests of lb share.

pub mod sim;
