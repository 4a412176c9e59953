//! `cargo xtask e2e`: the tests that need root, network namespaces and the kernel programs.
//!
//! They run one at a time, for they measure how fast the kernel's evidence arrives, on the binary that users get.

use crate::{
    ci::Outcome,
    command::{self, Failure, Result},
    suite,
};

pub(crate) fn run() -> Result {
    match step()? {
        Outcome::Passed => Ok(()),
        Outcome::Skipped(reason) => Err(Failure::new(reason)),
    }
}

/// The step of CI: skips where it cannot run, except in CI.
pub(crate) fn step() -> Result<Outcome> {
    if !suite::exists(suite::KERNEL) {
        return Ok(Outcome::Skipped("there are no kernel tests".into()));
    }
    if !command::is_root() {
        return Ok(Outcome::Skipped("only root can make network namespaces".into()));
    }
    command::run(command::cargo().args(["build", "--quiet", "--release", "--locked"]))?;
    let mut tests = suite::one(suite::KERNEL);
    tests.args(if suite::nextest() {
        &["--test-threads=1"][..]
    } else {
        &["--", "--test-threads=1"]
    });
    tests.env("LB_BIN", command::root().join("target/release/lb"));
    if command::in_ci() {
        tests.env("LB_REQUIRE_KERNEL", "1");
    }
    command::run(&mut tests)?;
    Ok(Outcome::Passed)
}
