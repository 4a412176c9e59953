//! The layers in their order: each that refuses is shown by who was asked, and by what the layers behind it never saw.

use lb_tests::client::Exchange;
use lb_tests::daemon::{Folder, Lb};
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

/// As `layered`, with answers that are well and another text.
async fn changed(
    members: &[&str],
    model: &[&str],
    change: impl Fn(String) -> String,
) -> ([Provider; 2], Provider, Lb) {
    let (gpu, alt) = (
        [
            Provider::start(Script::completion("gpu")).await,
            Provider::start(Script::completion("gpu")).await,
        ],
        Provider::start(Script::completion("alt")).await,
    );
    let setup = Setup::new()
        .at("gpu", &[&gpu[0].url(), &gpu[1].url()])
        .at("alt", &[&alt.url()]);
    let setup = members.iter().fold(setup, |setup, member| setup.provider(member));
    let setup = model.iter().fold(setup, |setup, member| setup.model(member));
    let lb = Lb::with(&change(setup.text())).await;
    (gpu, alt, lb)
}

/// Nothing behind the model's own limits has seen more than `requests`.
async fn nothing_behind(lb: &Lb, gpu: &[Provider; 2], alt: &Provider, requests: usize) {
    assert_eq!((asked(gpu), alt.requests().len()), (requests, 0));
    assert_eq!(
        lb.sum("lb_aimd_draws_total", &[]).await,
        requests as u64,
        "no draw"
    );
    assert_eq!(lb.sum("lb_attempts_total", &[]).await, requests as u64);
    for name in ["gpu", "alt"] {
        let of_gpu = if name == "gpu" { requests } else { 0 };
        assert_eq!(provider(lb, name).await["retries"]["window_requests"], of_gpu);
        assert_eq!(provider(lb, name).await["breaker"]["window_volume"], of_gpu);
    }
}

// [LAYER-1]
#[tokio::test]
async fn an_unknown_key_is_refused_before_the_model_is_looked_at() {
    let folder = Folder::new();
    let known = folder.write("known", &"0".repeat(64));
    let auth = format!(
        "auth: {{ required: true, keys: [{{ name: known, sha256_file: {} }}] }}\n",
        known.display()
    );
    let limit = ["rate_limit: { requests_per_second: 0.01, burst: 1 }"];
    let (gpu, alt, lb) = changed(&[], &limit, |text| format!("{auth}{text}")).await;
    for model in ["chat", "nobody"] {
        let answer = lb.ask(lb_tests::client::chat(model, true)).await;
        assert_eq!(answer.status(), 401, "{model}");
    }
    nothing_behind(&lb, &gpu, &alt, 0).await;
    assert_eq!(
        lb.state().await["models"][0]["limits"]["tokens"],
        1.0,
        "nor its bucket"
    );
}

// [LAYER-1]
#[tokio::test]
async fn an_unknown_model_is_refused_before_any_target_is() {
    let (gpu, alt, lb) = changed(&[], &[], |text| text).await;
    let answer = lb.ask(lb_tests::client::chat("nobody", true)).await;
    assert_eq!(
        (answer.status(), answer.code().as_str()),
        (404, "model_not_found")
    );
    nothing_behind(&lb, &gpu, &alt, 0).await;
}

// [LAYER-1] [LIMITER-7]
#[tokio::test]
async fn a_models_own_limit_refuses_before_the_share_is_drawn() {
    let limit = ["rate_limit: { requests_per_second: 0.01, burst: 1 }"];
    let (gpu, alt, lb) = changed(&[], &limit, |text| text).await;
    assert_eq!(lb.chat(true).await.status(), 200);
    assert_eq!(lb.chat(true).await.status(), 429);
    lb.idle().await;
    nothing_behind(&lb, &gpu, &alt, 1).await;
}

// [LAYER-1]
#[tokio::test]
async fn the_share_diverts_before_the_preferred_provider_is_asked_for_anything() {
    // Two breaches halve the share, and that stays.
    let share = "fallback: { first_token_timeout_ms: 8000, aimd: { latency_budget_ms: 6000, min_samples: 2, window_samples: \
                 2, dwell_ms: 60000, share_decay: 0.5, share_floor: 0.5, idle_recovery_ms: 0 } }";
    let (gpu, alt, lb) = changed(&["concurrency: 100"], &[share], |text| text).await;
    let all_say = |script: fn() -> Script| gpu.iter().for_each(|endpoint| endpoint.otherwise(script()));
    all_say(|| Script::error(429));
    while lb.pool().await["share"] == 1.0 {
        assert_eq!(lb.chat(true).await.status(), 200);
    }
    all_say(|| Script::completion("gpu"));
    let diverted = async || lb.sum("lb_aimd_draws_total", &["start=\"alternate\""]).await;
    let before = (asked(&gpu) as u64, alt.requests().len() as u64, diverted().await);
    let failovers = lb.sum("lb_failovers_total", &[]).await;
    for _ in 0..20 {
        assert_eq!(lb.chat(true).await.status(), 200);
    }
    lb.idle().await;
    let drawn = diverted().await - before.2;
    assert!((7..=13).contains(&drawn), "half of 20, give or take 3: {drawn}");
    let after = (asked(&gpu) as u64, alt.requests().len() as u64);
    assert_eq!((after.0 - before.0, after.1 - before.1), (20 - drawn, drawn));
    assert_eq!(
        lb.sum("lb_failovers_total", &[]).await,
        failovers,
        "a beginning is no switch"
    );
}

