//! tests

pub mod netns;
