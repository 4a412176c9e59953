//! `lb run`.

use std::process::ExitCode;

use clap::Args;

use super::{ConfigFile, colour, fail, log, refused};
use crate::config;
use crate::run::{Daemon, until_drained};

/// What the command line chose.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    config: ConfigFile,
}

/// Serves until a signal ends it.
pub(super) fn run(options: &Options) -> ExitCode {
    let environment = |name: &str| std::env::var(name).ok();
    let checked = match config::load(&options.config.path, &environment) {
        Ok(checked) => checked,
        Err(failure) => return refused(&failure),
    };
    let config = &checked.config;
    if checked.warnings.warnings() > 0 {
        anstream::eprint!("{}", checked.warnings.render(colour()));
    }
    log::install(&config.log);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(70, error),
    };
    let daemon = match Daemon::start(config) {
        Ok(daemon) => daemon,
        Err(error) => {
            // Shows the places in the file that this machine does not bear out.
            anstream::eprint!("{}", checked.check_environment().render(colour()));
            return fail(error.exit_code(), error);
        }
    };
    match runtime.block_on(until_drained(daemon)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(70, format_args!("signals cannot be handled: {error}")),
    }
}
