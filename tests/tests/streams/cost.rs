//! What a stream costs: no time of its own, and no memory that grows with it.

use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Signal, Step};
use lb_tests::setup::Setup;

/// A megabyte of events.
fn megabyte() -> Vec<u8> {
    let event = format!("data: {{\"text\":\"{}\"}}\n\n", "x".repeat(1024 - 20));
    event.repeat(1024).into_bytes()
}

/// An event stream of this length, its head only.
fn sized(length: usize) -> Script {
    let length = length.to_string();
    Script::head(
        200,
        &[("content-type", "text/event-stream"), ("content-length", &length)],
    )
}

// [STREAM-21]
#[tokio::test]
async fn an_event_is_passed_on_before_the_next_is_sent() {
    // How soon is what the benchmark `delay` measures; here nothing but the event itself can bring it out.
    let signals: Vec<_> = (0..101).map(|_| Signal::new()).collect();
    let script = signals
        .iter()
        .enumerate()
        .fold(Script::stream().token("begin"), |script, (number, signal)| {
            script.wait(signal).token(&format!("t{number}."))
        });
    let provider = Provider::start(script.finish()).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let mut exchange = lb.begin().await;
    exchange.head().await;
    exchange.until("begin").await;
    for (number, signal) in signals.iter().enumerate() {
        signal.fire();
        exchange.until(&format!("t{number}.")).await;
    }
}

// [STREAM-22]
#[tokio::test]
async fn a_long_stream_at_full_speed_keeps_memory_flat() {
    // A debug build spends its time in the observer; the size that matters is that of a release.
    let megabytes = if cfg!(debug_assertions) { 128 } else { 1024 };
    let piece = megabyte();
    let total = piece.len() * megabytes;
    let provider = Provider::start(sized(total).then(Step::Repeat(piece.clone().into(), megabytes))).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let mut exchange = lb.begin().await;
    exchange.head().await;
    exchange.skip(piece.len() * 8).await;
    let early = lb.resident_kib();
    let mut most = early;
    for _ in 8..megabytes {
        exchange.skip(piece.len()).await;
        most = most.max(lb.resident_kib());
    }
    assert!(most <= early + 1024, "{early} KiB at first, {most} KiB at most");
}

// [STREAM-22]
#[tokio::test]
async fn an_event_that_never_ends_is_not_kept() {
    let piece = vec![b'x'; 1 << 20];
    let script = sized(6 + (64 << 20))
        .bytes("data: ")
        .then(Step::Repeat(piece.clone().into(), 64));
    let provider = Provider::start(Script::streamed(&["warm"])).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    lb.chat(true).await;
    let idle = lb.resident_kib();
    provider.next(script);
    let mut exchange = lb.begin().await;
    exchange.head().await;
    exchange.skip(6).await;
    let mut most = idle;
    for _ in 0..64 {
        exchange.skip(piece.len()).await;
        most = most.max(lb.resident_kib());
    }
    assert!(most < idle + 8 * 1024, "{idle} KiB idle, {most} KiB at most");
}

// [STREAM-22]
#[tokio::test]
async fn a_client_that_does_not_read_stops_the_upstream() {
    let (piece, held) = (megabyte(), Signal::new());
    let total = piece.len() * 256;
    let script = sized(total).bytes(piece.clone()).then(Step::Wait(held.clone()));
    let provider = Provider::start(script.then(Step::Repeat(piece.clone().into(), 255))).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let mut exchange = lb.begin().await;
    exchange.head().await;
    exchange.skip(piece.len()).await;
    let before = lb.resident_kib();
    held.fire();
    // Nothing is read for as long as it takes lb to be asked twenty times; it would have read hundreds of megabytes.
    let mut most = before;
    for _ in 0..20 {
        lb.state().await;
        most = most.max(lb.resident_kib());
    }
    assert!(
        most < before + 4 * 1024,
        "{before} KiB before, {most} KiB at most"
    );
    exchange.skip(total - piece.len()).await;
}
