//! Real clients through the real daemon: the openai SDK for Python, and curl.
//!
//! The SDK's Python comes from `LB_OPENAI_PYTHON`. Without it these tests say so and are skipped; with
//! `LB_REQUIRE_CLIENTS=1` a skip is a failure.

#![cfg(test)]

use std::path::Path;
use std::process::Stdio;

use lb_tests::client::chat_body;
use lb_tests::daemon::{Lb, openai_python, skip};
use lb_tests::provider::{Provider, Refusing, Script, Signal};
use lb_tests::setup::Setup;
use serde_json::{Value, json};
use tokio::process::Command;

/// What an application gets that asks lb through the SDK.
async fn sdk(python: &str, lb: &Lb, how: &str) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/chat.py");
    let base = format!("http://{}/v1", lb.data());
    let mut command = Command::new(python);
    command
        .arg(script)
        .args([&base, how])
        .stdin(Stdio::null())
        .env("NO_PROXY", "*")
        .kill_on_drop(true);
    let output = command.output().await.expect("the interpreter starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

/// Every way in which a preferred provider fails before its first token, streaming.
fn failures() -> [Script; 6] {
    [
        Script::silent().stall(),
        Script::stream().stall(),
        Script::error(503),
        Script::stream()
            .bytes("event: error\ndata: {\"error\":{\"type\":\"overloaded_error\"}}\n\n")
            .end(),
        Script::stream().close(),
        Script::silent().reset(),
    ]
}

#[tokio::test]
async fn the_sdk_gets_the_alternates_whole_stream_whatever_the_preferred_provider_does() {
    let Some(python) = openai_python() else { return };
    let preferred = Provider::start(Script::silent()).await;
    let alternate = Provider::start(Script::streamed(&["from ", "the ", "alternate"])).await;
    let setup = Setup::pair(&preferred, &alternate).fallback("first_token_timeout_ms: 300");
    let lb = Lb::start(&setup.fallback("aimd: { latency_budget_ms: 300 }")).await;
    for (number, failure) in failures().into_iter().enumerate() {
        preferred.next(failure.clone());
        let seen = sdk(&python, &lb, "stream").await;
        assert_eq!(
            (&seen["text"], &seen["error"]),
            (&json!("from the alternate"), &Value::Null),
            "{failure:?}"
        );
        assert_eq!(
            alternate.requests().len(),
            number + 1,
            "the SDK had nothing to retry: {failure:?}"
        );
    }
    lb.idle().await;
}

#[tokio::test]
async fn the_sdk_gets_the_alternates_whole_answer_when_it_does_not_stream() {
    let Some(python) = openai_python() else { return };
    let preferred = Provider::start(Script::silent()).await;
    let alternate = Provider::start(Script::completion("from the alternate")).await;
    let lb = Lb::start(&Setup::pair(&preferred, &alternate).provider("timeouts: { read_ms: 300 }")).await;
    for failure in [
        Script::silent().stall(),
        Script::error(503),
        Script::silent().close(),
    ] {
        preferred.next(failure.clone());
        let seen = sdk(&python, &lb, "whole").await;
        assert_eq!(
            (&seen["text"], &seen["error"]),
            (&json!("from the alternate"), &Value::Null),
            "{failure:?}"
        );
        assert!(seen["request_id"].is_string(), "the SDK shows the request's id");
    }
}

#[tokio::test]
async fn the_sdk_streams_through_the_preferred_provider_when_all_is_well() {
    let Some(python) = openai_python() else { return };
    let preferred = Provider::start(Script::streamed(&["straight ", "through"])).await;
    let alternate = Provider::start(Script::error(500)).await;
    let lb = Lb::start(&Setup::pair(&preferred, &alternate)).await;
    assert_eq!(sdk(&python, &lb, "stream").await["text"], "straight through");
    preferred.next(Script::completion("in one piece"));
    assert_eq!(sdk(&python, &lb, "whole").await["text"], "in one piece");
    assert_eq!(sdk(&python, &lb, "models").await["text"], json!(["chat"]));
    assert_eq!(alternate.requests().len(), 0);
}

// [STREAM-12]
#[tokio::test]
async fn a_cut_after_tokens_raises_in_the_sdk() {
    let Some(python) = openai_python() else { return };
    let cut = Script::stream().token("half ").token("an ").pause(100);
    let provider = Provider::start(cut.clone().reset()).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    provider.next(cut.close());
    for _ in 0..2 {
        let seen = sdk(&python, &lb, "stream").await;
        assert_eq!(seen["text"], "half an ");
        assert!(
            seen["error"].is_array(),
            "a cut answer must not look whole: {seen}"
        );
    }
}

#[tokio::test]
async fn errors_of_our_own_are_the_sdks_own_kinds_and_end_its_retries() {
    let Some(python) = openai_python() else { return };
    let (first, second) = (Refusing::new(), Refusing::new());
    let lb = Lb::start(
        &Setup::new()
            .at("gpu", &[&first.url()])
            .at("alt", &[&second.url()]),
    )
    .await;
    let seen = sdk(&python, &lb, "whole").await;
    assert_eq!(
        (&seen["status"], &seen["error"][0]),
        (&json!(502), &json!("InternalServerError"))
    );
    let requests = lb.sum("lb_requests_total", &["model=\"chat\""]).await;
    assert_eq!(requests, 1, "it was told not to multiply the chain");
}

#[tokio::test]
async fn curl_sees_tokens_as_they_come() {
    let late = Signal::new();
    let provider = Provider::start(
        Script::stream()
            .token("first")
            .wait(&late)
            .token("second")
            .finish(),
    )
    .await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let url = format!("http://{}/v1/chat/completions", lb.data());
    let mut command = Command::new("curl");
    command.args([
        "-sN",
        "--fail",
        "--max-time",
        "10",
        "-H",
        "content-type: application/json",
        "-d",
    ]);
    command
        .arg(chat_body("chat", true))
        .arg(url)
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let Ok(mut curl) = command.spawn() else {
        skip("curl is not installed");
        return;
    };
    let mut out = tokio::io::BufReader::new(curl.stdout.take().unwrap());
    let mut line = String::new();
    tokio::io::AsyncBufReadExt::read_line(&mut out, &mut line)
        .await
        .unwrap();
    assert!(line.contains("first"), "{line}");
    late.fire();
    let mut rest = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut out, &mut rest)
        .await
        .unwrap();
    assert!(rest.contains("second") && rest.ends_with("data: [DONE]\n\n"));
    assert!(curl.wait().await.unwrap().success());
}
