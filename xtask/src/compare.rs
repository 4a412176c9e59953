//! `cargo xtask compare`: writes the comparison of lb's share with other ways; the diff is then the review.

use crate::{
    command::{self, Result},
    suite,
};

pub(crate) fn run() -> Result {
    let mut tests = suite::built_in("sim")?;
    tests.args(["--", "compare"]).env("UPDATE", "1");
    command::run(&mut tests)
}
