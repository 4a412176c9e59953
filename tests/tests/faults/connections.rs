//! Connections that break, and endpoints that leave.

use std::time::{Duration, Instant};

use lb_tests::client::End;
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Refusing, Script};
use lb_tests::setup::Setup;

/// The labels of the preferred provider's attempts that ended like this.
async fn attempts(lb: &Lb, outcome: &str) -> u64 {
    let outcome = format!("outcome=\"{outcome}\"");
    lb.sum("lb_attempts_total", &["provider=\"gpu\"", &outcome]).await
}

// field fault C3
#[tokio::test]
async fn what_was_not_sent_and_what_was_not_answered_go_on_and_what_was_answered_in_part_never_does() {
    let preferred = Provider::start(Script::error(500)).await;
    let alternate = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::pair(&preferred, &alternate)).await;
    // Sent and not answered: a reset and a close behind the whole request.
    for (number, script) in [Script::silent().reset(), Script::silent().close()]
        .into_iter()
        .enumerate()
    {
        preferred.next(script);
        assert_eq!(lb.chat(false).await.status(), 200);
        assert_eq!(alternate.requests().len(), number + 1);
        assert_eq!(preferred.requests().len(), number + 1, "once, not twice");
    }
    // Answered in part: what has begun is the answer, and nobody else is asked.
    let part = Script::head(
        200,
        &[("content-type", "application/json"), ("content-length", "99")],
    )
    .bytes("{\"half\":")
    .pause(50)
    .reset();
    preferred.next(part);
    let answer = lb.chat(false).await;
    assert_eq!((answer.status(), answer.end), (200, End::Cut));
    assert_eq!((preferred.requests().len(), alternate.requests().len()), (3, 2));
    // Not sent: nobody listens.
    let refusing = Refusing::new();
    let lb = Lb::start(&Setup::refused(&refusing, &alternate)).await;
    assert_eq!(lb.chat(false).await.status(), 200);
    assert_eq!(alternate.requests().len(), 3);
    assert_eq!(attempts(&lb, "connect").await, 1);
}

/// Two endpoints, of which a reload removes the one that a request waits at.
async fn leaving(preferred: &Provider, alternate: &Provider) -> Lb {
    let setup = Setup::pair(preferred, alternate)
        .provider("health: { enabled: false }")
        .fallback("first_token_timeout_ms: 1500")
        .fallback("aimd: { latency_budget_ms: 1000 }");
    let other = Refusing::new();
    let lb = Lb::start(&setup).await;
    let left = setup.text().replacen(&preferred.url(), &other.url(), 1);
    let waiting = lb.begin().await;
    preferred.request(0).await;
    lb.write(&left);
    assert_eq!(lb.reload().await.status(), 200);
    // The client of before leaves: heard of at once.
    let gone = Instant::now();
    drop(waiting);
    assert!(preferred.left(0).await.saturating_duration_since(gone) < Duration::from_secs(1));
    lb.idle().await;
    lb.write(&setup.text());
    assert_eq!(lb.reload().await.status(), 200);
    lb
}

/// The specification has a removed endpoint's requests drain, so an attempt without a byte keeps its own deadline.
// field fault D5
#[tokio::test]
async fn a_request_that_waits_at_an_endpoint_that_leaves_is_bounded_by_its_own_deadline_and_its_clients_going()
 {
    let preferred = Provider::start(Script::silent().stall()).await;
    let alternate = Provider::start(Script::streamed(&["ok"])).await;
    let lb = leaving(&preferred, &alternate).await;
    let begun = Instant::now();
    let mut waiting = lb.begin().await;
    preferred.request(1).await;
    let text = std::fs::read_to_string(lb.folder().path().join("lb.yaml")).unwrap();
    let other = Refusing::new();
    lb.write(&text.replacen(&preferred.url(), &other.url(), 1));
    assert_eq!(lb.reload().await.status(), 200);
    let answer = waiting.answer().await;
    assert_eq!((answer.status(), answer.end), (200, End::Clean));
    assert!(answer.text().contains("\"ok\""));
    assert!(
        begun.elapsed() >= Duration::from_millis(1500),
        "the deadline, not before"
    );
    preferred.left(1).await;
    lb.idle().await;
}
