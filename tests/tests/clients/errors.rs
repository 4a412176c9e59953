//! What goes wrong is raised as the package's own kind of error, with status, code and headers.

use lb_tests::daemon::Folder;
use lb_tests::provider::{Provider, Refusing, Script};
use lb_tests::setup::Setup;
use serde_json::{Value, json};

use crate::door::Door;

/// Kind, status and code of what was raised.
fn raised(seen: &Value) -> (&Value, &Value, &Value) {
    (&seen["error"][0], &seen["status"], &seen["code"])
}

async fn refusals(door: Door) {
    let provider = Provider::start(Script::completion("let in")).await;
    let folder = Folder::new();
    // The SHA-256 of "client-key".
    let digest = "8eb943e7040b69a94bf39562088223755bff4c2e7c5fc257f1e08f870fe01d35";
    let digest = folder.write("client.sha256", digest);
    let auth = format!(
        "auth: {{ required: true, keys: [{{ name: team, sha256_file: {} }}] }}",
        digest.display()
    );
    let Some(behind) = door.open(Setup::single(&provider).section(&auth)).await else {
        return;
    };
    let full = json!({"error": {"message": "full", "type": "rate_limit", "code": "full"}});
    for _ in 0..2 {
        provider.next(Script::json(429, &[("retry-after", "1")], &full));
    }
    let orders = vec![
        json!({"what": "chat", "key": "another"}),
        json!({"what": "chat-stream", "model": "chad"}),
        json!({"what": "chat", "retries": 0}),
        json!({"what": "chat-stream", "retries": 0}),
        json!({"what": "chat"}),
    ];
    let expected = [
        (json!("AuthenticationError"), json!(401), json!("invalid_api_key")),
        (json!("NotFoundError"), json!(404), json!("model_not_found")),
        (json!("RateLimitError"), json!(429), json!("full")),
        (json!("RateLimitError"), json!(429), json!("full")),
    ];
    let all = behind.ask_with(orders).await;
    for (seen, (kind, status, code)) in all.iter().zip(&expected) {
        assert_eq!(raised(seen), (kind, status, code), "{seen}");
    }
    assert_eq!(
        (&all[2]["retry_after"], &all[3]["retry_after"]),
        (&json!("1"), &json!("1"))
    );
    assert_eq!(all[4]["value"]["text"], "let in", "{}", all[4]);
    assert_eq!(provider.requests().len(), 3, "what lb refused went nowhere");
}

async fn broken(door: Door) {
    let cut = || Script::stream().token("half ").token("an ").pause(100);
    let provider = Provider::start(Script::error(500)).await;
    let Some(behind) = door.open(Setup::single(&provider)).await else {
        return;
    };
    for script in [cut().reset(), cut().close()] {
        provider.next(script);
    }
    for seen in behind.ask(&["chat-stream"; 2]).await {
        assert_eq!(seen["value"]["text"], "half an ");
        assert!(
            seen["error"].is_array(),
            "a cut answer must not look whole: {seen}"
        );
    }
    behind.lb.idle().await;
}

async fn the_end_of_a_chain(door: Door) {
    let (first, second) = (Refusing::new(), Refusing::new());
    let setup = Setup::new()
        .at("gpu", &[&first.url()])
        .at("alt", &[&second.url()]);
    let Some(behind) = door.open(setup).await else {
        return;
    };
    let seen = behind.ask(&["chat"]).await.remove(0);
    assert_eq!(
        (&seen["error"][0], &seen["status"]),
        (&json!("InternalServerError"), &json!(502)),
        "{seen}"
    );
    let requests = behind.lb.sum("lb_requests_total", &["model=\"chat\""]).await;
    assert_eq!(requests, 1, "it was told not to multiply the chain");
}

// [STREAM-23] [STREAM-27]
#[tokio::test]
async fn refusals_are_raised_by_pythons_package() {
    refusals(Door::Python).await;
}

// [STREAM-23] [STREAM-27]
#[tokio::test]
async fn refusals_are_raised_by_pythons_package_over_http2() {
    refusals(Door::Python2).await;
}

// [STREAM-23] [STREAM-27]
#[tokio::test]
async fn refusals_are_raised_by_nodes_package() {
    refusals(Door::Node).await;
}

// [STREAM-12]
#[tokio::test]
async fn a_cut_after_tokens_is_raised_by_pythons_package() {
    broken(Door::Python).await;
}

// [STREAM-12]
#[tokio::test]
async fn a_cut_after_tokens_is_raised_by_pythons_package_over_http2() {
    broken(Door::Python2).await;
}

// [STREAM-12]
#[tokio::test]
async fn a_cut_after_tokens_is_raised_by_nodes_package() {
    broken(Door::Node).await;
}

// [NOTICE-4]
#[tokio::test]
async fn the_end_of_a_chain_is_raised_by_each_package_and_ends_its_retries() {
    for door in [Door::Python, Door::Python2, Door::Node] {
        the_end_of_a_chain(door).await;
    }
}
