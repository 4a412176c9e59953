//! `cargo xtask fuzz [TARGET]`: coverage-guided fuzzing by libFuzzer, with the stable compiler.
//!
//! `libfuzzer-sys` brings the engine as C++ source; what cargo-fuzz adds are compiler flags, which are set here. Only the
//! address sanitizer is a nightly's, and the compiler takes it when it is told to pretend.
//!
//! CI does not fuzz: it replays the corpora as ordinary tests.

use std::{fs, path::PathBuf, process::Command};

use crate::command::{self, Failure, Result};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The target, by its name in `tests/fuzz/fuzz_targets`; without one, all of them, one after the other
    target: Option<String>,
    /// How long each target is fuzzed
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Afterwards, add the fewest inputs to `tests/fuzz/corpus` that reach what nothing there reaches
    #[arg(long)]
    keep: bool,
}

/// As cargo-fuzz builds: counters at every edge for the engine to see where an input went, comparisons told to it so that
/// it can satisfy them, and the checks of a debug build.
const FLAGS: [&str; 11] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg",
    "fuzzing",
    "-Cdebug-assertions",
    "-Coverflow-checks",
    "-Ccodegen-units=1",
    "-Zsanitizer=address",
];

pub(crate) fn run(args: &Args) -> Result {
    let known = targets()?;
    let chosen = match &args.target {
        Some(name) if known.contains(name) => vec![name.clone()],
        Some(name) => {
            let known = known.join(", ");
            return Err(Failure::new(format!(
                "there is no fuzz target {name}; there are {known}"
            )));
        }
        None => known,
    };
    if command::find("c++").is_none() {
        return Err(Failure::new("fuzzing needs a C++ compiler: apt-get install g++"));
    }
    let programs = build()?;
    for target in chosen {
        let committed = command::root().join("tests/fuzz/corpus").join(&target);
        let found = work().join("corpus").join(&target);
        let crashes = work().join("crashes").join(&target);
        for folder in [&found, &crashes] {
            fs::create_dir_all(folder)
                .map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
        }
        let mut fuzz = Command::new(programs.join(&target));
        // What is new goes to the folder that is named first.
        fuzz.args([&found, &committed])
            .arg(format!("-max_total_time={}", args.seconds))
            // The last part is a prefix of file names, not a folder.
            .arg(format!("-artifact_prefix={}/", crashes.display()))
            .args(["-print_final_stats=1", "-timeout=10"]);
        println!("== {target}: {} s", args.seconds);
        command::run(&mut fuzz)?;
        if args.keep {
            let mut merge = Command::new(programs.join(&target));
            // By which edges an input reaches, not how often it passes each: that is a third of the files.
            command::run(
                merge
                    .args([&committed, &found])
                    .args(["-merge=1", "-use_counters=0"]),
            )?;
        }
    }
    Ok(())
}

/// All targets, by name.
fn targets() -> Result<Vec<String>> {
    let folder = command::root().join("tests/fuzz/fuzz_targets");
    let files =
        fs::read_dir(&folder).map_err(|error| Failure::new(format!("{}: {error}", folder.display())))?;
    let mut names: Vec<_> = files
        .flatten()
        .filter_map(|file| Some(file.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Where everything goes that fuzzing makes.
fn work() -> PathBuf {
    command::root().join("target/fuzz")
}

/// Builds all targets and returns the folder with them. Built for a named host, so that the flags do not reach build
/// scripts and macros.
fn build() -> Result<PathBuf> {
    let about = command::capture(Command::new("rustc").arg("-vV"))?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or_else(|| Failure::new("`rustc -vV` names no host"))?;
    let mut build = command::cargo();
    build.args(["build", "--quiet", "--release", "--bins"]).args([
        "--manifest-path",
        "tests/fuzz/Cargo.toml",
        "--target",
        host,
    ]);
    build.arg("--target-dir").arg(work());
    build
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    command::run(&mut build)?;
    Ok(work().join(host).join("release"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_corpus() {
        let names = targets().unwrap();
        assert!(names.contains(&"segments".to_owned()), "{names:?}");
        for name in names {
            let corpus = command::root().join("tests/fuzz/corpus").join(&name);
            assert!(
                corpus.read_dir().is_ok_and(|mut inputs| inputs.next().is_some()),
                "{name}"
            );
        }
    }
}
