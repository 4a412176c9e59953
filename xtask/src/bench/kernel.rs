//! `cargo xtask bench kernel`: what the kernel plane costs.

use crate::command::{self, Failure, Result};

pub(super) fn run() -> Result {
    if !command::is_root() {
        return Err(Failure::new("only root can load the kernel programs"));
    }
    command::run(command::cargo().args(["build", "--quiet", "--release", "--locked"]))?;
    let mut bench = command::cargo();
    bench.args([
        "bench", "--quiet", "--locked", "-p", "lb-tests", "--bench", "kernel",
    ]);
    command::run(bench.env("LB_BIN", command::root().join("target/release/lb")))
}
