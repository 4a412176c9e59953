//! What is held against an endpoint, and what is not.

use lb_tests::client::{chat_body, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// An engine that works and is too busy to say so.
async fn busy() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream));
        }
    });
    address
}

async fn answer(mut stream: TcpStream) {
    let mut asked = Vec::new();
    while !asked.starts_with(b"GET /health") && !asked.ends_with(b"}") {
        if !matches!(stream.read_buf(&mut asked).await, Ok(1..)) {
            return;
        }
    }
    if asked.starts_with(b"GET ") {
        // Until lb gives the probe up.
        while matches!(stream.read_buf(&mut asked).await, Ok(1..)) {}
        return;
    }
    let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    drop(stream.write_all(answer.as_bytes()).await);
}

// field fault K10
#[tokio::test]
async fn a_probe_that_times_out_is_no_verdict_while_requests_are_answered() {
    let url = format!("http://{}/v1", busy().await);
    let probes = "health: { active: { interval_ms: 1000, timeout_ms: 100, unhealthy_after: 1 } }";
    let lb = Lb::start(&Setup::new().at("gpu", &[&url]).provider(probes)).await;
    lb.eventually("three probes to time out", async |lb| {
        assert_eq!(lb.chat(false).await.status(), 200);
        lb.sum("lb_probes_total", &["result=\"timeout\""]).await >= 3
    })
    .await;
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "healthy");
    assert_eq!(lb.sum("lb_ejections_total", &[]).await, 0);
}

// field fault K13
#[tokio::test]
async fn whatever_is_asked_for_an_endpoint_answers_for_it() {
    let routes = "routes: [{ match: { path_prefix: /raw/ }, to: { provider: gpu } }, { match: { path_prefix: /v1/ }, to: models }]";
    for path in [
        "/v1/embeddings",
        "/v1/completions",
        "/v1/rerank",
        "/v1/audio/speech",
        "/raw/thing",
    ] {
        let gpu = Provider::start(Script::error(500)).await;
        let setup = Setup::single(&gpu)
            .provider("health: { consecutive_failures: 3 }, retries: { max_attempts: 1 }")
            .section(routes);
        let lb = Lb::start(&setup).await;
        for asked in 1..=3 {
            assert_eq!(lb.endpoint("gpu", 0).await["state"], "healthy", "{path}, {asked}");
            let answer = lb.ask(post(path, "", chat_body("chat", false))).await;
            assert_eq!(answer.status(), 500, "{path}");
        }
        assert_eq!(lb.endpoint("gpu", 0).await["state"], "ejected", "{path}");
    }
}

// field fault K9
#[tokio::test]
async fn what_nobody_reports_is_no_verdict() {
    let silent = Provider::start(Script::silent().stall()).await;
    let alt = Provider::start(Script::completion("alt")).await;
    let setup = Setup::pair(&silent, &alt)
        .fallback("first_token_timeout_ms: 0")
        .fallback("aimd: { enabled: false }")
        .provider("timeouts: { read_ms: 300 }")
        .section("kernel: { mode: off }");
    let lb = Lb::start(&setup).await;
    let state = lb.state().await;
    assert_eq!(state["kernel"]["mode"], "off");
    // No kernel says that it is well, nor that it is not: the timer decides, and one failure ejects nobody.
    assert_eq!(lb.chat(false).await.status(), 200);
    let gpu = lb.endpoint("gpu", 0).await;
    assert_eq!((&gpu["state"], &gpu["kernel"]), (&"healthy".into(), &json!(null)));
}

// field fault X4
#[tokio::test]
async fn vectors_of_two_models_are_never_mixed() {
    let gpu = Provider::start(Script::error(503)).await;
    let alt = Provider::start(Script::completion("vectors of another model")).await;
    let lb = Lb::start(&Setup::pair(&gpu, &alt)).await;
    let answer = lb
        .ask(post(
            "/v1/embeddings",
            "",
            json!({"model": "chat", "input": "a"}).to_string(),
        ))
        .await;
    assert_eq!(
        (answer.status(), answer.code().as_str()),
        (400, "wrong_model_kind")
    );
    assert_eq!((gpu.requests().len(), alt.requests().len()), (0, 0));
}

// [OUTCOME-1] a row of the outcome table: cut by a drain
#[tokio::test]
async fn an_attempt_that_a_drain_cuts_is_held_against_nobody() {
    let gpu = Provider::start(Script::silent().stall()).await;
    let setup = Setup::single(&gpu)
        .provider("health: { consecutive_failures: 1 }, circuit_breaker: { consecutive_failures: 1 }")
        .model("cooldown_ms: 30000")
        .server("drain_timeout_ms: 300");
    let mut lb = Lb::start(&setup).await;
    let mut waiting = lb.begin().await;
    gpu.request(0).await;
    lb.signal(Signal::TERM);
    assert!(waiting.try_head().await.is_none(), "it is cut without an answer");
    gpu.left(0).await;
    assert!(lb.exit().await.success());
    assert_eq!(gpu.requests().len(), 1, "nor is it tried again");
    for event in ["ejected", "breaker changed", "cooling down", "failing over"] {
        assert_eq!(lb.count(&[event]), 0, "{event} in {}", lb.log());
    }
}
