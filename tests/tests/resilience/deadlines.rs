//! Waiting, and what bounds it.

use std::time::{Duration, Instant};

use lb_tests::client::Exchange;
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use serde_json::json;

use super::{provider, retries, said};

fn busy(milliseconds: &str) -> Script {
    Script::json(
        429,
        &[("retry-after-ms", milliseconds)],
        &json!({"error": "busy"}),
    )
}

async fn alone(script: Script, more: &str) -> (Provider, Lb) {
    let gpu = Provider::start(script).await;
    let lb = Lb::start(&Setup::single(&gpu).provider(more)).await;
    (gpu, lb)
}

// [RETRY-11] field fault R4
#[tokio::test]
async fn within_a_total_deadline_a_provider_gets_the_time_it_asks_for() {
    let (gpu, lb) = alone(Script::completion("gpu"), "retries: { total_deadline_ms: 20000 }").await;
    gpu.next(busy("400"));
    let begun = Instant::now();
    assert_eq!(said(&lb).await, "gpu");
    assert!(begun.elapsed() >= Duration::from_millis(400));
    assert_eq!((gpu.requests().len(), retries(&lb, "sent").await), (2, 1));
}

// [RETRY-15]
#[tokio::test]
async fn it_is_waited_for_as_long_as_it_is_believed_and_no_longer() {
    let more = "retries: { total_deadline_ms: 60000, max_retry_after_ms: 400 }";
    let (gpu, lb) = alone(Script::completion("gpu"), more).await;
    gpu.next(busy("86400000"));
    let begun = Instant::now();
    assert_eq!(said(&lb).await, "gpu");
    assert!(begun.elapsed() >= Duration::from_millis(400));
    assert_eq!((gpu.requests().len(), retries(&lb, "sent").await), (2, 1));
    assert_eq!(lb.sum("lb_retry_after_capped_total", &[]).await, 1);
}

// [RETRY-15]
#[tokio::test]
async fn the_client_is_told_what_was_asked_for_as_it_came() {
    let (_gpu, lb) = alone(busy("86400000"), "retries: { max_attempts: 1 }").await;
    let answer = lb.chat(false).await;
    assert_eq!(answer.head.header("retry-after-ms"), Some("86400000"));
}

// [RETRY-11]
#[tokio::test]
async fn without_one_the_client_is_told_itself_when_to_come_back() {
    let (gpu, lb) = alone(busy("60000"), "retries: { max_attempts: 3 }").await;
    let answer = lb.chat(false).await;
    assert_eq!((answer.status(), gpu.requests().len()), (429, 1));
    assert_eq!(answer.head.header("retry-after-ms"), Some("60000"));
}

// [RETRY-12]
#[tokio::test]
async fn what_would_end_after_the_deadline_is_not_begun_and_costs_nothing() {
    let limits = [
        ("retries: { total_deadline_ms: 1000 }", ""),
        (
            "retries: { max_attempts: 2 }",
            "failover: { total_deadline_ms: 1000 }",
        ),
        (
            "retries: { total_deadline_ms: 60000 }",
            "failover: { total_deadline_ms: 1000 }",
        ),
        (
            "retries: { total_deadline_ms: 1000 }",
            "failover: { total_deadline_ms: 60000 }",
        ),
    ];
    for (visit, cascade) in limits {
        let gpu = Provider::start(busy("5000")).await;
        let setup = Setup::single(&gpu).provider(visit).section(cascade);
        let lb = Lb::start(&setup).await;
        let answer = lb.chat(false).await;
        assert_eq!(
            (answer.status(), gpu.requests().len()),
            (429, 1),
            "{visit} {cascade}"
        );
        assert_eq!(retries(&lb, "deadline").await, 1);
        assert_eq!(provider(&lb, "gpu").await["retries"]["window_retries"], 0);
    }
}

// [RETRY-13]
#[tokio::test]
async fn a_visit_that_takes_too_long_is_left_for_the_next_target_and_else_given_up() {
    let silent = || Script::silent().stall();
    let (gpu, alt) = (
        Provider::start(silent()).await,
        Provider::start(Script::completion("alt")).await,
    );
    let visit = "retries: { total_deadline_ms: 200 }";
    let lb = Lb::start(&Setup::pair(&gpu, &alt).provider(visit)).await;
    assert_eq!(said(&lb).await, "alt");
    let (_gpu, lb) = alone(silent(), visit).await;
    let answer = lb.chat(false).await;
    assert_eq!(
        (answer.status(), answer.code().as_str()),
        (504, "upstream_timeout")
    );
    // It says nothing about anyone.
    assert_eq!(provider(&lb, "gpu").await["breaker"]["window_volume"], 0);
}

// [RETRY-14] field fault D2
#[tokio::test]
async fn a_client_that_leaves_while_lb_waits_takes_everything_with_it() {
    let (gpu, lb) = alone(busy("60000"), "retries: { total_deadline_ms: 600000 }").await;
    let waiting = Exchange::begin(lb.data(), lb_tests::client::chat("chat", false)).await;
    let paid = async |lb: &Lb| provider(lb, "gpu").await["retries"]["window_retries"] == 1;
    lb.eventually("the retry to be paid for", paid).await;
    drop(waiting);
    let free = async |lb: &Lb| provider(lb, "gpu").await["retries"]["window_retries"] == 0;
    lb.eventually("the payment to be back", free).await;
    lb.idle().await;
    gpu.left(0).await;
    assert_eq!((gpu.requests().len(), retries(&lb, "sent").await), (1, 0));
    assert_eq!(lb.sum("lb_requests_total", &["outcome=\"cancelled\""]).await, 1);
}
