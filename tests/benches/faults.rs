//! What each fault of a live provider costs clients: `cargo xtask bench faults`, which makes docs/FAULTS.md of it.
//!
//! Needs root, `ip`, `nft` and the kernel programs. Prints the page; rows go to stderr as they come.

use std::fs;
use std::io::{self, Write as _};
use std::time::Duration;

use lb_tests::live::{DEADLINE, Fault, Plan, Row, Target, play, run};
use lb_tests::netns::Network;

const PLAN: Plan = Plan {
    streams: 200,
    tokens: 10,
    gap: Duration::from_millis(100),
    phase: 500,
    idle: Duration::from_secs(3),
    kernel: "required",
};

const INTRODUCTION: &str = "\
# Faults of live providers

What clients see when a provider fails under them, by fault. `cargo xtask bench faults` makes this page; a smaller run of it is a test of CI's step `e2e`.

Two providers, `gpu` and `alt`, have two endpoints each; every endpoint is a process in a network namespace behind a router. STREAMS streams are open at a time: half of their clients ask for a model that prefers `gpu`, half for one that prefers `alt`, and each model has the other provider as its alternate. A stream has TOKENS tokens, one every GAP, the first after 20 ms. Each row has a daemon and endpoints of its own: a fault is made at one endpoint or at both of a provider, stays for at least PHASE streams (where it leaves streams standing in silence, until all of these have ended), and is mended. Settings are lb's defaults but for these, so that a row takes seconds: first-token deadline DEADLINE, latency budget 900 ms, dwell 500 ms, silence in a stream IDLE, ejections and an open breaker 1 s.

*Streams* are those that were asked for under the fault or waited for their first token when it was made. *Errors* are clients that got no stream. *Cut* are streams that were visibly broken off: all of them streams of the endpoint that failed, which no other can continue. *Back after* is the time from the mending to the first token of a stream that the endpoint, or the later one of both, then carried to its end.
";

fn main() -> io::Result<()> {
    if play() {
        return Ok(());
    }
    let mut page = INTRODUCTION
        .replace("STREAMS", &PLAN.streams.to_string())
        .replace("TOKENS", &PLAN.tokens.to_string())
        .replace("GAP", &ms(PLAN.gap))
        .replace("PHASE", &PLAN.phase.to_string())
        .replace("DEADLINE", &ms(DEADLINE))
        .replace("IDLE", &ms(PLAN.idle))
        .into_bytes();
    for (title, kernel) in [("With the kernel plane", "required"), ("Without it", "off")] {
        write!(page, "\n## {title}\n\n{}", Row::HEAD)?;
        for fault in Fault::ALL {
            for target in Target::ALL {
                let row = measure(&Plan { kernel, ..PLAN }, fault, target);
                let line = row.line();
                writeln!(io::stderr(), "{line}")?;
                row.check();
                writeln!(page, "{line}")?;
            }
        }
    }
    let load = fs::read_to_string("/proc/loadavg")?;
    let cpus = std::thread::available_parallelism()?;
    writeln!(
        page,
        "\nMeasured on {cpus} CPUs, on which lb, the clients, the endpoints and whatever else there was ran together; the \
         load was {} at the end.",
        load.split(' ').next().unwrap_or_default()
    )?;
    io::stdout().write_all(&page)
}

fn ms(span: Duration) -> String {
    format!("{} ms", span.as_millis())
}

fn measure(plan: &Plan, fault: Fault, target: Target) -> Row {
    let network = Network::new().expect("namespaces can be made");
    network.at_proxy(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime
            .expect("a runtime")
            .block_on(run(&network, plan, fault, target))
    })
}
