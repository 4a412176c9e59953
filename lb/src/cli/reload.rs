//! `lb reload`.

use std::process::ExitCode;

use clap::Args;

use super::{ConfigFile, fail};
use crate::run::{self, Source};

/// What the command line chose.
#[derive(Debug, Args)]
pub(super) struct Options {
    #[command(flatten)]
    config: ConfigFile,
}

/// Has the running lb read its configuration again, and says what came of it.
pub(super) fn reload(options: &Options) -> ExitCode {
    match run::request_reload(&Source::new(&options.config.path)) {
        Ok(told) if told.code == 0 => {
            anstream::println!("{}", told.message);
            ExitCode::SUCCESS
        }
        Ok(told) => fail(told.code, told.message),
        Err(why) => fail(69, format_args!("{why}; is it running, and as this user?")),
    }
}
