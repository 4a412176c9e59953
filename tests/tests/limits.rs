//! What a client may not do for ever: stay silent, dribble, not read, come in crowds.

#![cfg(test)]

use std::time::{Duration, Instant};

use lb_tests::client::{Exchange, chat, chat_body, get, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Step};
use lb_tests::setup::Setup;

/// A daemon over a provider that answers, with this setting of its listener.
async fn lb(member: &str) -> (Provider, Lb) {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider).listener(member)).await;
    (provider, lb)
}

/// Sends these bytes and nothing more, and expects the connection to be closed, but not before the timer.
async fn cut(lb: &Lb, bytes: &[u8]) -> Exchange {
    let begun = Instant::now();
    let mut exchange = Exchange::begin(lb.data(), bytes).await;
    while !exchange.closed().await {}
    let after = begun.elapsed();
    assert!(
        after >= Duration::from_millis(250),
        "after {after:?}: {:?}",
        String::from_utf8_lossy(bytes)
    );
    exchange
}

// [LIMIT-1]
#[tokio::test]
async fn a_silent_connection_and_a_dribbled_head_are_cut() {
    let (_provider, silent) = lb("first_byte_timeout_ms: 300").await;
    cut(&silent, b"").await;
    let (_provider, slow) = lb("header_timeout_ms: 300").await;
    cut(&slow, b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n").await;
    // One byte may still become either version of HTTP, so both timers may have to pass.
    let (_provider, undecided) = lb("first_byte_timeout_ms: 300, header_timeout_ms: 300").await;
    cut(&undecided, b"P").await;
}

// [LIMIT-1]
#[tokio::test]
async fn a_kept_connection_without_a_request_is_cut_and_one_that_waits_for_its_answer_is_not() {
    let (provider, lb) = lb("idle_timeout_ms: 300").await;
    cut(&lb, &chat("chat", false)).await;
    // field fault T7
    provider.next(Script::silent().pause(900).streams().token("slow").finish());
    assert!(lb.chat(true).await.text().contains("slow"));
    provider.next(Script::stream().token("a").pause(900).token("slow").finish());
    assert!(lb.chat(true).await.text().contains("slow"));
}

// [LIMIT-2]
#[tokio::test]
async fn a_client_that_stops_reading_is_cut_and_gives_its_slot_back() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider).listener("write_timeout_ms: 300")).await;
    let piece = vec![b'x'; 1 << 20];
    let total = (64 << 20).to_string();
    let head = Script::head(
        200,
        &[
            ("content-type", "application/octet-stream"),
            ("content-length", &total),
        ],
    );
    provider.next(head.then(Step::Repeat(piece.into(), 64)));
    let mut exchange = Exchange::begin(lb.data(), chat("chat", false)).await;
    exchange.head().await;
    provider.left(0).await;
    lb.idle().await;
}

// [LIMIT-3]
#[tokio::test]
async fn past_the_limit_connections_wait_until_one_closes() {
    let (provider, lb) = lb("max_connections: 2").await;
    provider.otherwise(Script::stream().token("a").stall());
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut exchange = lb.begin().await;
        exchange.head().await;
        open.push(exchange);
    }
    let mut waiting = lb.begin().await;
    lb.eventually("the wait to be counted", async |lb| {
        lb.sum("lb_accept_waits_total", &[]).await >= 1
    })
    .await;
    assert!(waiting.nothing_yet());
    assert_eq!(provider.requests().len(), 2);
    open.pop();
    assert_eq!(waiting.head().await.status, 200);
}

// [LIMIT-4]
#[tokio::test]
async fn a_body_over_the_limit_is_refused_before_it_is_read() {
    let (provider, lb) = lb("max_body_bytes: 1000").await;
    let announced = "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\n";
    assert_eq!(lb.ask(announced).await.status(), 413);
    let chunk = "x".repeat(2000);
    let chunked = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n7d0\r\n{chunk}\r\n0\r\n\r\n"
    );
    assert_eq!(lb.ask(chunked).await.status(), 413);
    assert_eq!(
        lb.ask(post("/v1/chat/completions", "", chat_body("chat", false)))
            .await
            .status(),
        200
    );
    assert_eq!(provider.requests().len(), 1);
}

// field fault K14
// [LIMIT-5]
#[tokio::test]
async fn probes_are_answered_while_the_workers_are_busy() {
    let (provider, lb) = lb("max_connections: 1000").await;
    provider.otherwise(Script::stream().token("a").stall());
    let mut open = Vec::new();
    for _ in 0..200 {
        open.push(lb.begin().await);
    }
    for exchange in &mut open {
        exchange.head().await;
    }
    let begun = Instant::now();
    assert_eq!(
        lb_tests::client::ask(lb.admin(), get("/readyz")).await.status(),
        200
    );
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    drop(open);
    lb.idle().await;
}
