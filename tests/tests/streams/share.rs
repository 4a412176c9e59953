//! The share as clients and operators see it. The controller's own rules are shown in its unit tests.

use lb_tests::client::{chat_body, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

/// A pool whose controller decides after each two outcomes, and may at once.
async fn pair(preferred: Script) -> (Provider, Provider, Lb) {
    let preferred = Provider::start(preferred).await;
    let alternate = Provider::start(Script::streamed(&["from alt"])).await;
    let aimd = "aimd: { min_samples: 2, window_samples: 2, dwell_ms: 1, share_decay: 0.5, share_floor: 0.25, \
                idle_recovery_ms: 0 }";
    let setup = Setup::pair(&preferred, &alternate)
        .fallback("first_token_timeout_ms: 0")
        .fallback(aimd);
    let lb = Lb::start(&setup).await;
    (preferred, alternate, lb)
}

// [STREAM-19]
#[tokio::test]
async fn breaches_lower_the_share_and_a_lower_share_diverts_requests() {
    let (preferred, alternate, lb) = pair(Script::error(429)).await;
    assert_eq!(lb.pool().await["share"], 1.0);
    while lb.pool().await["share"] != 0.25 {
        assert!(lb.chat(true).await.text().contains("from alt"));
        assert!(
            preferred.requests().len() < 20,
            "each two breaches are a decrease"
        );
    }
    assert_eq!(
        lb.sum("lb_aimd_adjustments_total", &["direction=\"down\""]).await,
        2
    );
    let (asked, answered) = (preferred.requests().len(), alternate.requests().len());
    for _ in 0..40 {
        assert_eq!(lb.chat(true).await.status(), 200);
    }
    let asked = preferred.requests().len() - asked;
    assert!((8..=12).contains(&asked), "a quarter of 40 requests, not {asked}");
    assert_eq!(alternate.requests().len() - answered, 40);
}

// [STREAM-19]
#[tokio::test]
async fn healthy_first_tokens_raise_it_again() {
    let (preferred, _alternate, lb) = pair(Script::error(429)).await;
    while lb.pool().await["share"] != 0.25 {
        lb.chat(true).await;
    }
    preferred.otherwise(Script::streamed(&["back"]));
    let recovered = async |lb: &Lb| {
        lb.chat(true).await;
        lb.pool().await["share"] == 1.0
    };
    lb.eventually("the whole share", recovered).await;
    assert!(lb.chat(true).await.text().contains("back"));
}

// [STREAM-20]
#[tokio::test]
async fn only_streams_that_are_not_exempt_take_part() {
    let (preferred, _alternate, lb) = pair(Script::error(429)).await;
    for _ in 0..6 {
        lb.chat(false).await;
        lb.ask(post(
            "/v1/chat/completions",
            "x-lb-exempt: 1\r\n",
            chat_body("chat", true),
        ))
        .await;
        lb.ask(post(
            "/v1/chat/completions",
            "",
            r#"{"model":"chat","stream":"true"}"#,
        ))
        .await;
    }
    assert_eq!(
        preferred.requests().len(),
        18,
        "each begins at the preferred provider"
    );
    assert_eq!(lb.sum("lb_aimd_draws_total", &[]).await, 0);
    assert_eq!(lb.pool().await["share"], 1.0);
}

// [STREAM-19]
#[tokio::test]
async fn what_fails_without_being_an_overload_leaves_the_share_alone() {
    let (preferred, _alternate, lb) = pair(Script::silent()).await;
    for script in [
        // First, on a new connection: on a reused one it would be stale, and tried again.
        Script::silent().close(),
        Script::error(500),
        Script::error(502),
        Script::stream().end(),
    ] {
        preferred.next(script);
        assert!(lb.chat(true).await.text().contains("from alt"));
    }
    lb.idle().await;
    let pool = lb.pool().await;
    assert_eq!(
        (&pool["share"], &pool["window_samples"]),
        (&1.0.into(), &0.into())
    );
    assert_eq!(lb.sum("lb_aimd_samples_total", &["outcome=\"unknown\""]).await, 4);
}
