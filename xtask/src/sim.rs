//! `cargo xtask sim`: the simulations, over more seeds than CI takes or over one that failed.

use crate::{
    command::{self, Result},
    suite,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many seeds to run, from --seed on
    #[arg(long, default_value_t = 256)]
    seeds: u64,
    /// The first seed
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn run(args: &Args) -> Result {
    let mut tests = suite::one("sim")?;
    tests.env("LB_SIM_SEEDS", args.seeds.to_string());
    if let Some(seed) = args.seed {
        tests.env("LB_SIM_SEED", seed.to_string());
    }
    command::run(&mut tests)
}
