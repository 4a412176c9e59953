//! How much later an event reaches a client through lb than it is sent: `cargo bench -p lb-tests --bench delay`.
//!
//! One event each 20 ms on one stream, as a slow model sends its tokens: what is measured is the way through, not a
//! queue. Prints the median and the 99th percentile of the time from the provider's write to the client's read.

use std::time::{Duration, Instant};

use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Signal};
use lb_tests::setup::Setup;

const EVENTS: usize = 250;
const GAP: Duration = Duration::from_millis(20);

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(measure());
}

async fn measure() {
    let signals: Vec<_> = (0..EVENTS).map(|_| Signal::new()).collect();
    let begin = Script::stream().token("begin");
    let numbered = signals.iter().enumerate();
    let script = numbered.fold(begin, |script, (number, signal)| {
        script.wait(signal).token(&format!("t{number}."))
    });
    let provider = Provider::start(script.finish()).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let mut exchange = lb.begin().await;
    exchange.head().await;
    exchange.until("begin").await;
    let mut delays = Vec::with_capacity(EVENTS);
    for (number, signal) in signals.iter().enumerate() {
        tokio::time::sleep(GAP).await;
        let begun = Instant::now();
        signal.fire();
        exchange.until(&format!("t{number}.")).await;
        delays.push(begun.elapsed());
    }
    delays.sort_unstable();
    let at = |part: usize| delays[(EVENTS * part / 100).min(EVENTS - 1)];
    report(&format!(
        "delay of an event: median {:?}, p99 {:?} over {EVENTS}",
        at(50),
        at(99)
    ));
}

#[expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]
fn report(line: &str) {
    println!("{line}");
}
