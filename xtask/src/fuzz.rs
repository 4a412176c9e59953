//! `cargo xtask fuzz TARGET`: coverage-guided fuzzing, which needs a nightly and cargo-fuzz.
//!
//! CI does not fuzz: it replays the corpora as ordinary tests.

use std::{process::Command, time::Duration};

use crate::command::{self, Failure, Result};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The target, by its name in `tests/fuzz/fuzz_targets`
    target: String,
    /// How long, such as 60s, 10m or 2h
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = duration)]
    time: Duration,
}

pub(crate) fn run(args: &Args) -> Result {
    if command::find("cargo-fuzz").is_none() {
        return Err(Failure::new(
            "fuzzing needs cargo-fuzz: cargo install cargo-fuzz --locked",
        ));
    }
    if command::run_quietly(Command::new("rustup").args(["run", "nightly", "rustc", "-V"])).is_err() {
        return Err(Failure::new(
            "fuzzing needs a nightly compiler: rustup toolchain install nightly",
        ));
    }
    let mut fuzz = Command::new("rustup");
    fuzz.args([
        "run",
        "nightly",
        "cargo",
        "fuzz",
        "run",
        "--fuzz-dir",
        "tests/fuzz",
        &args.target,
        "--",
    ]);
    fuzz.arg(format!("-max_total_time={}", args.time.as_secs()));
    // Both name the stable toolchain that runs this program.
    fuzz.current_dir(command::root())
        .env_remove("CARGO")
        .env_remove("RUSTC");
    command::run(&mut fuzz)
}

fn duration(text: &str) -> std::result::Result<Duration, String> {
    let (number, unit) = text.split_at(text.trim_end_matches(char::is_alphabetic).len());
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err("must be a number followed by s, m or h".into()),
    };
    let number: u64 = number.parse().map_err(|error| format!("{number:?}: {error}"))?;
    number
        .checked_mul(seconds)
        .map(Duration::from_secs)
        .ok_or_else(|| "is too long".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2h"), Ok(Duration::from_hours(2)));
        for wrong in [
            "",
            "90",
            "s",
            "5d",
            "1.5m",
            "99999999999999999999s",
            "18446744073709551615h",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
