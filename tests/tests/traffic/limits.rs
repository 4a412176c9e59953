//! How many requests a provider and a model are sent, and who waits.

use lb_tests::client::{Answer, Exchange};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Signal};
use lb_tests::setup::Setup;

use crate::of_gpu;

const TWO_AT_ONCE: &str = "rate_limit: { requests_per_second: 0.01, burst: 2 }";

async fn lb(provider: &str) -> (Provider, Lb) {
    let upstream = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&upstream).provider(provider)).await;
    (upstream, lb)
}

fn retry_after(answer: &Answer) -> u64 {
    let seconds = answer
        .head
        .header("retry-after")
        .and_then(|value| value.parse().ok());
    seconds.expect("a refusal says when to come back")
}

async fn waits(lb: &Lb, count: usize) {
    let pending = async |lb: &Lb| lb.state().await["providers"][0]["pending"] == count;
    lb.eventually("requests to wait", pending).await;
}

/// A stream that holds its slot until the signal.
fn held(signal: &Signal) -> Script {
    Script::stream().token("a").wait(signal).token("b").finish()
}

async fn begun(lb: &Lb) -> Exchange {
    let mut exchange = lb.begin().await;
    exchange.head().await;
    exchange
}

// field fault R2
// [LIMITER-1] [LIMITER-5]
#[tokio::test]
async fn over_its_rate_a_provider_is_sent_nothing_and_the_client_is_told_when_to_come_back() {
    let (provider, lb) = lb(TWO_AT_ONCE).await;
    for _ in 0..2 {
        assert_eq!(lb.chat(false).await.status(), 200);
    }
    let refused = lb.chat(false).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (429, "rate_limit_exceeded")
    );
    assert!(
        (90..=100).contains(&retry_after(&refused)),
        "{}",
        retry_after(&refused)
    );
    assert_eq!(provider.requests().len(), 2);
    assert!(lb.state().await["providers"][0]["rate_limit"]["tokens"].as_f64() < Some(1.0));
    lb.idle().await;
}

// [LIMITER-5]
#[tokio::test]
async fn over_the_rate_of_one_provider_the_next_is_asked_at_no_cost_of_an_attempt() {
    let [gpu, alt] = [Script::completion("gpu"), Script::completion("alt")].map(Provider::start);
    let (gpu, alt) = (gpu.await, alt.await);
    let setup = Setup::pair(&gpu, &alt).fallback("max_attempts: 1");
    let lb = Lb::with(&of_gpu(&setup, TWO_AT_ONCE)).await;
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(lb.chat(false).await.text());
    }
    assert!(
        answers[..2].iter().all(|text| text.contains("gpu")),
        "{answers:?}"
    );
    assert!(
        answers[2..].iter().all(|text| text.contains("alt")),
        "{answers:?}"
    );
    assert_eq!(lb.sum("lb_failovers_total", &[]).await, 0);
}

// [LIMITER-2]
#[tokio::test]
async fn what_is_in_a_bucket_survives_a_reload_and_other_settings_hold_at_once() {
    let upstream = Provider::start(Script::completion("ok")).await;
    let setup = |limit: &str| Setup::single(&upstream).provider(limit).text();
    let lb = Lb::with(&setup(TWO_AT_ONCE)).await;
    for _ in 0..2 {
        assert_eq!(lb.chat(false).await.status(), 200);
    }
    lb.write(&setup("rate_limit: { requests_per_second: 0.01, burst: 100 }"));
    assert_eq!(lb.reload().await.status(), 200);
    assert_eq!(
        lb.chat(false).await.status(),
        429,
        "a larger bucket is not a fuller one"
    );
    lb.write(&setup("rate_limit: null"));
    assert_eq!(lb.reload().await.status(), 200);
    assert_eq!(lb.chat(false).await.status(), 200);
}

// [LIMITER-7]
#[tokio::test]
async fn a_models_own_rate_and_places_are_asked_before_any_provider() {
    let upstream = Provider::start(Script::completion("ok")).await;
    let setup = Setup::single(&upstream).model(&format!("{TWO_AT_ONCE}\n    concurrency: 1"));
    let lb = Lb::start(&setup).await;
    upstream.next(Script::stream().token("a").stall());
    let open = begun(&lb).await;
    let refused = lb.chat(false).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (429, "concurrency_limit_exceeded")
    );
    assert!(retry_after(&refused) >= 1);
    assert_eq!(lb.state().await["models"][0]["limits"]["in_flight"], 1);
    drop(open);
    lb.eventually("the place to be free", async |lb| {
        lb.state().await["models"][0]["limits"]["in_flight"] == 0
    })
    .await;
    assert_eq!(lb.chat(false).await.status(), 200);
    let refused = lb.chat(false).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (429, "rate_limit_exceeded")
    );
    assert_eq!(upstream.requests().len(), 2);
}

// [LIMITER-6]
#[tokio::test]
async fn a_request_waits_for_a_slot_and_one_too_many_does_not() {
    let (provider, lb) = lb("concurrency: 1, max_pending: 1, pending_timeout_ms: 60000").await;
    let signal = Signal::new();
    provider.next(held(&signal));
    let first = begun(&lb).await;
    let mut second = lb.begin().await;
    waits(&lb, 1).await;
    assert_eq!(lb.sum("lb_pending_requests", &["provider=\"gpu\""]).await, 1);
    let third = lb.chat(false).await;
    assert_eq!(
        (third.status(), third.code().as_str()),
        (429, "concurrency_limit_exceeded")
    );
    assert!(second.nothing_yet());
    assert_eq!(provider.requests().len(), 1);
    signal.fire();
    assert_eq!(second.head().await.status, 200);
    drop((first, second));
    lb.idle().await;
    waits(&lb, 0).await;
}

