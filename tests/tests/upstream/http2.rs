//! HTTP/2 upstreams: sharing, refusals, retirement, cancellation.

use std::time::{Duration, Instant};

use h2::Reason;
use lb_tests::client::{End, Exchange, chat, get};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Signal, token};
use lb_tests::setup::Setup;

use super::origin::{Answer, Origin, Then, rest};

fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

fn whole(text: &str) -> Answer {
    Answer::Stream(vec![event(&token(text)), event("[DONE]")], None, Then::End)
}

async fn lb(origin: &Origin) -> Lb {
    let setup = Setup::new()
        .at("gpu", &[&format!("http://{}/v1", origin.address)])
        .provider("connections: { http_version: http2 }")
        .provider("retries: { max_attempts: 1 }");
    Lb::start(&setup).await
}

// [NET-28] field fault X1
#[tokio::test]
async fn requests_share_a_connection_and_carry_their_own_fields() {
    let origin = Origin::start(whole("ok"), None).await;
    let lb = lb(&origin).await;
    for _ in 0..5 {
        assert_eq!(lb.chat(true).await.end, End::Clean);
    }
    let seen = origin.seen();
    assert_eq!((seen.len(), origin.connections()), (5, 1));
    for seen in seen {
        assert_eq!(seen.headers["authorization"], "Bearer key-of-gpu");
        assert_eq!((seen.path.as_str(), seen.connection), ("/v1/chat/completions", 0));
        assert!(!seen.headers.contains_key("connection") && !seen.headers.contains_key("host"));
    }
}

// [NET-32] field fault C6
#[tokio::test]
async fn a_refused_stream_is_sent_again_at_once_and_at_no_cost() {
    let origin = Origin::start(whole("ok"), None).await;
    let lb = lb(&origin).await;
    assert_eq!(lb.chat(true).await.end, End::Clean);
    origin.next(Answer::Refuse(Reason::REFUSED_STREAM));
    let answer = lb.chat(true).await;
    assert_eq!((answer.status(), answer.end), (200, End::Clean));
    assert_eq!((origin.seen().len(), origin.connections()), (3, 2));
    assert_eq!(lb.sum("lb_attempts_total", &["outcome=\"refused\""]).await, 1);
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "healthy");
    // Also on a fresh connection: once, and then it is no better than any failure.
    origin.next(Answer::Refuse(Reason::REFUSED_STREAM));
    origin.next(Answer::Refuse(Reason::REFUSED_STREAM));
    assert_eq!(lb.chat(true).await.status(), 502);
    lb.idle().await;
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "healthy");
}

// [NET-30] field fault C6
#[tokio::test]
async fn a_stream_that_is_reset_before_its_head_is_a_failed_attempt_and_its_connection_is_kept() {
    let origin = Origin::start(whole("ok"), None).await;
    let lb = lb(&origin).await;
    for (number, reason) in [
        Reason::PROTOCOL_ERROR,
        Reason::INTERNAL_ERROR,
        Reason::CANCEL,
        Reason::ENHANCE_YOUR_CALM,
    ]
    .into_iter()
    .enumerate()
    {
        origin.next(Answer::Refuse(reason));
        let answer = lb.chat(true).await;
        assert_eq!(
            (answer.status(), answer.end),
            (502, End::Clean),
            "{reason:?}: there is no other target"
        );
        assert_eq!(lb.chat(true).await.status(), 200, "{reason:?}");
        assert_eq!(
            (origin.seen().len(), origin.connections()),
            (2 * number + 2, 1),
            "{reason:?}: asked once"
        );
    }
    lb.idle().await;
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "healthy");
}

