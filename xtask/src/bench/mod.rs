//! `cargo xtask bench WHAT`: measurements of the binary that users get.

use crate::command::Result;

mod kernel;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// CPU time of a request with the kernel plane against without
    Kernel,
}

pub(crate) fn run(args: &Args) -> Result {
    match args.what {
        What::Kernel => kernel::run(),
    }
}
