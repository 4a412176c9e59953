//! `cargo xtask demo`: from a clone to the running demonstration in one command.

use std::path::Path;

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
    match ebpf::build(Path::new(ebpf::MANIFEST)) {
        Ok(object) => println!("kernel plane: built {}", object.display()),
        Err(failure) => println!(
            "going on without the kernel plane: {}",
            first_line(&failure.to_string())
        ),
    }
    let mut lb = command::cargo();
    lb.args(["run", "--quiet", "--release", "--locked", "--", "demo"]);
    if args.args.is_empty() {
        lb.args(DEFAULT);
    } else {
        lb.args(&args.args);
    }
    command::run(&mut lb)
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
