//! Cooldowns: one model at one endpoint is left alone for a while.

use lb_tests::client::{Answer, chat};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use serde_json::{Value, json};

use super::said;

const PRESET: &str = "presets: { assistant: { model: chat } }";

async fn pair(preferred: Script, change: impl Fn(Setup) -> Setup) -> (Provider, Provider, Lb) {
    let gpu = Provider::start(preferred).await;
    let alt = Provider::start(Script::completion("alt")).await;
    let lb = Lb::start(&change(Setup::pair(&gpu, &alt))).await;
    (gpu, alt, lb)
}

fn on(milliseconds: u32) -> impl Fn(Setup) -> Setup {
    move |setup| setup.model(&format!("cooldown_ms: {milliseconds}"))
}

async fn cooldowns(lb: &Lb) -> Vec<Value> {
    let state = lb.state().await;
    state["cooldowns"].as_array().expect("a list").clone()
}

async fn by_preset(lb: &Lb) -> Answer {
    lb.ask(chat("assistant", false)).await
}

// [COOL-1] [COOL-5] field fault R3
#[tokio::test]
async fn a_model_that_was_busy_is_left_alone_and_everyone_can_see_why() {
    let (gpu, alt, lb) = pair(Script::error(503), on(60_000)).await;
    for _ in 0..3 {
        assert_eq!(said(&lb).await, "alt");
    }
    assert_eq!((gpu.requests().len(), alt.requests().len()), (1, 3));
    let [entry] = &cooldowns(&lb).await[..] else {
        panic!("one model cools at one endpoint")
    };
    let expected = json!({
        "upstream_model": "gpu-model", "provider": "gpu", "endpoint": "gpu-0",
        "address": gpu.address().to_string(), "state": "cooling", "reason": "status", "by": "chat", "for_ms": entry["for_ms"],
    });
    assert_eq!(*entry, expected);
    let left = entry["for_ms"].as_u64().expect("it cools");
    assert!((30_000..=60_000).contains(&left), "{left}");
    let labels = ["endpoint=\"gpu-0\"", "model=\"gpu-model\"", "provider=\"gpu\""];
    assert_eq!(lb.sum("lb_cooldown_active", &labels).await, 1);
    lb.logged(&["\"cooling down\"", "\"gpu-model\"", "\"status\""])
        .await;
    assert_eq!(lb.count(&["\"cooling down\"", "\"gpu-model\"", "\"status\""]), 1);
}

// [COOL-6]
#[tokio::test]
async fn what_the_share_counts_as_a_breach_cools_nothing() {
    let (gpu, alt, lb) = pair(Script::error(503), on(60_000)).await;
    alt.otherwise(Script::streamed(&["alt"]));
    for _ in 0..2 {
        assert_eq!(lb.chat(true).await.status(), 200);
    }
    assert_eq!(gpu.requests().len(), 2);
    assert_eq!(cooldowns(&lb).await, Vec::<Value>::new());
}

// [COOL-6] field fault R6
#[tokio::test]
async fn a_refused_key_cools_where_it_is_listed_and_a_bad_request_never() {
    let preset = |setup: Setup| setup.section(PRESET);
    let (gpu, _alt, lb) = pair(Script::error(400), preset).await;
    for _ in 0..2 {
        assert_eq!(by_preset(&lb).await.status(), 200, "a preset switches on 400");
    }
    assert_eq!(gpu.requests().len(), 2);
    assert_eq!(cooldowns(&lb).await, Vec::<Value>::new());
    gpu.otherwise(Script::error(401));
    assert_eq!(lb.chat(false).await.status(), 401, "a model does not switch");
    assert_eq!(cooldowns(&lb).await, Vec::<Value>::new());
    assert_eq!(by_preset(&lb).await.status(), 200);
    assert_eq!(cooldowns(&lb).await.len(), 1);
}

// [COOL-4]
#[tokio::test]
async fn where_all_cool_they_are_tried_all_the_same_in_order() {
    let once = |setup: Setup| on(60_000)(setup).provider("retries: { max_attempts: 1 }");
    let (gpu, alt, lb) = pair(Script::error(503), once).await;
    alt.otherwise(Script::error(503));
    assert_eq!(lb.chat(false).await.status(), 503);
    assert_eq!(cooldowns(&lb).await.len(), 2);
    gpu.otherwise(Script::completion("gpu"));
    assert_eq!(said(&lb).await, "gpu");
    assert_eq!((gpu.requests().len(), alt.requests().len()), (2, 1));
    // Which was begun after it cooled, so that it clears.
    assert_eq!(cooldowns(&lb).await.len(), 1);
}

// [COOL-7]
#[tokio::test]
async fn all_names_that_reach_a_model_share_its_cooldown_but_those_without_cooldowns() {
    let names =
        |setup: Setup| setup.section("presets: { assistant: { model: chat }, other: { model: chat } }");
    let (gpu, _alt, lb) = pair(Script::error(500), names).await;
    assert_eq!(by_preset(&lb).await.status(), 200);
    assert_eq!(cooldowns(&lb).await[0]["by"], "assistant");
    assert_eq!(lb.ask(chat("other", false)).await.status(), 200);
    assert_eq!(gpu.requests().len(), 1);
    // A plain model neither starts cooldowns nor heeds them, by default.
    assert_eq!(lb.chat(false).await.status(), 200);
    assert_eq!(gpu.requests().len(), 2);
}

