//! Each call of the API: what the provider said is what the application gets.

use lb_tests::provider::{Provider, Request, Script};
use lb_tests::setup::Setup;
use serde_json::{Value, json};

use crate::door::{Behind, Door};

/// An answer of the Responses API.
fn response(status: &str, text: &str) -> Value {
    let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
    let message =
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": status, "content": content});
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "model": "scripted", "status": status,
        "output": [message], "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
        "usage": {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
    })
}

const TYPES: [&str; 5] = [
    "response.created",
    "response.in_progress",
    "response.output_text.delta",
    "response.output_text.delta",
    "response.completed",
];

/// The same answer, streamed: the first two events are a preamble.
fn response_stream() -> Script {
    let events = [
        json!({"type": TYPES[0], "response": response("in_progress", "")}),
        json!({"type": TYPES[1], "response": response("in_progress", "")}),
        json!({"type": TYPES[2], "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": "straight "}),
        json!({"type": TYPES[3], "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": "through"}),
        json!({"type": TYPES[4], "response": response("completed", "straight through")}),
    ];
    let named = |script: Script, event: &Value| {
        let name = event["type"].as_str().unwrap();
        script.bytes(format!("event: {name}\ndata: {event}\n\n"))
    };
    events.iter().fold(Script::stream(), named).end()
}

/// Two vectors in the form that the packages ask for by themselves: [1, -2] and [0.5, 0].
fn vectors() -> Script {
    let one = |index, vector| json!({"object": "embedding", "index": index, "embedding": vector});
    let data = [one(0, "AACAPwAAAMA="), one(1, "AAAAPwAAAAA=")];
    let usage = json!({"prompt_tokens": 2, "total_tokens": 2});
    let body = json!({"object": "list", "model": "scripted", "data": data, "usage": usage});
    Script::json(200, &[], &body)
}

/// What the package sent is what the provider got, but for the model's name and whose key it is.
fn passed_on(request: &Request, path: &str) -> Value {
    assert_eq!(request.line(), ("POST", path));
    assert_eq!(request.all("authorization"), ["Bearer key-of-gpu"]);
    assert!(request.header("user-agent").unwrap().contains("OpenAI"));
    let body = request.json();
    assert_eq!(body["model"], "gpu-model");
    body
}

/// What is asked for, and what the provider says to it.
fn calls() -> [(&'static str, Script); 5] {
    [
        ("chat", Script::completion("in one piece")),
        ("chat-stream", Script::streamed(&["straight ", "through"])),
        (
            "responses",
            Script::json(200, &[], &response("completed", "in one piece")),
        ),
        ("responses-stream", response_stream()),
        ("embeddings", vectors()),
    ]
}

async fn every_call(behind: &Behind, provider: &Provider) {
    let mut asks = vec!["models"];
    for (what, script) in calls() {
        asks.push(what);
        provider.next(script);
    }
    let mut seen = behind.values(&asks).await;
    let id = seen[1]["request_id"].take();
    let expected = [
        json!({"ids": ["chat"], "id": "chat"}),
        json!({"text": "in one piece", "finish": "stop", "tokens": 2, "request_id": null}),
        json!({"text": "straight through", "finish": "stop"}),
        json!({"id": "resp_1", "text": "in one piece", "tokens": 7, "status": "completed"}),
        json!({"text": "straight through", "types": TYPES, "whole": "straight through"}),
    ];
    assert_eq!(seen[..5], expected);
    assert_eq!(floats(&seen[5]), vec![[1.0, -2.0], [0.5, 0.0]], "{}", seen[5]);
    assert_eq!(seen[5]["tokens"], 2);

    let sent = provider.requests();
    assert_eq!(sent.len(), 5, "the list of models is lb's own");
    let chat = passed_on(&sent[0], "/v1/chat/completions");
    assert_eq!(chat["messages"], json!([{"role": "user", "content": "hello"}]));
    assert_eq!(
        sent[0].header("x-request-id"),
        id.as_str(),
        "the SDK shows the request's id"
    );
    assert_eq!(passed_on(&sent[1], "/v1/chat/completions")["stream"], true);
    assert_eq!(passed_on(&sent[2], "/v1/responses")["input"], "hello");
    assert_eq!(passed_on(&sent[3], "/v1/responses")["stream"], true);
    let embeddings = passed_on(&sent[4], "/v1/embeddings");
    assert_eq!(embeddings["input"], json!(["a", "b"]));
    assert_eq!(embeddings["encoding_format"], "base64");
    behind.lb.idle().await;
}

/// The vectors as numbers: JavaScript writes 1 where Python writes 1.0.
fn floats(value: &Value) -> Vec<Vec<f64>> {
    let vectors = value["vectors"].as_array().unwrap().iter();
    let numbers = |vector: &Value| {
        let numbers = vector.as_array().unwrap().iter();
        numbers.map(|one| one.as_f64().unwrap()).collect()
    };
    vectors.map(numbers).collect()
}

async fn through(door: Door) {
    let provider = Provider::start(Script::error(500)).await;
    let Some(behind) = door.open(Setup::single(&provider)).await else {
        return;
    };
    every_call(&behind, &provider).await;
}

// [STREAM-15] [STREAM-16] [STREAM-24] [STREAM-25]
#[tokio::test]
async fn every_call_of_pythons_package_gets_what_the_provider_said() {
    through(Door::Python).await;
}

// [STREAM-15] [STREAM-16] [STREAM-24] [STREAM-25]
#[tokio::test]
async fn every_call_of_pythons_package_does_so_over_tls_and_http2() {
    through(Door::Python2).await;
}

// [STREAM-15] [STREAM-16] [STREAM-24] [STREAM-25]
#[tokio::test]
async fn every_call_of_nodes_package_gets_what_the_provider_said() {
    through(Door::Node).await;
}

#[tokio::test]
async fn ten_streams_of_the_asynchronous_client_share_its_connection_over_http2() {
    let provider = Provider::start(Script::streamed(&["one ", "of ", "ten"])).await;
    let Some(behind) = Door::Python2.open(Setup::single(&provider)).await else {
        return;
    };
    let value = behind.values(&["at-once"]).await.remove(0);
    assert_eq!(value["texts"], json!(vec!["one of ten"; 10]), "{value}");
    let streams: Vec<_> = (0..10).map(|number| 2 * number + 1).collect();
    assert_eq!(value["streams"], json!(streams), "all of one connection");
    behind.lb.idle().await;
}