// [LAYER-1]
#[tokio::test]
async fn the_balancer_takes_no_endpoint_without_weight_however_healthy() {
    let drained = |text: String| text.replacen("name: gpu-0,", "name: gpu-0, weight: 0,", 1);
    let (gpu, alt, lb) = changed(&[], &[], drained).await;
    for _ in 0..6 {
        assert_eq!(said(&lb).await, "gpu");
    }
    assert_eq!(
        (
            gpu[0].requests().len(),
            gpu[1].requests().len(),
            alt.requests().len()
        ),
        (0, 6, 0)
    );
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "healthy");
    assert_eq!(lb.endpoint("gpu", 0).await["window_volume"], 0);
    assert_eq!(provider(&lb, "gpu").await["breaker"]["window_volume"], 6);
}

// [LAYER-1]
#[tokio::test]
async fn a_rate_refuses_what_breaker_health_and_balancer_would_let_through() {
    let limited = |text: String| {
        let key = "api_key: key-of-gpu";
        text.replacen(
            key,
            &format!("{key}, rate_limit: {{ requests_per_second: 0.01, burst: 1 }}"),
            1,
        )
    };
    let (gpu, _alt, lb) = changed(&[], &[], limited).await;
    assert_eq!(said(&lb).await, "gpu");
    assert_eq!(said(&lb).await, "alt");
    assert_eq!(asked(&gpu), 1);
    assert_eq!(provider(&lb, "gpu").await["breaker"]["window_volume"], 1);
    assert_eq!(provider(&lb, "gpu").await["retries"]["window_requests"], 1);
    assert_eq!(lb.sum("lb_failovers_total", &[]).await, 0, "it was no attempt");
}

// [LAYER-1]
#[tokio::test]
async fn an_attempt_that_comes_to_nothing_is_judged_before_anything_is_tried_again() {
    let once = ["health: { consecutive_failures: 1 }"];
    let (mut gpu, alt, lb) = changed(&once, &[], |text| text).await;
    for endpoint in &mut gpu {
        endpoint.kill().await;
    }
    assert_eq!(said(&lb).await, "alt");
    // Each refused once, was judged, and so was out before the next attempt chose.
    assert_eq!(lb.sum("lb_attempts_total", &["outcome=\"connect\""]).await, 2);
    for endpoint in 0..2 {
        assert_eq!(lb.endpoint("gpu", endpoint).await["state"], "ejected");
    }
    assert_eq!((alt.requests().len(), retries(&lb, "sent").await), (1, 1));
    assert_eq!(lb.sum("lb_failovers_total", &[]).await, 1);
    assert_eq!(lb.sum("lb_fail_open_picks_total", &[]).await, 0);
}

// [LAYER-1]
#[tokio::test]
async fn what_is_classified_as_the_clients_own_fault_is_neither_tried_again_nor_switched() {
    let (gpu, alt, lb) = layered(|| Script::error(422), &[], &["cooldown_ms: 60000"]).await;
    assert_eq!(lb.chat(false).await.status(), 422);
    assert_eq!((asked(&gpu), alt.requests().len()), (1, 0));
    assert_eq!(provider(&lb, "gpu").await["retries"]["window_retries"], 0);
    assert_eq!(lb.state().await["cooldowns"].as_array().map(Vec::len), Some(0));
}

// [LAYER-1]
#[tokio::test]
async fn a_bound_on_visits_refuses_the_switch_and_no_retry() {
    let (gpu, alt, lb) = layered(|| Script::error(500), &[], &["fallback: { max_attempts: 1 }"]).await;
    assert_eq!(lb.chat(false).await.status(), 500);
    assert_eq!((asked(&gpu), alt.requests().len()), (2, 0));
    assert_eq!(retries(&lb, "sent").await, 1);
}

// [LAYER-1] [AIMD-27]
#[tokio::test]
async fn the_controller_learns_of_what_all_others_let_pass() {
    let (gpu, alt, lb) = layered(|| Script::error(503), &[], &["cooldown_ms: 60000"]).await;
    for _ in 0..3 {
        assert_eq!(lb.chat(true).await.status(), 200);
    }
    lb.idle().await;
    assert_eq!((asked(&gpu), alt.requests().len()), (3, 3));
    assert_eq!(lb.sum("lb_aimd_samples_total", &["outcome=\"breach\""]).await, 3);
    assert_eq!(
        lb.sum("lb_aimd_samples_total", &[]).await,
        3,
        "the alternate's are nobody's"
    );
    assert_eq!(provider(&lb, "gpu").await["breaker"]["window_volume"], 0);
    assert_eq!(lb.state().await["cooldowns"].as_array().map(Vec::len), Some(0));
}
