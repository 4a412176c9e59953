//! The client's name for the model in responses.

use lb_tests::client::{chat, chat_body, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use serde_json::json;

// field fault X3
// [NAME-1] [NAME-2] [NAME-3]
#[tokio::test]
async fn it_stands_in_documents_streams_and_errors_alike_where_it_is_asked_for() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider).model("rewrite_response_model: true")).await;
    let answer = lb.chat(false).await;
    assert_eq!(answer.json()["model"], "chat");
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "ok");
    assert_eq!(provider.request(0).await.json()["model"], "gpu-model");
    provider.next(Script::streamed(&["a", "b"]));
    let text = lb.ask(chat("chat", true)).await.text();
    assert_eq!(text.matches("\"model\":\"chat\"").count(), 3, "{text}");
    assert!(!text.contains("scripted") && text.ends_with("data: [DONE]\n\n"));
    provider.next(Script::json(
        400,
        &[],
        &json!({"error": {"message": "no"}, "model": "gpu-model"}),
    ));
    let refused = lb.chat(false).await;
    assert_eq!(
        (refused.status(), &refused.json()["model"]),
        (400, &json!("chat"))
    );
    provider.next(Script::json(
        200,
        &[("content-encoding", "gzip")],
        &json!({"model": "x"}),
    ));
    assert_eq!(
        lb.chat(false).await.json()["model"],
        "x",
        "what cannot be read stays"
    );
}

// field fault X3
// [NAME-3]
#[tokio::test]
async fn where_it_is_not_asked_for_bytes_are_untouched() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    assert_eq!(lb.chat(false).await.json()["model"], "scripted");
    provider.next(Script::streamed(&["a"]));
    let text = lb
        .ask(post("/v1/chat/completions", "", chat_body("chat", true)))
        .await
        .text();
    assert!(text.contains("\"model\":\"scripted\""));
}

// [NAME-2]
#[tokio::test]
async fn an_event_is_passed_on_at_once_and_a_broken_stream_stays_broken() {
    let provider = Provider::start(Script::stream().token("a").stall()).await;
    let lb = Lb::start(&Setup::single(&provider).model("rewrite_response_model: true")).await;
    let mut exchange = lb.begin().await;
    assert_eq!(exchange.head().await.status, 200);
    let seen = exchange.until("\n\n").await;
    assert!(String::from_utf8_lossy(&seen).contains("\"model\":\"chat\""));
    drop(exchange);
    lb.idle().await;
    provider.next(Script::stream().token("a").reset());
    let cut = lb.ask(chat("chat", true)).await;
    assert_eq!(cut.end, lb_tests::client::End::Cut);
}
