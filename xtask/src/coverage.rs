//! `cargo xtask coverage`: lines that no test runs, where none may be left.

use std::{path::Path, process::Command};

use serde_json::Value;

use crate::{
    command::{self, Failure, Result},
    ebpf::llvm,
};

/// What must be covered whole: all that decides, and nothing that only moves bytes.
const WHOLE: [&str; 3] = ["lb/src/policy/", "lb/src/wire/", "lb/src/upstream/adopt.rs"];

pub(crate) fn run() -> Result {
    if command::find("cargo-llvm-cov").is_none() {
        return Err(Failure::new(
            "coverage needs cargo-llvm-cov: cargo install cargo-llvm-cov --locked",
        ));
    }
    let mut measure = command::cargo();
    measure.args(["llvm-cov", "--workspace", "--locked", "--json", "--summary-only"]);
    offer_llvm(&mut measure)?;
    let report = command::capture(&mut measure)?;
    let report =
        serde_json::from_str(&report).map_err(|error| Failure::new(format!("bad report: {error}")))?;
    let gaps = gaps(&report, &command::root());
    for gap in &gaps {
        println!("{gap}");
    }
    if gaps.is_empty() {
        println!("coverage: every line of {} runs in a test", WHOLE.join(", "));
        return Ok(());
    }
    Err(Failure::new(
        "no test runs these lines; to see them: cargo llvm-cov report --text",
    ))
}

/// Where rustup's llvm-tools are not installed, Debian's read the same profiles.
fn offer_llvm(command: &mut Command) -> Result {
    let llvm = llvm::version(Command::new("rustc"))?;
    for (variable, tool) in [("LLVM_COV", "llvm-cov"), ("LLVM_PROFDATA", "llvm-profdata")] {
        if let Some(path) = command::find(&format!("{tool}-{llvm}")) {
            command.env(variable, path);
        }
    }
    Ok(())
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
            let gap = WHOLE.iter().any(|prefix| path.starts_with(prefix)) && covered < count;
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
