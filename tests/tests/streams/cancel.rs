//! What a client's going does, in every phase of its request.

use std::time::{Duration, Instant};

use lb_tests::client::{Exchange, chat};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

/// How a client can leave.
#[derive(Debug, Clone, Copy)]
enum Leaving {
    Close,
    HalfClose,
    Reset,
}

const WAYS: [Leaving; 3] = [Leaving::Close, Leaving::HalfClose, Leaving::Reset];

async fn leave(mut exchange: Exchange, how: Leaving) -> Option<Exchange> {
    match how {
        Leaving::Close => None,
        Leaving::HalfClose => {
            exchange.half_close().await;
            Some(exchange)
        }
        Leaving::Reset => {
            exchange.reset();
            None
        }
    }
}

/// Lets `begin` bring a request to its phase, leaves, and expects the provider to learn of it in time and all slots
/// back. The machine may be busy with other tests, so the promise is held to the best of three tries of each way.
async fn cancelled(provider: &Provider, lb: &Lb, begin: impl AsyncFn() -> Exchange) {
    for how in WAYS {
        let mut quickest = Duration::MAX;
        for _ in 0..3 {
            let number = provider.requests().len();
            let exchange = begin().await;
            provider.request(number).await;
            let leaving = Instant::now();
            let kept = leave(exchange, how).await;
            quickest = quickest.min(provider.left(number).await.saturating_duration_since(leaving));
            lb.idle().await;
            drop(kept);
        }
        assert!(quickest < PROMISE, "{how:?}: closed after {quickest:?}");
    }
    assert_eq!(
        lb.endpoint("gpu", 0).await["state"],
        "healthy",
        "a client's going is nobody's failure"
    );
}

/// How soon after the client the upstream connection is gone.
const PROMISE: Duration = Duration::from_millis(100);

// field fault D2
// [STREAM-14]
#[tokio::test]
async fn while_waiting_for_the_head() {
    let provider = Provider::start(Script::silent().stall()).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    cancelled(&provider, &lb, async || lb.begin().await).await;
    let not_streaming = async || Exchange::begin(lb.data(), chat("chat", false)).await;
    cancelled(&provider, &lb, not_streaming).await;
}

// field fault D2
// [STREAM-14]
#[tokio::test]
async fn while_waiting_for_the_first_event() {
    let provider = Provider::start(Script::stream().bytes(": thinking\n\n").stall()).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    cancelled(&provider, &lb, async || lb.begin().await).await;
}

// field fault D1
// [STREAM-14]
#[tokio::test]
async fn while_streaming() {
    let provider = Provider::start(Script::stream().token("a").stall()).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let streaming = async || {
        let mut exchange = lb.begin().await;
        exchange.head().await;
        exchange.until("\"a\"").await;
        exchange
    };
    cancelled(&provider, &lb, streaming).await;
}

// [STREAM-14]
#[tokio::test]
async fn while_the_alternate_is_tried() {
    let preferred = Provider::start(Script::error(503)).await;
    let alternate = Provider::start(Script::silent().stall()).await;
    let lb = Lb::start(&Setup::pair(&preferred, &alternate)).await;
    cancelled(&alternate, &lb, async || lb.begin().await).await;
}

// [STREAM-14]
#[tokio::test]
async fn with_another_request_waiting_behind_it() {
    let provider = Provider::start(Script::silent().stall()).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let pipelined = async || {
        let both = [chat("chat", true), chat("chat", true)].concat();
        Exchange::begin(lb.data(), both).await
    };
    cancelled(&provider, &lb, pipelined).await;
}

// [STREAM-14]
#[tokio::test]
async fn a_cancellation_is_counted_and_unknown_to_the_share() {
    let preferred = Provider::start(Script::silent().stall()).await;
    let alternate = Provider::start(Script::streamed(&["ok"])).await;
    let lb = Lb::start(&Setup::pair(&preferred, &alternate)).await;
    let exchange = lb.begin().await;
    preferred.request(0).await;
    drop(exchange);
    lb.idle().await;
    assert_eq!(
        lb.sum("lb_client_cancellations_total", &["model=\"chat\""]).await,
        1
    );
    assert_eq!(lb.sum("lb_aimd_samples_total", &["outcome=\"unknown\""]).await, 1);
    assert_eq!(lb.pool().await["window_samples"], 0);
}

// field fault D4
// [STREAM-14]
#[tokio::test]
async fn a_cancelled_request_gives_its_place_back() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider).provider("concurrency: 1")).await;
    for number in 0..3 {
        provider.next(Script::silent().stall());
        let exchange = lb.begin().await;
        provider.request(3 * number).await;
        let refused = lb.chat(false).await;
        assert_eq!(
            (refused.status(), refused.code().as_str()),
            (429, "concurrency_limit_exceeded")
        );
        assert!(refused.head.header("retry-after").is_some());
        drop(exchange);
        lb.idle().await;
        for _ in 0..2 {
            assert_eq!(lb.chat(false).await.status(), 200);
        }
    }
}
