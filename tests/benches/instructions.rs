//! What a request and a token cost, in instructions: `cargo xtask bench instructions`.
//!
//! Run with `LB_BIN` naming a wrapper that runs lb under callgrind. Each case is run twice, once with more of the same,
//! and the difference is divided by how much more it was: what starting and ending cost falls out. Nothing is timed, so
//! a loaded machine gives the same figures, and the committed ones ([`BASELINE`]) hold to within [`TOLERANCE`].

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use lb_tests::client::{Exchange, chat};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Signal};
use lb_tests::setup::Setup;
use rustix::process::Signal as Unix;
use serde_json::{Map, Value};

/// The committed figures, by [`machine`] and case.
const BASELINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions.json");

/// By how much a figure may differ from the committed one, in either direction.
const TOLERANCE: f64 = 0.02;

/// Both runs of a case: once this often, once that often.
const FEW: usize = 200;
const MANY: usize = 1200;

fn main() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let measured = runtime.expect("a runtime").block_on(measure());
    let mut all = committed();
    let machine = machine();
    let known = all.get(&machine).cloned().unwrap_or_default();
    if std::env::var_os("UPDATE").is_some_and(|update| update == "1") {
        all.insert(machine, measured.into_iter().collect());
        let text = serde_json::to_string_pretty(&all).expect("numbers by name");
        fs::write(BASELINE, text + "\n").expect("the repository is writable");
        return ExitCode::SUCCESS;
    }
    let mut within = true;
    for (case, count) in measured {
        let before = known[case].as_f64();
        let now = count.as_f64().unwrap_or_default();
        let change = before.map(|before| now / before - 1.0);
        report(&match change {
            None => format!("{case}: {now}, and there is no figure for {machine} to compare it with"),
            Some(change) => format!("{case}: {now} ({:+.1} % of the committed figure)", 100.0 * change),
        });
        within &= change.is_none_or(|change| change.abs() <= TOLERANCE);
    }
    if within {
        return ExitCode::SUCCESS;
    }
    report("more than 2 % off; where that is meant: UPDATE=1 cargo xtask bench instructions, and commit");
    ExitCode::FAILURE
}

/// What the figures depend on besides lb: the compiler, and which variants of copying and searching the processor has.
fn machine() -> String {
    let rustc = std::process::Command::new("rustc").arg("-V").output();
    let rustc = rustc.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = rustc.unwrap_or_default();
    let version = version.split(' ').nth(1).unwrap_or("unknown").to_owned();
    #[cfg(target_arch = "x86_64")]
    let wide = if std::arch::is_x86_feature_detected!("avx2") {
        " with avx2"
    } else {
        ""
    };
    #[cfg(not(target_arch = "x86_64"))]
    let wide = "";
    format!("{}{wide}, rustc {version}", std::env::consts::ARCH)
}

fn committed() -> Map<String, Value> {
    let text = fs::read_to_string(Path::new(BASELINE)).unwrap_or_else(|_| "{}".to_owned());
    serde_json::from_str(&text).expect("the committed figures are JSON")
}

async fn measure() -> Vec<(&'static str, Value)> {
    let request = per_unit(async |times| requests(times).await).await;
    let token = per_unit(async |times| tokens(times).await).await;
    vec![("request", request.into()), ("token", token.into())]
}

/// Instructions for one more of what `run` does so many times.
async fn per_unit(run: impl AsyncFn(usize) -> u64) -> u64 {
    let few = run(FEW).await;
    let many = run(MANY).await;
    (many - few) / (MANY - FEW) as u64
}

/// Small JSON answers, one after another on one connection.
async fn requests(times: usize) -> u64 {
    let provider = Provider::start(Script::completion("Hello.")).await;
    let alternate = Provider::start(Script::completion("Hello.")).await;
    let mut lb = Lb::start(&Setup::pair(&provider, &alternate)).await;
    let request = chat("chat", false);
    let mut exchange = Exchange::begin(lb.data(), &request).await;
    exchange.answer().await;
    for _ in 1..times {
        exchange.again(&request).await;
        exchange.answer().await;
    }
    drop(exchange);
    collected(&mut lb).await
}

/// The tokens of one stream, each sent when the one before has arrived.
async fn tokens(times: usize) -> u64 {
    let signals: Vec<_> = (0..times).map(|_| Signal::new()).collect();
    let begin = Script::stream().token("begin");
    let numbered = signals.iter().enumerate();
    let script = numbered.fold(begin, |script, (number, signal)| {
        script.wait(signal).token(&format!("t{number:06}."))
    });
    let provider = Provider::start(script.finish()).await;
    let mut lb = Lb::start(&Setup::single(&provider)).await;
    let mut exchange = lb.begin().await;
    exchange.head().await;
    exchange.until("begin").await;
    for (number, signal) in signals.iter().enumerate() {
        signal.fire();
        exchange.until(&format!("t{number:06}.")).await;
    }
    drop(exchange);
    collected(&mut lb).await
}

/// Ends lb, and reads what callgrind says of it.
async fn collected(lb: &mut Lb) -> u64 {
    lb.signal(Unix::TERM);
    let line = lb.logged(&["Collected :"]).await;
    let count = line.rsplit(' ').next().and_then(|count| count.parse().ok());
    count.expect("callgrind ends with a count")
}

#[expect(clippy::print_stdout, reason = "a benchmark's result is what it prints")]
fn report(line: &str) {
    println!("{line}");
}
