//! The workspace's tests, through nextest where it is installed and through cargo's own runner elsewhere.
//!
//! Every verb builds the whole workspace, even to run one test: cargo unites features over what it builds, so a
//! narrower choice would compile half of the dependencies a second time.

use std::{fs, path::PathBuf, process::Command};

use crate::{
    command::{self, Result},
    coverage, setup,
};

/// The test binary that needs root; it has a step of its own.
pub(crate) const KERNEL: &str = "kernel";

/// Builds the workspace's programs and returns the path of `lb`.
pub(crate) fn build_lb() -> Result<PathBuf> {
    command::run(cargo()?.args(["build", "--quiet", "--workspace", "--bins", "--locked"]))?;
    Ok(command::root().join("target/debug/lb"))
}

/// A run of every test but the privileged ones.
pub(crate) fn all() -> Result<Command> {
    let mut command = runner()?;
    command.arg("--no-fail-fast");
    if nextest() {
        command.args(["--filterset", &format!("not binary(={KERNEL})")]);
    } else {
        command.args(["--lib", "--bins"]);
        command.args(test_files().iter().flat_map(|name| ["--test", name]));
    }
    command.env("LB_BIN", build_lb()?);
    offer_openai(&mut command)?;
    Ok(command)
}

/// A run of the tests of one file below tests/tests.
pub(crate) fn one(file: &str) -> Result<Command> {
    let mut command = runner()?;
    command.args(["--test", file]);
    Ok(command)
}

/// As [`one`], by cargo's own runner, which hands arguments on to the tests.
pub(crate) fn built_in(file: &str) -> Result<Command> {
    cargo_test(&["--test", file])
}

/// A run of the examples in the documentation.
pub(crate) fn doc() -> Result<Command> {
    cargo_test(&["--doc"])
}

/// A build of the unit tests, which prints what it made for a program to read.
pub(crate) fn unit_tests() -> Result<Command> {
    cargo_test(&["--lib", "--no-run", "--message-format=json"])
}

fn cargo_test(what: &[&str]) -> Result<Command> {
    let mut command = cargo()?;
    command
        .args(["test", "--quiet", "--workspace", "--locked"])
        .args(what);
    Ok(command)
}

fn runner() -> Result<Command> {
    let mut command = cargo()?;
    // Passed tests are counted, not listed.
    let run: &[&str] = if nextest() {
        &["nextest", "run", "--cargo-quiet", "--status-level=slow"]
    } else {
        &["test", "--quiet"]
    };
    command.args(run).args(["--workspace", "--locked"]);
    Ok(command)
}

/// Every run shares what is built, so every run builds for the one that measures coverage.
fn cargo() -> Result<Command> {
    let mut cargo = command::cargo();
    coverage::count(&mut cargo)?;
    Ok(cargo)
}

/// Whether the tests of `file` exist yet.
pub(crate) fn exists(file: &str) -> bool {
    let folder = command::root().join("tests/tests");
    folder.join(file).with_extension("rs").exists() || folder.join(file).join("main.rs").exists()
}

pub(crate) fn nextest() -> bool {
    command::find("cargo-nextest").is_some()
}

/// The test binaries of lb-tests, without the privileged one.
fn test_files() -> Vec<String> {
    let entries = fs::read_dir(command::root().join("tests/tests"))
        .into_iter()
        .flatten()
        .flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").exists())
        .filter_map(|path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .filter(|name| name != KERNEL)
        .collect();
    names.sort();
    names
}

/// Tells the tests of the openai clients where they are; without them they skip, and in CI they fail.
fn offer_openai(command: &mut Command) -> Result {
    let offers = [
        (
            "LB_OPENAI_PYTHON",
            setup::openai_python as fn() -> Result<PathBuf>,
        ),
        ("LB_OPENAI_NODE", setup::openai_node),
    ];
    for (variable, find) in offers {
        match find() {
            Ok(interpreter) => {
                command.env(variable, interpreter);
            }
            Err(failure) if command::in_ci() => return Err(failure),
            Err(failure) => println!("tests that need {variable} will be skipped: {failure}"),
        }
    }
    if command::in_ci() {
        command.env("LB_REQUIRE_CLIENTS", "1");
    }
    Ok(())
}
