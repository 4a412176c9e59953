//! The kernel plane against a real kernel: the programs alone, and whole connections in namespaces with faults.
//!
//! Needs root, the kernel programs (`cargo xtask build-ebpf`), and for the faults `ip` and `nft`. What cannot run counts as
//! ignored and is told with the reason; with `LB_REQUIRE_KERNEL=1` it fails.

#![cfg(test)]

mod bench;
mod clsact;
mod cost;
mod daemon;
mod differential;
mod faults;
mod frames;
mod harness;
mod live;
mod loading;
mod loss;
mod outcome;
mod process;
mod programs;
mod stage;

use std::io;
use std::process::ExitCode;

fn main() -> io::Result<ExitCode> {
    if lb_tests::live::play() {
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(done) = loading::child() {
        return Ok(done);
    }
    let mut tests = harness::Tests::new();
    for list in [
        clsact::tests,
        cost::tests,
        daemon::tests,
        differential::tests,
        faults::tests,
        live::tests,
        loading::tests,
        loss::tests,
        outcome::tests,
        process::tests,
    ] {
        list(&mut tests);
    }
    tests.run()
}
