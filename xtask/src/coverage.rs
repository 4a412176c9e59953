//! `cargo xtask coverage`: lines that no test runs, where none may be left.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{
    ci::Outcome,
    command::{self, Failure, Result},
    ebpf::llvm,
};

/// What must be covered whole: all that decides, and nothing that only moves bytes.
const WHOLE: [&str; 3] = ["lb/src/policy/", "lb/src/wire/", "lb/src/upstream/adopt.rs"];

pub(crate) fn run() -> Result {
    match step()? {
        Outcome::Passed => Ok(()),
        Outcome::Skipped(reason) => Err(Failure::new(reason)),
    }
}

/// The step of CI: skips where there are no tools that read this compiler's profiles, except in CI.
fn step() -> Result<Outcome> {
    let llvm = llvm::version(Command::new("rustc"))?;
    let tool = |name: &str| command::find(&format!("{name}-{llvm}"));
    let (Some(profdata), Some(cov)) = (tool("llvm-profdata"), tool("llvm-cov")) else {
        let reason = format!("coverage needs llvm-profdata-{llvm} and llvm-cov-{llvm} (Debian: llvm-{llvm})");
        return if command::in_ci() {
            Err(Failure::new(reason))
        } else {
            Ok(Outcome::Skipped(reason))
        };
    };
    let target = command::root().join("target/coverage");
    let profiles = target.join("profiles");
    // Those of an earlier run would count lines that nothing runs any more.
    drop(fs::remove_dir_all(&profiles));
    let binary = tests(&target, &profiles)?;
    let merged = profiles.join("all.profdata");
    let raw =
        fs::read_dir(&profiles).map_err(|error| Failure::new(format!("{}: {error}", profiles.display())))?;
    let mut merge = Command::new(profdata);
    merge
        .args(["merge", "--sparse"])
        .args(raw.flatten().map(|file| file.path()));
    command::run_quietly(merge.arg("--output").arg(&merged))?;
    let mut export = Command::new(cov);
    export
        .args(["export", "--summary-only", "--instr-profile"])
        .arg(&merged)
        .arg(&binary);
    let report = serde_json::from_str(&command::capture(&mut export)?)
        .map_err(|error| Failure::new(format!("bad report: {error}")))?;
    let gaps = gaps(&report, &command::root());
    for gap in &gaps {
        println!("{gap}");
    }
    if gaps.is_empty() {
        println!("coverage: every line of {} runs in a test", WHOLE.join(", "));
        return Ok(Outcome::Passed);
    }
    Err(Failure::new(format!(
        "no test runs these lines; to see them: llvm-cov-{llvm} show --instr-profile {} {}",
        merged.display(),
        binary.display()
    )))
}

/// Builds lb's unit tests with counters and runs them; returns the binary.
fn tests(target: &Path, profiles: &Path) -> Result<PathBuf> {
    let mut build = command::cargo();
    build
        .args([
            "test",
            "--quiet",
            "--locked",
            "-p",
            "lb",
            "--lib",
            "--no-run",
            "--message-format=json",
        ])
        .env("CARGO_TARGET_DIR", target)
        .env("RUSTFLAGS", "-C instrument-coverage")
        .env("LLVM_PROFILE_FILE", profiles.join("build-%p.profraw"));
    let messages = command::capture(&mut build)?;
    let binary = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "lb" && message["profile"]["test"] == true)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| Failure::new("cargo named no test binary"))?;
    let mut run = Command::new(&binary);
    run.current_dir(command::root().join("lb"))
        .arg("--quiet")
        .env("LLVM_PROFILE_FILE", profiles.join("lb-%p-%m.profraw"));
    command::run_quietly(&mut run)?;
    Ok(binary)
}

/// One line for each file of [`WHOLE`] that is not covered whole.
fn gaps(report: &Value, root: &Path) -> Vec<String> {
    let files = report["data"][0]["files"].as_array().into_iter().flatten();
    files
        .filter_map(|file| {
            let path = Path::new(file["filename"].as_str()?)
                .strip_prefix(root)
                .ok()?
                .to_str()?;
            let lines = &file["summary"]["lines"];
            let (count, covered) = (lines["count"].as_u64()?, lines["covered"].as_u64()?);
            // What a test would do where it fails is of no interest.
            let is_test = path.ends_with("/tests.rs") || path.contains("/tests/");
            let gap = WHOLE.iter().any(|prefix| path.starts_with(prefix)) && !is_test && covered < count;
            gap.then(|| format!("{path}: {} of {count} lines do not run", count - covered))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_files_that_must_be_whole_count() {
        let file = |name: &str, covered: u64| json!({"filename": format!("/r/{name}"), "summary": {"lines": {"count": 10, "covered": covered}}});
        let files = [
            file("lb/src/policy/aimd.rs", 9),
            file("lb/src/policy/health.rs", 10),
            file("lb/src/policy/health/tests.rs", 9),
            file("lb/src/policy/health/tests/model.rs", 9),
            file("lb/src/proxy/relay.rs", 1),
            file("lb/src/upstream/adopt.rs", 7),
        ];
        let report = json!({"data": [{"files": files}]});
        assert_eq!(
            gaps(&report, Path::new("/r")),
            [
                "lb/src/policy/aimd.rs: 1 of 10 lines do not run",
                "lb/src/upstream/adopt.rs: 3 of 10 lines do not run"
            ]
        );
    }
}
