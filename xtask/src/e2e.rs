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

/// The step of CI: says which tests are skipped and why, except in CI, where that is a failure.
pub(crate) fn step() -> Result<Outcome> {
    if !suite::exists(suite::KERNEL) {
        return Ok(Outcome::Skipped("there are no kernel tests".into()));
    }
    if !command::in_ci() {
        let skipped = command::capture(suite::built_in(suite::KERNEL)?.args(["--", "--skipped"]))?;
        if let Some(reason) = skipped.lines().find(|line| is_all(line)) {
            return Ok(Outcome::Skipped(reason.into()));
        }
        print!("{skipped}");
    }
    command::run(command::cargo().args(["build", "--quiet", "--release", "--locked"]))?;
    let mut tests = suite::one(suite::KERNEL)?;
    tests.args(if suite::nextest() {
        &["--test-threads=1"][..]
    } else {
        &["--", "--nocapture"]
    });
    tests.env("LB_BIN", command::root().join("target/release/lb"));
    if command::in_ci() {
        tests.env("LB_REQUIRE_KERNEL", "1");
    }
    command::run(&mut tests)?;
    Ok(Outcome::Passed)
}

/// Whether `12 of 12 tests skipped: …` is about all of them.
fn is_all(line: &str) -> bool {
    let mut words = line.split(' ');
    let (count, all) = (words.next(), words.nth(1));
    count.is_some() && count == all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_is_not_all() {
        assert!(is_all("12 of 12 tests skipped: built without"));
        assert!(!is_all("2 of 12 tests skipped: there is no `nft`"));
        assert!(!is_all(""));
    }
}
