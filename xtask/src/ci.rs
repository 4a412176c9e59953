//! `cargo xtask ci`: every check, in order, each with its time; the first failure ends it.
//!
//! The order is cheapest first, except that the kernel programs come before anything that embeds them. All steps but
//! two build with the `dev` profile and the whole workspace, so that dependencies are compiled only once for clippy
//! and the documentation, once for the tests and once for the release.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    bench,
    command::{self, Result},
    coverage, e2e, ebpf, suite, tidy,
};

/// How a step that did not fail ended.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Passed,
    /// With the reason, for a person.
    Skipped(String),
}

type Step = (&'static str, fn() -> Result<Outcome>);

const STEPS: [Step; 12] = [
    ("fmt", fmt),
    ("build-ebpf", build_ebpf),
    ("tidy", || passed(tidy::run())),
    ("clippy", clippy),
    ("test", test),
    ("coverage", coverage::step),
    ("doc test", || passed(command::run(&mut suite::doc()?))),
    ("doc", doc),
    ("test lb-ebpf", test_ebpf),
    ("build --release", || {
        cargo(&["build", "--quiet", "--release", "--locked"])
    }),
    ("instructions", bench::instructions::step),
    ("e2e", e2e::step),
];

pub(crate) fn run() -> Result {
    let start = Instant::now();
    let (mut passed, mut skipped) = (0, 0);
    for (name, step) in STEPS {
        println!("== {name}");
        let begun = Instant::now();
        let outcome = step();
        let took = seconds(begun.elapsed());
        match outcome {
            Ok(Outcome::Passed) => {
                passed += 1;
                println!("== {name}: passed in {took}");
            }
            Ok(Outcome::Skipped(reason)) => {
                skipped += 1;
                println!("== {name}: skipped: {reason}");
            }
            Err(failure) => {
                println!("== {name}: failed after {took}");
                println!("steps: {passed} passed, 1 failed, {skipped} skipped");
                return Err(failure);
            }
        }
    }
    println!("all in {}", seconds(start.elapsed()));
    println!("steps: {passed} passed, 0 failed, {skipped} skipped");
    Ok(())
}

fn fmt() -> Result<Outcome> {
    cargo(&["fmt", "--all", "--check"])?;
    beside_the_kernel_programs(&["fmt", "--check"], &[])
}

fn build_ebpf() -> Result<Outcome> {
    if !ebpf::present() {
        return Ok(Outcome::Skipped("there are no kernel programs".into()));
    }
    match ebpf::build(Path::new(ebpf::MANIFEST)) {
        Ok(object) => {
            println!("{}", object.display());
            Ok(Outcome::Passed)
        }
        // A broken program must fail everywhere; a missing toolchain only where everything has to run.
        Err(failure) if command::in_ci() || ebpf::toolchain::find().is_ok() => Err(failure),
        Err(failure) => Ok(Outcome::Skipped(failure.to_string())),
    }
}

fn clippy() -> Result<Outcome> {
    // Through arguments, not RUSTFLAGS: those would make cargo build every dependency again.
    let deny = ["--", "-D", "warnings"];
    let all = ["clippy", "--quiet", "--workspace", "--all-targets", "--locked"];
    cargo(&[&all[..], &deny].concat())?;
    beside_the_kernel_programs(&["clippy", "--quiet", "--all-targets", "--locked"], &deny)
}

fn test() -> Result<Outcome> {
    // What this run counts is what the next step reads.
    coverage::forget()?;
    passed(command::run(&mut suite::all()?))
}

fn doc() -> Result<Outcome> {
    let mut doc = command::cargo();
    doc.args([
        "doc",
        "--quiet",
        "--workspace",
        "--locked",
        "--no-deps",
        "--document-private-items",
    ]);
    // Private items are in the documentation, so links to them lead somewhere.
    passed(command::run(doc.env(
        "RUSTDOCFLAGS",
        "-D warnings -A rustdoc::private_intra_doc_links",
    )))
}

fn test_ebpf() -> Result<Outcome> {
    if !ebpf::present() {
        return Ok(Outcome::Skipped("there are no kernel programs".into()));
    }
    beside_the_kernel_programs(&["test", "--quiet", "--locked"], &[])
}

/// Runs a cargo command on the kernel programs' own workspace, as host code, if that is there.
fn beside_the_kernel_programs(command: &[&str], rest: &[&str]) -> Result<Outcome> {
    if !ebpf::present() {
        return Ok(Outcome::Passed);
    }
    cargo(&[command, &["--manifest-path", ebpf::MANIFEST], rest].concat())
}

fn cargo(args: &[&str]) -> Result<Outcome> {
    passed(command::run(command::cargo().args(args)))
}

fn passed(result: Result) -> Result<Outcome> {
    result.map(|()| Outcome::Passed)
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
