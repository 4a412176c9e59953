//! The whole daemon, in this process, on a resolver of the test's own.

mod addresses;
