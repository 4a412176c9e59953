//! `lb run`.

use std::process::ExitCode;

use clap::Args;

use super::{ConfigFile, colour, fail, log, refused};
use crate::run::{self, Daemon, Inherited, Predecessor, Source, StartError, until_drained};

/// What the command line chose.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    config: ConfigFile,
    /// Take the listening sockets over from the lb that runs from the same file; it drains and ends
    #[arg(long)]
    takeover: bool,
}

/// Serves until a signal ends it, or a successor takes over.
pub(super) fn run(options: &Options) -> ExitCode {
    let source = Source::new(&options.config.path);
    let checked = match source.load() {
        Ok(checked) => checked,
        Err(failure) => return refused(&failure),
    };
    if checked.warnings.warnings() > 0 {
        anstream::eprint!("{}", checked.warnings.render(colour()));
    }
    let _logging = log::install(&checked.config.log);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(70, error),
    };
    let mut inherited = Inherited::from_systemd();
    let started = runtime.block_on(async {
        let before = if options.takeover {
            Some(run::take_over(&source, &mut inherited).await?)
        } else {
            None
        };
        let daemon = Daemon::start(&checked.config, inherited)?;
        Ok((daemon, before))
    });
    let (daemon, before): (Daemon, Option<Predecessor>) = match started {
        Ok(started) => started,
        Err(error @ StartError::Unreachable(_)) => return fail(error.exit_code(), error),
        Err(error) => {
            // Shows the places in the file that this machine does not bear out.
            anstream::eprint!("{}", checked.check_environment().render(colour()));
            return fail(error.exit_code(), error);
        }
    };
    let served = runtime.block_on(async {
        if let Some(before) = before {
            before.leave().await;
        }
        until_drained(daemon, &source).await
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(70, format_args!("signals cannot be handled: {error}")),
    }
}