// [NET-32]
#[tokio::test]
async fn a_goaway_lets_streams_finish_and_loses_no_request() {
    let origin = Origin::start(whole("ok"), None).await;
    let finish = Signal::new();
    origin.next(Answer::Stream(
        vec![event(&token("begun")), event("[DONE]")],
        None,
        Then::Wait(finish.clone()),
    ));
    let lb = lb(&origin).await;
    let mut open = lb.begin().await;
    assert_eq!(open.head().await.status, 200);
    open.until("begun").await;
    origin.leave(0);
    for _ in 0..10 {
        let answer = lb.chat(true).await;
        assert_eq!((answer.status(), answer.end), (200, End::Clean));
    }
    finish.fire();
    assert_eq!(rest(&mut open).await, End::Clean);
    assert_eq!(origin.connections(), 2);
    assert_eq!(lb.sum("lb_stream_failures_total", &[]).await, 0);
}

// [NET-11] [NET-30] field faults D1, D2
#[tokio::test]
async fn a_client_that_leaves_resets_its_stream_and_no_other() {
    let stalled = Answer::Stream(vec![event(&token("one"))], None, Then::Stall);
    let origin = Origin::start(stalled, None).await;
    let lb = lb(&origin).await;
    let mut stays = lb.begin().await;
    stays.head().await;
    stays.until("one").await;
    for waits in [false, true] {
        if waits {
            origin.next(Answer::Silence);
        }
        let before = origin.seen().len();
        let mut leaves = Exchange::begin(lb.data(), chat("chat", true)).await;
        if !waits {
            leaves.head().await;
            leaves.until("one").await;
        }
        origin
            .until("the request", |seen| (seen.len() > before).then_some(()))
            .await;
        let left = Instant::now();
        drop(leaves);
        let (at, reason) = origin.until("the reset", |seen| seen[before].reset).await;
        assert_eq!(reason, Reason::CANCEL);
        assert!(
            at - left < Duration::from_millis(100),
            "{:?} after the client",
            at - left
        );
    }
    assert!(origin.seen()[0].reset.is_none() && stays.nothing_yet());
    drop(stays);
    lb.idle().await;
    assert_eq!(origin.connections(), 1);
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "healthy");
}

// [NET-29]
#[tokio::test]
async fn a_client_that_does_not_read_stops_its_own_stream_only() {
    let origin = Origin::start(whole("ok"), None).await;
    let large = "x".repeat(1 << 20);
    let pieces = (0..32).map(|_| event(&large)).collect();
    origin.next(Answer::Stream(pieces, None, Then::Stall));
    let lb = lb(&origin).await;
    let mut stalled = lb.begin().await;
    assert_eq!(stalled.head().await.status, 200);
    for _ in 0..20 {
        let answer = lb.chat(true).await;
        assert_eq!((answer.status(), answer.end), (200, End::Clean));
    }
    assert_eq!(origin.connections(), 1);
    assert!(lb.resident_kib() < 100 * 1024, "{} KiB", lb.resident_kib());
}

// [NET-31] field fault C4
#[tokio::test]
async fn a_connection_that_timed_out_is_retired() {
    let origin = Origin::start(whole("ok"), None).await;
    let setup = Setup::new()
        .at("gpu", &[&format!("http://{}/v1", origin.address)])
        .provider("connections: { http_version: http2 }, timeouts: { read_ms: 1100 }");
    let lb = Lb::start(&setup).await;
    let finish = Signal::new();
    origin.next(Answer::Stream(
        vec![event(&token("one"))],
        None,
        Then::Wait(finish.clone()),
    ));
    let mut other = lb.begin().await;
    other.head().await;
    origin.next(Answer::Silence);
    assert_eq!(lb.chat(true).await.status(), 504);
    assert_eq!(lb.chat(true).await.status(), 200);
    let seen = origin.seen();
    assert_eq!(
        seen.iter().map(|seen| seen.connection).collect::<Vec<_>>(),
        [0, 0, 1]
    );
    finish.fire();
    assert_eq!(rest(&mut other).await, End::Clean, "the others finish");
}

#[tokio::test]
async fn what_is_not_a_model_call_goes_the_same_way() {
    let origin = Origin::start(whole("ok"), None).await;
    let lb = lb(&origin).await;
    let answer = lb.ask(get("/v1/files?model=chat")).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(origin.seen()[0].path, "/v1/files");
}
