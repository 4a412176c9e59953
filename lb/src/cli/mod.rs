//! From argv to an exit code.

mod check;
mod demo;
mod log;
mod reload;
mod run;
mod schema;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::config::Failure;

/// Load balancer for LLM traffic.
#[derive(Debug, Parser)]
#[command(name = "lb", version, about, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Verb {
    /// Say everything that is wrong with a configuration.
    Check(check::Check),
    /// Show the share at work on simulated providers, in one process.
    Demo(demo::Options),
    /// Have the running lb read its configuration again.
    Reload(reload::Options),
    /// Serve until TERM, INT or QUIT.
    Run(run::Options),
    /// Print the JSON Schema of the configuration.
    Schema,
}

/// The configuration to read.
#[derive(Debug, Args)]
struct ConfigFile {
    /// The configuration file.
    #[arg(
        short = 'c',
        long = "config",
        value_name = "FILE",
        env = "LB_CONFIG",
        default_value = "/etc/lb/lb.yaml"
    )]
    path: PathBuf,
}

/// Does what the command line says.
pub fn main() -> ExitCode {
    match Arguments::parse().verb {
        Verb::Check(options) => ExitCode::from(check::check(&options)),
        Verb::Demo(options) => demo::demo(&options),
        Verb::Reload(options) => reload::reload(&options),
        Verb::Run(options) => run::run(&options),
        Verb::Schema => schema::schema().map_or_else(|error| fail(70, error), |()| ExitCode::SUCCESS),
    }
}

/// Says on stderr why nothing goes on, and gives the code to exit with.
fn fail(code: u8, message: impl std::fmt::Display) -> ExitCode {
    anstream::eprintln!("lb: {message}");
    ExitCode::from(code)
}

/// Shows why a configuration cannot be used, and gives the code to exit with.
fn refused(failure: &Failure) -> ExitCode {
    match failure {
        Failure::Invalid(report) => {
            anstream::eprint!("{}", report.render(colour()));
            fail(failure.exit_code(), failure)
        }
        Failure::Unreadable { .. } => fail(failure.exit_code(), failure),
    }
}

/// Whether stderr is somewhere that shows colours, and nobody has asked for none.
fn colour() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}
