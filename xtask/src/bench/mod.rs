//! `cargo xtask bench`: what lb costs, counted or beside its peers.

use std::path::PathBuf;

use clap::Subcommand;

use crate::command::Result;

mod faults;
pub(crate) mod instructions;
mod kernel;
mod peers;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make each fault of a live provider, and write what clients saw of it into docs/FAULTS.md
    Faults,
    /// Count the instructions of a request and of a token, and compare them with the committed figures
    Instructions,
    /// Measure the CPU time of a request with the kernel plane against without
    Kernel,
    /// Run lb beside other proxies with the benchmark kit, and print its tables
    Peers(Peers),
}

/// What to run of the kit.
#[derive(Debug, clap::Args)]
pub(crate) struct Peers {
    /// The benchmark kit: mock upstream, load generator and the script that runs the peers
    #[arg(long, default_value = "../shared/bench")]
    kit: PathBuf,
    /// Scenarios, as the kit names them
    #[arg(long, default_value = "A,A2,B,C,D,D2,E,H")]
    scenarios: String,
    /// Peers, as the kit names them
    #[arg(long, default_value = "hyper-floor,nginx,haproxy")]
    peers: String,
    /// This lb, instead of the one that `cargo xtask release` builds
    #[arg(long)]
    lb: Option<PathBuf>,
    /// The lb that `cargo build --release` builds, without training
    #[arg(long, conflicts_with = "lb")]
    plain: bool,
    /// Also run lb with its access log, as a peer of its own
    #[arg(long)]
    access_log: bool,
    /// Interleaved rounds; the median counts
    #[arg(long, default_value_t = 5)]
    rounds: u32,
}

pub(crate) fn run(args: &Args) -> Result {
    match &args.what {
        What::Faults => faults::run(),
        What::Instructions => instructions::run(),
        What::Kernel => kernel::run(),
        What::Peers(peers) => peers::run(peers),
    }
}
