//! The layers in their order: each that refuses is shown by who was asked, and by what the layers behind it never saw.

use lb_tests::client::Exchange;
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

use super::{provider, retries, said};

/// Two replicas that answer so, an alternate, and what every provider is set to.
async fn layered(
    script: impl Fn() -> Script,
    members: &[&str],
    model: &[&str],
) -> ([Provider; 2], Provider, Lb) {
    let gpu = [Provider::start(script()).await, Provider::start(script()).await];
    let alt = Provider::start(Script::completion("alt")).await;
    let setup = Setup::new()
        .at("gpu", &[&gpu[0].url(), &gpu[1].url()])
        .at("alt", &[&alt.url()]);
    let setup = members.iter().fold(setup, |setup, member| setup.provider(member));
    let setup = model.iter().fold(setup, |setup, member| setup.model(member));
    let lb = Lb::start(&setup).await;
    (gpu, alt, lb)
}

fn asked(gpu: &[Provider; 2]) -> usize {
    gpu.iter().map(|endpoint| endpoint.requests().len()).sum()
}

// [LAYER-1]
#[tokio::test]
async fn a_cooldown_refuses_before_the_breaker_could_count_anything() {
    let (gpu, _alt, lb) = layered(|| Script::error(503), &[], &["cooldown_ms: 60000"]).await;
    for _ in 0..4 {
        assert_eq!(said(&lb).await, "alt");
    }
    assert_eq!(asked(&gpu), 2, "once at each endpoint");
    assert_eq!(provider(&lb, "gpu").await["breaker"]["window_volume"], 0);
    assert_eq!(provider(&lb, "gpu").await["retries"]["window_requests"], 2);
}

// [LAYER-1]
#[tokio::test]
async fn a_breaker_refuses_although_every_endpoint_is_healthy() {
    let members = [
        "circuit_breaker: { consecutive_failures: 1 }",
        "retries: { max_attempts: 1 }",
    ];
    let (gpu, _alt, lb) = layered(|| Script::error(500), &members, &[]).await;
    for _ in 0..3 {
        assert_eq!(said(&lb).await, "alt");
    }
    assert_eq!(asked(&gpu), 1);
    assert_eq!(provider(&lb, "gpu").await["breaker"]["state"], "open");
    for endpoint in 0..2 {
        assert_eq!(lb.endpoint("gpu", endpoint).await["state"], "healthy");
    }
    assert_eq!(lb.sum("lb_fail_open_picks_total", &[]).await, 0);
}

// [LAYER-1]
#[tokio::test]
async fn health_refuses_an_endpoint_and_the_balancer_takes_the_other() {
    let members = ["health: { consecutive_failures: 1 }"];
    let (gpu, alt, lb) = layered(|| Script::completion("gpu"), &members, &[]).await;
    gpu[0].otherwise(Script::error(500));
    lb.eventually("one endpoint to be out", async |lb| {
        assert_eq!(said(lb).await, "gpu");
        lb.endpoint("gpu", 0).await["state"] == "ejected"
    })
    .await;
    let before = gpu[1].requests().len();
    for _ in 0..3 {
        assert_eq!(said(&lb).await, "gpu");
    }
    assert_eq!(
        (gpu[0].requests().len(), gpu[1].requests().len() - before),
        (1, 3)
    );
    assert_eq!((alt.requests().len(), retries(&lb, "sent").await), (0, 1));
    assert_eq!(provider(&lb, "gpu").await["breaker"]["state"], "closed");
}

// [LAYER-1]
#[tokio::test]
async fn a_limit_refuses_what_health_and_breaker_would_let_through() {
    let (gpu, _alt, lb) = layered(|| Script::silent().stall(), &["concurrency: 1"], &[]).await;
    let held = Exchange::begin(lb.data(), lb_tests::client::chat("chat", false)).await;
    lb.eventually("the slot to be taken", async |_| asked(&gpu) == 1)
        .await;
    assert_eq!(said(&lb).await, "alt");
    assert_eq!(asked(&gpu), 1);
    assert_eq!(lb.sum("lb_failovers_total", &[]).await, 0, "it was no attempt");
    drop(held);
    lb.idle().await;
}

// [LAYER-1]
#[tokio::test]
async fn a_budget_refuses_the_retry_and_the_request_goes_on_to_the_next_provider() {
    let members = ["retries: { budget_percent: 0, budget_min_per_window: 0 }"];
    let (gpu, alt, lb) = layered(|| Script::error(500), &members, &[]).await;
    assert_eq!(said(&lb).await, "alt");
    assert_eq!((asked(&gpu), alt.requests().len()), (1, 1));
    assert_eq!((retries(&lb, "budget").await, retries(&lb, "sent").await), (1, 0));
}

// [LAYER-2]
#[tokio::test]
async fn every_layer_is_asked_again_before_every_attempt() {
    let members = ["circuit_breaker: { consecutive_failures: 1 }"];
    let (gpu, alt, lb) = layered(|| Script::silent().close(), &members, &[]).await;
    // The first attempt opens the breaker: there is no second one, although a replica and the budget are there.
    assert_eq!(said(&lb).await, "alt");
    assert_eq!((asked(&gpu), alt.requests().len()), (1, 1));
    assert_eq!(
        provider(&lb, "gpu").await["retries"]["window_retries"],
        0,
        "nothing was paid"
    );
}
