//! What thousands of silent clients cost the others: `cargo bench -p lb-tests --bench crowd`.
//!
//! Two lbs of one worker each, one with a crowd of clients that have begun something and do nothing more, one without.
//! Requests go to both in turn; printed are the ratio of their medians, round by round, and what a silent client
//! takes in memory. The crowd stands still within its deadlines, which are set wide here: that each kind is closed at its
//! own is a test (`listeners::deadlines`).
//!
//! To be run on one CPU (`taskset -c 1`): on two, whether the kernel puts lb and its client beside or behind each other
//! makes more of a difference than any crowd.

use std::time::{Duration, Instant};

use lb_tests::client::{Exchange, chat};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

/// What each kind of client has sent when it falls silent.
const KINDS: [(&str, &[u8]); 5] = [
    ("nothing", b""),
    ("a part of HTTP/2's preface", b"PRI * HTTP/2.0\r\n"),
    (
        "a part of a head",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: lb\r\n",
    ),
    (
        "a part of a body",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: lb\r\ncontent-length: 99\r\n\r\n{\"model\":",
    ),
    ("a whole request", b"GET /v1/models HTTP/1.1\r\nhost: lb\r\n\r\n"),
];

const OF_EACH: usize = 1000;
const ROUNDS: usize = 11;
const REQUESTS: usize = 400;

fn main() {
    raise_open_files();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

async fn measure() {
    let provider = Provider::start(Script::completion("Hello.")).await;
    let setup = Setup::single(&provider)
        .listener("first_byte_timeout_ms: 600000, header_timeout_ms: 600000, idle_timeout_ms: 600000");
    let (calm, crowded) = (Lb::start(&setup).await, Lb::start(&setup).await);
    round(&crowded).await;
    let before = crowded.resident_kib();
    let mut crowd = Vec::with_capacity(KINDS.len() * OF_EACH);
    for (_, said) in KINDS {
        for _ in 0..OF_EACH {
            let mut client = TcpStream::connect(crowded.data()).await.expect("lb accepts");
            client.write_all(said).await.expect("lb reads");
            crowd.push(client);
        }
    }
    // One more request is served only after all that came before it was looked at.
    round(&crowded).await;
    let taken = crowded.resident_kib() - before;
    let each = 1024 * taken / crowd.len() as u64;
    report(&format!("{} silent clients: {each} bytes each", crowd.len()));
    let mut ratios = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let (alone, beside) = (round(&calm).await, round(&crowded).await);
        ratios.push(beside.as_secs_f64() / alone.as_secs_f64());
        report(&format!(
            "median of a request: {alone:?} alone, {beside:?} beside the crowd"
        ));
    }
    ratios.sort_by(f64::total_cmp);
    report(&format!(
        "ratio: median {:.3}, from {:.3} to {:.3}",
        ratios[ROUNDS / 2],
        ratios[0],
        ratios[ROUNDS - 1]
    ));
    drop(crowd);
}

/// The median time of a request on one connection.
async fn round(lb: &Lb) -> Duration {
    let request = chat("chat", false);
    let mut exchange = Exchange::begin(lb.data(), &request).await;
    exchange.answer().await;
    let mut times = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        let begun = Instant::now();
        exchange.again(&request).await;
        exchange.answer().await;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    times[REQUESTS / 2]
}

fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).expect("a soft limit may be raised to the hard one");
}

#[expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]
fn report(line: &str) {
    println!("{line}");
}
