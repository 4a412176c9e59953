//! `lb demo`.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::log::Logging;
use super::{fail, log};
use crate::config::{self, Failure};
use crate::demo::{self, Started};
use crate::run::{Daemon, Inherited};

/// What the command line chose.
#[derive(Debug, Args)]
pub(super) struct Options {
    /// How long the story takes, as `75s` or `2m`.
    #[arg(long = "for", value_name = "TIME", default_value = "75s", value_parser = duration)]
    length: Duration,
}

/// Plays the story.
pub(super) fn demo(options: &Options) -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(70, error),
    };
    let mut running = None;
    let start = async |text: String| start(&text, &mut running);
    let options = demo::Options {
        length: options.length,
    };
    let played = runtime.block_on(demo::run(&options, &mut io::stdout(), start));
    if let Some((daemon, _logging)) = running {
        daemon.stop();
    }
    match played {
        Ok(_totals) => ExitCode::SUCCESS,
        Err(error) => fail(70, error),
    }
}

fn start(text: &str, running: &mut Option<(Daemon, Logging)>) -> io::Result<Started> {
    let config = config::parse(text, "demo.yaml", &|_| None)
        .map_err(|failure| io::Error::other(told(&failure)))?
        .config;
    let logging = log::install(&config.log);
    let daemon = Daemon::start(&config, Inherited::default()).map_err(io::Error::other)?;
    let (started, _) = running.insert((daemon, logging));
    let data = started
        .data()
        .first()
        .copied()
        .ok_or_else(|| io::Error::other("no listener"))?;
    Ok(Started {
        data,
        admin: started.admin(),
    })
}

/// A failure with its reasons: the configuration is lb's own, so nobody else can look them up.
fn told(failure: &Failure) -> String {
    match failure {
        Failure::Invalid(report) => format!("{failure}\n{}", report.render(false)),
        Failure::Unreadable { .. } => failure.to_string(),
    }
}

/// `75`, `75s`, `2m` or `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|unit: char| unit.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err("write it as 75s, 2m or 1h".to_owned()),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_invalid| "write it as 75s, 2m or 1h".to_owned())?;
    let seconds = number.checked_mul(factor).filter(|seconds| *seconds >= 1);
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "must be at least one second".to_owned())
}
