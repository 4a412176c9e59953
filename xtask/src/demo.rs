//! `cargo xtask demo`: from a clone to the running demonstration in one command.

use crate::{
    command::{self, Result},
    ebpf, setup,
};

/// Long enough to see the share fall, climb back, and a provider die.
const DEFAULT: [&str; 2] = ["--for", "75s"];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    setup: setup::Args,
    /// Passed on to `lb demo`; without any: --for 75s
    #[arg(last = true)]
    args: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result {
    setup::ensure(args.setup)?;
    ebpf::build_if_possible();
    let mut lb = command::cargo();
    lb.args(["run", "--quiet", "--release", "--locked", "--", "demo"]);
    if args.args.is_empty() {
        lb.args(DEFAULT);
    } else {
        lb.args(&args.args);
    }
    command::run(&mut lb)
}
