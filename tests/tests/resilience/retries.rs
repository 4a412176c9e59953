//! Retries: the same provider or the next target, and who pays.

use lb_tests::client::{chat, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use serde_json::json;

use super::{provider, retries, said};

async fn alone(script: Script, more: &str) -> (Provider, Lb) {
    let gpu = Provider::start(script).await;
    let lb = Lb::start(&Setup::single(&gpu).provider(more)).await;
    (gpu, lb)
}

// [RETRY-1]
#[tokio::test]
async fn the_next_target_answers_before_the_same_endpoint_is_tried_again() {
    let (gpu, alt) = (
        Provider::start(Script::error(500)).await,
        Provider::start(Script::completion("alt")).await,
    );
    let lb = Lb::start(&Setup::pair(&gpu, &alt)).await;
    assert_eq!(said(&lb).await, "alt");
    assert_eq!((gpu.requests().len(), retries(&lb, "sent").await), (1, 0));
}

// [RETRY-1] [RETRY-7]
#[tokio::test]
async fn where_there_is_nobody_else_the_same_endpoint_is_tried_again() {
    let (gpu, lb) = alone(Script::completion("gpu"), "retries: { max_attempts: 3 }").await;
    gpu.next(Script::error(503));
    gpu.next(Script::error(500));
    assert_eq!(said(&lb).await, "gpu");
    assert_eq!((gpu.requests().len(), retries(&lb, "sent").await), (3, 2));
    lb.idle().await;
}

// [RETRY-8]
#[tokio::test]
async fn tries_are_bounded_and_the_last_response_is_passed_on_as_it_was_sent() {
    let (gpu, lb) = alone(Script::error(500), "retries: { max_attempts: 3 }").await;
    gpu.next(Script::error(502));
    gpu.next(Script::error(504));
    let answer = lb.chat(false).await;
    assert_eq!((answer.status(), gpu.requests().len()), (500, 3));
    assert_eq!(answer.json()["error"]["message"], "scripted 500");
}

// [RETRY-5] [CASCADE-14]
#[tokio::test]
async fn a_status_that_is_tried_again_but_not_listed_never_switches_although_its_endpoint_cools() {
    let (gpu, alt) = (
        Provider::start(Script::error(408)).await,
        Provider::start(Script::completion("alt")).await,
    );
    let lb = Lb::start(&Setup::pair(&gpu, &alt).model("cooldown_ms: 60000")).await;
    assert_eq!(lb.chat(false).await.status(), 408);
    assert_eq!((gpu.requests().len(), alt.requests().len()), (2, 0));
    assert_eq!(retries(&lb, "sent").await, 1);
}

// [RETRY-6] field fault R7
#[tokio::test]
async fn beyond_the_budget_nothing_is_tried_again() {
    let more =
        "retries: { budget_percent: 0, budget_min_per_window: 2 }, circuit_breaker: { enabled: false }";
    let (gpu, lb) = alone(Script::error(500), more).await;
    for _ in 0..5 {
        assert_eq!(lb.chat(false).await.status(), 500);
    }
    assert_eq!(gpu.requests().len(), 5 + 2);
    assert_eq!((retries(&lb, "sent").await, retries(&lb, "budget").await), (2, 3));
    let budget = provider(&lb, "gpu").await["retries"].clone();
    assert_eq!(
        budget,
        json!({"window_requests": 5, "window_retries": 2, "allowed": false, "hedge_after_ms": null})
    );
}

// [RETRY-4] field fault C3
#[tokio::test]
async fn what_was_sent_and_not_answered_is_repeated_only_where_that_is_harmless() {
    let computes = [
        ("/v1/chat/completions", json!({"model": "chat"})),
        ("/v1/completions", json!({"model": "chat"})),
        ("/v1/messages", json!({"model": "chat"})),
        ("/v1/rerank", json!({"model": "chat"})),
        ("/v1/embeddings", json!({"model": "chat"})),
        ("/v1/responses", json!({"model": "chat", "store": false})),
    ];
    let does = [
        ("/v1/responses", json!({"model": "chat", "store": true})),
        (
            "/v1/responses",
            json!({"model": "chat", "store": false, "background": true}),
        ),
        ("/v1/images/generations", json!({"model": "chat"})),
        ("/v1/fine_tuning/jobs", json!({"model": "chat"})),
    ];
    let more = "retries: { budget_percent: 100 }";
    let (gpu, lb) = alone(Script::completion("gpu"), more).await;
    let ask = async |path: &str, body: &serde_json::Value| {
        let before = gpu.requests().len();
        gpu.next(Script::silent().close());
        let status = lb.ask(post(path, "", body.to_string())).await.status();
        let asked = gpu.requests().len() - before;
        assert!(asked != 1 || status != 200, "{path} met another script");
        (status, asked)
    };
    for (path, body) in &computes {
        assert_eq!(ask(path, body).await, (200, 2), "{path} {body}");
    }
    for (path, body) in &does {
        assert_eq!(ask(path, body).await, (502, 1), "{path} {body}");
    }
}

// [RETRY-4]
#[tokio::test]
async fn a_provider_may_forbid_to_repeat_what_was_not_answered() {
    let more = "retries: { retry_unanswered_posts: false }";
    let (gpu, lb) = alone(Script::completion("gpu"), more).await;
    gpu.next(Script::silent().close());
    assert_eq!(lb.chat(false).await.status(), 502);
    gpu.next(Script::silent().close());
    let get = "GET /v1/things?model=chat HTTP/1.1\r\nhost: lb.test\r\n\r\n";
    assert_eq!(
        lb.ask(get).await.status(),
        200,
        "by its method it may be repeated"
    );
    assert_eq!(gpu.requests().len(), 3);
}

// [RETRY-9]
#[tokio::test]
async fn another_pass_over_the_targets_is_paid_for_like_a_retry() {
    let (gpu, alt) = (
        Provider::start(Script::completion("gpu")).await,
        Provider::start(Script::completion("alt")).await,
    );
    let pair = |least: u32| {
        let member = format!("retries: {{ budget_percent: 0, budget_min_per_window: {least} }}");
        Setup::pair(&gpu, &alt)
            .provider(&member)
            .fallback("max_attempts: 4")
    };
    let fail = || {
        gpu.next(Script::error(500));
        alt.next(Script::error(500));
    };
    let lb = Lb::start(&pair(1)).await;
    fail();
    assert_eq!(said(&lb).await, "gpu");
    assert_eq!((gpu.requests().len(), alt.requests().len()), (2, 1));
    assert_eq!(retries(&lb, "sent").await, 1);
    // The preferred target's budget is used up, so the pass begins at the alternate.
    fail();
    assert_eq!(said(&lb).await, "alt");
    assert_eq!(retries(&lb, "budget").await, 1);
    // And now both are: the last response is the answer, at once.
    fail();
    assert_eq!(lb.chat(false).await.status(), 500);
    assert_eq!(retries(&lb, "sent").await, 1);
}

// [RETRY-10]
#[tokio::test]
async fn a_preset_only_goes_on_to_its_next_target() {
    let gpu = Provider::start(Script::error(500)).await;
    let setup = Setup::single(&gpu).section("presets: { assistant: { model: chat } }");
    let lb = Lb::start(&setup).await;
    assert_eq!(lb.ask(chat("assistant", false)).await.status(), 500);
    assert_eq!(gpu.requests().len(), 1);
}

// [RETRY-3]
#[tokio::test]
async fn at_the_last_target_a_replica_answers_for_one_that_is_slow() {
    let (a, b) = (
        Provider::start(Script::silent().stall()).await,
        Provider::start(Script::streamed(&["fast"])).await,
    );
    let setup = Setup::new()
        .at("gpu", &[&a.url(), &b.url()])
        .fallback("first_token_timeout_ms: 150");
    let lb = Lb::start(&setup).await;
    lb.eventually("the slow one to be picked", async |lb| {
        assert_eq!(lb.chat(true).await.status(), 200);
        !a.requests().is_empty()
    })
    .await;
    assert_eq!(retries(&lb, "sent").await, 1);
    lb.idle().await;
}
