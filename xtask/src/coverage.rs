//! `cargo xtask coverage`: lines that no test runs, where none may be left.
//!
//! The suite builds lb's unit tests with counters and nothing else, so that CI measures coverage by the one run of them
//! that it makes anyway: what is left for its step is to read the profiles.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{
    ci::Outcome,
    command::{self, Failure, Result},
    ebpf::llvm,
    suite,
};

/// What must be covered whole: all that decides, and nothing that only moves bytes.
const WHOLE: [&str; 3] = ["lb/src/policy/", "lb/src/wire/", "lb/src/upstream/adopt.rs"];

/// Stands before rustc in the suite's builds. Cargo keeps what is compiled so apart from what is not, but only of the
/// workspace's own crates; dependencies are shared.
const COMPILER: &str = "#!/bin/sh
# Made by `cargo xtask`: the unit tests of lb count the lines they run, everything else is compiled as it is.
case \" $* \" in
*\" lb/src/lib.rs \"*\" --test \"*) exec \"$@\" -C instrument-coverage ;;
*) exec \"$@\" ;;
esac
";

/// The verb: runs lb's unit tests for nothing but their coverage.
pub(crate) fn run() -> Result {
    forget()?;
    let mut tests = Command::new(binary()?);
    tests
        .current_dir(command::root().join("lb"))
        .arg("--quiet")
        .env("LLVM_PROFILE_FILE", profile());
    command::run_quietly(&mut tests)?;
    match step()? {
        Outcome::Passed => Ok(()),
        Outcome::Skipped(reason) => Err(Failure::new(reason)),
    }
}

/// Has `cargo` build lb's unit tests with counters, and these write what they count where [`step`] looks.
pub(crate) fn count(cargo: &mut Command) -> Result {
    let compiler = command::root().join("target/rustc-with-counters");
    // Left alone when nothing changed: cargo would ask a newer compiler for its version again.
    if fs::read_to_string(&compiler).ok().as_deref() != Some(COMPILER) {
        let wrong = |error| Failure::new(format!("{}: {error}", compiler.display()));
        fs::write(&compiler, COMPILER).map_err(wrong)?;
        fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).map_err(wrong)?;
    }
    cargo
        .env("RUSTC_WORKSPACE_WRAPPER", compiler)
        .env("LLVM_PROFILE_FILE", profile());
    Ok(())
}

/// Drops the profiles of earlier runs: they would count lines that nothing runs any more.
pub(crate) fn forget() -> Result {
    match fs::remove_dir_all(folder()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::new(format!("{}: {error}", folder().display())))
        }
        _ => Ok(()),
    }
}

/// The step of CI, after the tests: skips where there are no tools that read this compiler's profiles, except in CI.
pub(crate) fn step() -> Result<Outcome> {
    let (profdata, cov) = match tools() {
        Ok(tools) => tools,
        Err(failure) if command::in_ci() => return Err(failure),
        Err(failure) => return Ok(Outcome::Skipped(failure.to_string())),
    };
    let binary = binary()?;
    let merged = folder().join("all.profdata");
    let raw = fs::read_dir(folder())
        .map_err(|error| Failure::new(format!("{}: {error}", folder().display())))?
        .flatten()
        .map(|file| file.path())
        .filter(|file| file.extension().is_some_and(|end| end == "profraw"));
    let mut merge = Command::new(profdata);
    merge.args(["merge", "--sparse"]).args(raw);
    command::run_quietly(merge.arg("--output").arg(&merged))?;
    let mut export = Command::new(cov);
    export
        .args(["export", "--format=lcov", "--instr-profile"])
        .arg(&merged)
        .arg(&binary);
    let gaps = gaps(&command::capture(&mut export)?, &command::root());
    for gap in &gaps {
        println!("{gap}: runs in no test");
    }
    if gaps.is_empty() {
        println!("coverage: every line of {} runs in a test", WHOLE.join(", "));
        return Ok(Outcome::Passed);
    }
    Err(Failure::new(format!("{} lines run in no test", gaps.len())))
}

/// llvm-profdata and llvm-cov, of the compiler's own LLVM: no other reads its profiles.
pub(crate) fn tools() -> Result<(PathBuf, PathBuf)> {
    let llvm = llvm::version(Command::new("rustc"))?;
    let own = components()?;
    let tool = |name: &str| {
        let versioned = command::find(&format!("{name}-{llvm}"));
        versioned.or_else(|| Some(own.join(name)).filter(|tool| tool.is_file()))
    };
    tool("llvm-profdata").zip(tool("llvm-cov")).ok_or_else(|| {
        Failure::new(format!(
            "there is no llvm-profdata-{llvm} or no llvm-cov-{llvm} (Debian: llvm-{llvm}; rustup: `rustup component add \
             llvm-tools`)"
        ))
    })
}

/// Where rustup's component `llvm-tools` is, if it is there.
fn components() -> Result<PathBuf> {
    let folder = command::capture(Command::new("rustc").args(["--print", "target-libdir"]))?;
    Ok(Path::new(folder.trim()).join("../bin"))
}

fn folder() -> PathBuf {
    command::root().join("target/coverage")
}

/// One file for each binary, into which its processes add what they counted: there may be one process for each test.
fn profile() -> PathBuf {
    folder().join("%m.profraw")
}

/// The unit tests of lb, built if they are not yet.
fn binary() -> Result<PathBuf> {
    let messages = command::capture(&mut suite::unit_tests()?)?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "lb" && message["profile"]["test"] == true)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| Failure::new("cargo named no test binary"))
}

/// Each line of [`WHOLE`] that the report, in the form of lcov, says never ran, as `FILE:LINE`.
fn gaps(report: &str, root: &Path) -> Vec<String> {
    let mut file = None;
    let mut gaps = Vec::new();
    for record in report.lines() {
        match record.split_once(':') {
            Some(("SF", path)) => {
                let path = Path::new(path).strip_prefix(root).ok().and_then(Path::to_str);
                file = path.filter(|path| {
                    // What a test would do where it fails is of no interest.
                    let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
                    !is_test && WHOLE.iter().any(|prefix| path.starts_with(prefix))
                });
            }
            Some(("DA", line)) => {
                if let (Some(file), Some((line, "0"))) = (file, line.split_once(',')) {
                    gaps.push(format!("{file}:{line}"));
                }
            }
            _ => {}
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_what_must_be_whole_count() {
        let files = [
            "lb/src/policy/aimd.rs",
            "lb/src/policy/health/tests.rs",
            "lb/src/policy/health/tests/model.rs",
            "lb/src/proxy/relay.rs",
            "lb/src/upstream/adopt.rs",
        ];
        let record = |file| format!("SF:/r/{file}\nFN:8,name\nDA:8,10\nDA:9,0\nLF:2\nend_of_record\n");
        let report = files.map(record).concat();
        assert_eq!(
            gaps(&report, Path::new("/r")),
            ["lb/src/policy/aimd.rs:9", "lb/src/upstream/adopt.rs:9"]
        );
        assert_eq!(gaps(&report, Path::new("/elsewhere")), [""; 0]);
    }
}
