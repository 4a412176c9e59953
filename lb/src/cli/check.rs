//! `lb check`: says whether a configuration can be used, and what is in force with it.

use std::io::{self, Write};

use clap::{Args, ValueEnum};

use super::{ConfigFile, colour};
use crate::config::{self, Checked, Failure, Report};

/// Validates a configuration.
#[derive(Args, Debug)]
pub(super) struct Check {
    #[command(flatten)]
    config: ConfigFile,
    /// Do not look at this machine: files, addresses, names
    #[arg(long)]
    no_environment: bool,
    /// How problems are printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Print every setting in force, and where it comes from
    #[arg(long)]
    explain: bool,
}

/// How problems are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// With the lines they are about
    Text,
    /// As one JSON object
    Json,
}

/// Runs `lb check` and gives the process's exit code: 0, 66 without a file, 78 with one that cannot be used.
///
/// Problems go to standard error as text and to standard output as JSON; settings go to standard output.
pub(super) fn check(args: &Check) -> u8 {
    run(args, colour(), &mut anstream::stdout(), &mut anstream::stderr()).unwrap_or(BROKEN_PIPE)
}

fn run(args: &Check, colour: bool, out: &mut impl Write, err: &mut impl Write) -> io::Result<u8> {
    let environment = |name: &str| std::env::var(name).ok();
    let checked = match config::load(&args.config.path, &environment) {
        Ok(checked) => checked,
        Err(failure) => {
            match &failure {
                Failure::Invalid(report) => print(args, report, colour, out, err)?,
                Failure::Unreadable { .. } => writeln!(err, "error: {failure}")?,
            }
            return Ok(failure.exit_code());
        }
    };
    let report = whole_report(args, &checked);
    if args.explain && args.format == Format::Text {
        for setting in &checked.settings {
            writeln!(out, "{setting}")?;
        }
    }
    print(args, &report, colour, out, err)?;
    Ok(if report.errors() == 0 { 0 } else { INVALID })
}

/// Everything found in the file and, unless that is not wanted, on this machine.
fn whole_report(args: &Check, checked: &Checked) -> Report {
    if args.no_environment {
        return checked.warnings.clone();
    }
    checked.warnings.clone().and(checked.check_environment())
}

fn print(
    args: &Check,
    report: &Report,
    colour: bool,
    out: &mut impl Write,
    err: &mut impl Write,
) -> io::Result<()> {
    if args.format == Format::Json {
        return writeln!(out, "{}", report.to_json());
    }
    write!(err, "{}", report.render(colour))?;
    writeln!(err, "{}", report.summary())
}

const INVALID: u8 = 78;
/// Nobody reads what is printed: as with any tool in a pipe, an internal failure.
const BROKEN_PIPE: u8 = 70;

#[cfg(test)]
mod tests;