// field fault D2
// [LIMITER-6]
#[tokio::test]
async fn a_client_that_leaves_the_queue_frees_its_place_for_another() {
    let (provider, lb) = lb("concurrency: 1, max_pending: 1, pending_timeout_ms: 60000").await;
    let signal = Signal::new();
    provider.next(held(&signal));
    let _first = begun(&lb).await;
    let second = lb.begin().await;
    waits(&lb, 1).await;
    drop(second);
    waits(&lb, 0).await;
    let mut third = lb.begin().await;
    waits(&lb, 1).await;
    signal.fire();
    assert_eq!(third.head().await.status, 200);
    assert_eq!(provider.requests().len(), 2, "whoever left was not sent");
}

// [LIMITER-6]
#[tokio::test]
async fn a_wait_ends_with_its_timeout() {
    let (provider, lb) = lb("concurrency: 1, max_pending: 5, pending_timeout_ms: 100").await;
    provider.next(Script::stream().token("a").stall());
    let open = begun(&lb).await;
    let refused = lb.chat(false).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (429, "concurrency_limit_exceeded")
    );
    assert!(retry_after(&refused) >= 1);
    drop(open);
    lb.idle().await;
    waits(&lb, 0).await;
}

// [LIMITER-6]
#[tokio::test]
async fn whoever_waits_when_lb_drains_is_still_served() {
    let (provider, mut lb) = lb("concurrency: 1, max_pending: 1, pending_timeout_ms: 60000").await;
    let signal = Signal::new();
    provider.next(held(&signal));
    let first = begun(&lb).await;
    let mut second = lb.begin().await;
    waits(&lb, 1).await;
    lb.signal(rustix::process::Signal::TERM);
    lb.eventually("the drain", async |lb| {
        lb_tests::client::ask(lb.admin(), lb_tests::client::get("/readyz"))
            .await
            .status()
            == 503
    })
    .await;
    signal.fire();
    assert_eq!(second.head().await.status, 200);
    drop((first, second));
    assert!(lb.exit().await.success());
}

// [LIMITER-4]
#[tokio::test]
async fn a_429_with_a_time_lowers_the_rate_until_then() {
    let (provider, lb) = lb("rate_limit: { requests_per_second: 1000, adaptive: {} }").await;
    let factor = "lb_rate_limit_factor_ratio{provider=\"gpu\"}";
    assert!((lb.metric(factor).await - 1.0).abs() < 1e-9);
    provider.next(Script::json(
        429,
        &[("retry-after", "30")],
        &serde_json::json!({}),
    ));
    assert_eq!(lb.chat(false).await.status(), 429);
    assert!((lb.metric(factor).await - 0.1).abs() < 1e-9);
    let limit = lb.state().await["providers"][0]["rate_limit"].clone();
    assert!(
        limit["asked_for_ms"]
            .as_f64()
            .is_some_and(|ms| ms > 20_000.0 && ms <= 30_000.0),
        "{limit}"
    );
    assert_eq!(lb.chat(false).await.status(), 200);
}

// [RETRY-15] [LIMITER-4]
#[tokio::test]
async fn the_rate_stays_low_for_as_long_as_the_provider_is_believed() {
    let asked = async |settings: &str| {
        let (provider, lb) = lb(settings).await;
        let day = &[("retry-after", "86400")];
        provider.next(Script::json(429, day, &serde_json::json!({})));
        assert_eq!(lb.chat(false).await.status(), 429);
        let limit = lb.state().await["providers"][0]["rate_limit"].clone();
        (limit["asked_for_ms"].as_f64().unwrap_or_default(), lb)
    };
    let rate = "requests_per_second: 1000";
    for (settings, most) in [
        (format!("rate_limit: {{ {rate}, adaptive: {{}} }}"), 300_000.0),
        (
            format!("retries: {{ max_retry_after_ms: 200000 }}, rate_limit: {{ {rate}, adaptive: {{}} }}"),
            200_000.0,
        ),
        (
            format!("rate_limit: {{ {rate}, adaptive: {{ max_retry_after_ms: 100000 }} }}"),
            100_000.0,
        ),
    ] {
        let (left, lb) = asked(&settings).await;
        assert!(left > most - 60_000.0 && left <= most, "{settings}: {left}");
        assert_eq!(lb.sum("lb_retry_after_capped_total", &[]).await, 1);
    }
}

// [LIMITER-8]
#[tokio::test]
async fn without_a_rate_the_places_follow_the_provider() {
    let (provider, lb) = lb("concurrency: 10, rate_limit: { adaptive: {} }").await;
    provider.next(Script::json(
        429,
        &[("retry-after", "30")],
        &serde_json::json!({}),
    ));
    assert_eq!(lb.chat(false).await.status(), 429);
    assert_eq!(lb.state().await["providers"][0]["concurrency"], 1);
    provider.next(Script::stream().token("a").stall());
    let open = begun(&lb).await;
    assert_eq!(lb.chat(false).await.code(), "concurrency_limit_exceeded");
    drop(open);
    lb.idle().await;
    assert_eq!(lb.chat(false).await.status(), 200);
}
