//! `cargo xtask release`: lb as it is shipped.
//!
//! A proxy's work is little by little in much code, so that most of its time is the processor fetching instructions.
//! The compiler lays them out far better where it knows which of them run: lb is built with counters, trained with the
//! traffic that it is for, and built again with what was counted.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    command::{self, Failure, Result},
    coverage, ebpf,
};

/// Left out of the profile: it runs once at start, and a wrong counter there would make all else look cold.
const STARTUP: &str = "2lb6config";

/// How much of all counts is taken for hot, in millionths. A request's steps run once for each, and loops over its bytes
/// a hundred times: by the compiler's own limit (990,000) the former are not.
const HOT: &str = "-Cllvm-args=-profile-summary-cutoff-hot=999000";

/// No block runs this often in training: a counter beyond it is broken.
const MOST: u64 = 1_000_000_000_000;

/// The verb.
pub(crate) fn run() -> Result {
    println!("{}", build()?.display());
    Ok(())
}

/// Builds it, and gives its path.
pub(crate) fn build() -> Result<PathBuf> {
    let (profdata, _) = coverage::tools()?;
    ebpf::build_if_possible();
    let folder = command::root().join("target/trained");
    let counted = folder.join("counted");
    clear(&counted)?;
    let counting = compile(
        &folder.join("counting"),
        &[&format!("-Cprofile-generate={}", counted.display())],
    )?;
    let mut train = command::cargo();
    // Who asks need not be fast.
    train.args(["bench", "--profile", "dev", "--quiet", "--locked"]);
    train.args(["-p", "lb-tests", "--bench", "training"]);
    command::run(train.env("LB_BIN", counting))?;
    let profile = folder.join("lb.profdata");
    merge(&profdata, &counted, &profile)?;
    let built = compile(
        &folder.join("built"),
        &[&format!("-Cprofile-use={}", profile.display()), HOT],
    )?;
    let lb = folder.join("lb");
    fs::copy(&built, &lb).map_err(|error| Failure::new(format!("{}: {error}", lb.display())))?;
    Ok(lb)
}

/// Builds lb with further options of the compiler's, away from other builds, and gives its path.
fn compile(target: &Path, options: &[&str]) -> Result<PathBuf> {
    let host = host()?;
    let mut build = command::cargo();
    // With a target named, the flags are not those of build scripts and macros.
    build
        .args(["build", "--quiet", "--release", "--locked", "-p", "lb"])
        .args(["--target", &host])
        .arg("--target-dir")
        .arg(target)
        .env("CARGO_ENCODED_RUSTFLAGS", flags(options));
    command::run(&mut build)?;
    Ok(target.join(host).join("release/lb"))
}

/// These options behind the ones that the environment gives, in the form that takes a path with spaces.
fn flags(options: &[&str]) -> String {
    let given = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_else(|_unset| {
        let plain = std::env::var("RUSTFLAGS").unwrap_or_default();
        plain.split_whitespace().collect::<Vec<_>>().join("\x1f")
    });
    let given = given.split('\x1f').filter(|flag| !flag.is_empty());
    given
        .chain(options.iter().copied())
        .collect::<Vec<_>>()
        .join("\x1f")
}

/// The compiler's own platform.
fn host() -> Result<String> {
    let said = command::capture(Command::new("rustc").arg("-vV"))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| Failure::new("rustc does not say which platform it is for"))
}

fn clear(folder: &Path) -> Result {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Failure::new(format!("{}: {error}", folder.display())))
        }
        _ => Ok(()),
    }
}

/// Makes one profile of what the trained processes counted, and sees that it can be one.
fn merge(profdata: &Path, counted: &Path, profile: &Path) -> Result {
    let mut merge = Command::new(profdata);
    merge
        .args(["merge", "--no-function", STARTUP, "--output"])
        .arg(profile)
        .arg(counted);
    command::run_quietly(&mut merge)?;
    let said = command::capture(Command::new(profdata).arg("show").arg(profile))?;
    let most = highest(&said);
    if (1..=MOST).contains(&most) {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}: the highest count is {most}, so that the profile is of no use; `{} show --topn=5` says where it is",
        profile.display(),
        profdata.display()
    )))
}

/// The highest count of what `llvm-profdata show` says; 0 where nothing was counted.
fn highest(said: &str) -> u64 {
    let counts = said.lines().filter(|line| line.starts_with("Maximum"));
    counts
        .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_count_is_found_among_what_is_said() {
        let said = "Instrumentation level: IR  entry_first = 0\nTotal functions: 33751\n\
                    Maximum function count: 44408275\nMaximum internal block count: 140721982356224\n\
                    Total number of blocks: 334548\nTotal count: 1647409597\n";
        assert_eq!(highest(said), 140_721_982_356_224);
        assert_eq!(highest("Total functions: 0\n"), 0);
    }
}
