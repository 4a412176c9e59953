//! The project's tasks, one file a verb: `cargo xtask VERB`.
//!
//! Set-up, builds, checks and tests all go through this program, so that a developer, CI and the README run the same
//! commands. It needs nothing but cargo to start; what a verb needs beyond that, [`setup`] finds or installs.
//!
//! The same binary is also the linker of the kernel programs ([`ebpf::linker`]): no other file has to be found then.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks to its terminal"
)]

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};

use crate::{command::Result, ebpf::linker};

mod bench;
mod ci;
mod command;
mod compare;
mod coverage;
mod demo;
mod e2e;
mod ebpf;
mod fuzz;
mod golden;
mod release;
mod setup;
mod sim;
mod suite;
mod tidy;

/// The project's tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Find what this machine lacks for building, testing and the kernel programs, and with --install bring it
    Setup(setup::Args),
    /// Build the kernel programs and print the path of the object
    BuildEbpf {
        /// The manifest of the kernel programs' crate
        #[arg(long, default_value = ebpf::MANIFEST)]
        manifest_path: PathBuf,
    },
    /// Set up, build the kernel programs where possible, and run `lb demo`
    Demo(demo::Args),
    /// Set up, then run all that CI runs
    Test(setup::Args),
    /// Run CI's steps in order, without set-up
    Ci,
    /// Check the project's own rules: layers, sizes, rule citations, licences, documentation
    Tidy,
    /// Run the tests that need root and network namespaces
    E2e,
    /// Run the simulations: the closed loop of the share, and whole fleets
    Sim(sim::Args),
    /// Compare lb's share with other ways in the simulator, and write docs/COMPARISON.md and its picture
    Compare,
    /// Measure line coverage, and fail where it must be complete and is not
    Coverage,
    /// Measure what lb costs
    Bench(bench::Args),
    /// Build lb as it is shipped: trained by the traffic that it is for
    Release,
    /// Fuzz one target, or each
    Fuzz(fuzz::Args),
    /// Run the tests so that they accept the golden files they produce
    Golden,
}

fn main() -> ExitCode {
    let result = match linker::requested() {
        Some(tools) => linker::link(&tools, std::env::args_os().skip(1)),
        None => run(Args::parse().verb),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: Verb) -> Result {
    match verb {
        Verb::Setup(args) => setup::run(args),
        Verb::BuildEbpf { manifest_path } => {
            let object = ebpf::build(&manifest_path)?;
            println!("{}", object.display());
            Ok(())
        }
        Verb::Demo(args) => demo::run(&args),
        Verb::Test(args) => {
            setup::ensure(args)?;
            ci::run()
        }
        Verb::Ci => ci::run(),
        Verb::Tidy => tidy::run(),
        Verb::E2e => e2e::run(),
        Verb::Sim(args) => sim::run(&args),
        Verb::Compare => compare::run(),
        Verb::Coverage => coverage::run(),
        Verb::Bench(args) => bench::run(&args),
        Verb::Release => release::run(),
        Verb::Fuzz(args) => fuzz::run(&args),
        Verb::Golden => golden::run(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_verb_has_a_sound_command_line() {
        Args::command().debug_assert();
    }

    #[test]
    fn what_follows_two_dashes_is_the_demos_own() {
        let args = Args::try_parse_from(["xtask", "demo", "--install", "--", "--for", "9s"]).unwrap();
        let Verb::Demo(demo) = args.verb else {
            panic!("another verb")
        };
        assert_eq!(
            format!("{demo:?}"),
            r#"Args { setup: Args { install: true }, args: ["--for", "9s"] }"#
        );
    }
}