// [COOL-2] [COOL-3]
#[tokio::test]
async fn when_it_is_over_a_success_clears_it() {
    let (gpu, _alt, lb) = pair(Script::completion("gpu"), on(100)).await;
    gpu.next(Script::error(502));
    assert_eq!(said(&lb).await, "alt");
    lb.eventually("the preferred provider to be back", async |lb| {
        said(lb).await == "gpu"
    })
    .await;
    assert_eq!(cooldowns(&lb).await, Vec::<Value>::new());
    assert_eq!(lb.sum("lb_cooldown_active", &[]).await, 0);
    lb.logged(&["\"cooldown cleared\""]).await;
    assert_eq!(lb.count(&["\"cooldown cleared\""]), 1);
}

// [COOL-2] field fault K6
#[tokio::test]
async fn one_request_at_a_time_finds_out_and_one_whose_client_leaves_makes_room() {
    let (gpu, _alt, lb) = pair(Script::silent().stall(), on(100)).await;
    gpu.next(Script::error(502));
    assert_eq!(said(&lb).await, "alt");
    lb.eventually("the time to be up", async |lb| {
        cooldowns(lb).await[0]["state"] == "half_open"
    })
    .await;
    // No stream, so that no deadline cuts it.
    let probe = lb_tests::client::Exchange::begin(lb.data(), chat("chat", false)).await;
    gpu.request(1).await;
    assert_eq!(said(&lb).await, "alt");
    assert_eq!(gpu.requests().len(), 2);
    drop(probe);
    gpu.otherwise(Script::completion("gpu"));
    lb.eventually("another to get through", async |lb| said(lb).await == "gpu")
        .await;
    lb.idle().await;
}

// [COOL-1] [RETRY-15] field fault R4
#[tokio::test]
async fn a_provider_that_asks_for_longer_is_left_alone_for_longer_up_to_five_minutes() {
    let capped = async |lb: &Lb| lb.sum("lb_retry_after_capped_total", &["provider=\"gpu\""]).await;
    let forms = [
        ("retry-after", "120", 120),
        ("retry-after", "1.5", 2),
        ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT", 1),
        ("retry-after", "-1", 1),
        ("retry-after", "abc", 1),
        ("retry-after", "86400000", 300),
        ("retry-after", "300.5", 300),
        ("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT", 300),
        ("retry-after-ms", "2500", 3),
        ("retry-after-ms", "86400000", 300),
        ("x-ratelimit-reset-requests", "1m30.5s", 91),
        ("x-ratelimit-reset-tokens", "6m1s", 300),
        ("x-ratelimit-reset", "301", 300),
    ];
    for (name, value, seconds) in forms {
        let script = Script::json(429, &[(name, value)], &json!({"error": "busy"}));
        let (_gpu, _alt, lb) = pair(script, on(1000)).await;
        assert_eq!(said(&lb).await, "alt");
        let left = cooldowns(&lb).await[0]["for_ms"].as_u64().unwrap_or_default();
        let least = (seconds - 1) * 1000;
        assert!(
            (least..=seconds * 1000).contains(&left),
            "{name}: {value}: {left}"
        );
        let bites = u64::from(seconds == 300);
        assert_eq!(capped(&lb).await, bites, "{name}: {value}");
    }
}

// [RETRY-15]
#[tokio::test]
async fn how_long_a_provider_is_believed_is_its_own_setting_and_zero_is_any() {
    let busy = || Script::json(429, &[("retry-after", "86400")], &json!({"error": "busy"}));
    for (most, seconds, bites) in [(2000, 2, 1), (0, 86_400, 0)] {
        let most = format!("retries: {{ max_retry_after_ms: {most} }}");
        let (_gpu, _alt, lb) = pair(busy(), |setup| on(1000)(setup).provider(&most)).await;
        assert_eq!(said(&lb).await, "alt");
        let left = cooldowns(&lb).await[0]["for_ms"].as_u64().unwrap_or_default();
        // Whatever this machine was doing meanwhile, it is not what a cooldown of one second comes to.
        let (least, longest) = (if bites == 1 { 1001 } else { 86_000_000 }, seconds * 1000);
        assert!((least..=longest).contains(&left), "{most}: {left}");
        assert_eq!(lb.sum("lb_retry_after_capped_total", &[]).await, bites);
    }
}

// [RELOAD-16]
#[tokio::test]
async fn a_reload_keeps_cooldowns_and_what_is_another_endpoint_starts_clear() {
    let (gpu, alt, lb) = pair(Script::error(503), on(60_000)).await;
    assert_eq!(said(&lb).await, "alt");
    let usual = on(60_000)(Setup::pair(&gpu, &alt)).text();
    let reload = async |text: &str| {
        lb.write(text);
        assert_eq!(lb.reload().await.status(), 200);
    };
    reload(&usual.replace("providers:", "failover: { cooldown_ms: 1 }\nproviders:")).await;
    assert_eq!(cooldowns(&lb).await.len(), 1);
    let moved = Provider::start(Script::completion("moved")).await;
    reload(&usual.replace(&gpu.url(), &moved.url())).await;
    assert_eq!(cooldowns(&lb).await, Vec::<Value>::new());
    assert_eq!(said(&lb).await, "moved");
}

// [COOL-5]
#[tokio::test]
async fn a_replica_that_does_not_cool_is_taken_before_the_next_target() {
    let (a, b) = (
        Provider::start(Script::error(429)).await,
        Provider::start(Script::error(429)).await,
    );
    let alt = Provider::start(Script::completion("alt")).await;
    let setup = Setup::new()
        .at("gpu", &[&a.url(), &b.url()])
        .at("alt", &[&alt.url()]);
    let lb = Lb::start(&on(60_000)(setup)).await;
    for _ in 0..4 {
        assert_eq!(said(&lb).await, "alt");
    }
    // The first request cooled one of the two, the second the other; the third found both cooling.
    assert_eq!((a.requests().len(), b.requests().len()), (1, 1));
    assert_eq!(alt.requests().len(), 4);
}
