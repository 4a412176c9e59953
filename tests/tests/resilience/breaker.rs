//! The circuit breaker: a whole provider is left alone.

use lb_tests::client::Exchange;
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Signal};
use lb_tests::setup::Setup;

use super::{provider, said};

/// Failures in a row that open the breaker here.
const RUN: usize = 3;

fn with_breaker(setup: Setup, more: &str) -> Setup {
    setup
        .provider(&format!(
            "circuit_breaker: {{ consecutive_failures: {RUN}{more} }}"
        ))
        .provider("health: { enabled: false }")
}

async fn alone(more: &str, script: Script) -> (Provider, Lb) {
    let gpu = Provider::start(script).await;
    let setup = with_breaker(Setup::single(&gpu), more).provider("retries: { max_attempts: 1 }");
    let lb = Lb::start(&setup).await;
    (gpu, lb)
}

async fn gauge(lb: &Lb, provider: &str) -> u64 {
    lb.sum("lb_breaker_state", &[&format!("provider=\"{provider}\"")])
        .await
}

async fn state(lb: &Lb) -> String {
    let state = provider(lb, "gpu").await["breaker"]["state"].clone();
    state.as_str().expect("a word").to_owned()
}

/// Fails until nothing is sent any more.
async fn open(lb: &Lb) {
    for _ in 0..RUN {
        assert_eq!(lb.chat(false).await.status(), 500);
    }
    assert_eq!(state(lb).await, "open");
}

// [BREAKER-2] [BREAKER-8]
#[tokio::test]
async fn after_a_run_of_failures_a_provider_is_left_alone_and_the_next_one_answers() {
    let (gpu, alt) = (
        Provider::start(Script::error(500)).await,
        Provider::start(Script::completion("alt")).await,
    );
    let lb = Lb::start(&with_breaker(Setup::pair(&gpu, &alt), "")).await;
    for _ in 0..RUN + 2 {
        assert_eq!(said(&lb).await, "alt");
    }
    assert_eq!(gpu.requests().len(), RUN);
    assert_eq!(alt.requests().len(), RUN + 2);
    let breaker = provider(&lb, "gpu").await["breaker"].clone();
    assert_eq!(
        (&breaker["state"], &breaker["cause"]),
        (&"open".into(), &"consecutive_failures".into())
    );
    assert_eq!(gauge(&lb, "gpu").await, 1);
    assert_eq!(gauge(&lb, "alt").await, 0);
    lb.logged(&["\"breaker changed\"", "\"gpu\"", "\"open\""]).await;
    assert_eq!(lb.count(&["\"breaker changed\"", "\"gpu\"", "\"open\""]), 1);
}

// [BREAKER-8] field fault R2
#[tokio::test]
async fn where_no_provider_is_left_the_client_is_told_when_to_come_back() {
    let (gpu, lb) = alone("", Script::error(500)).await;
    open(&lb).await;
    let refused = lb.chat(false).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (503, "no_provider_available")
    );
    let seconds: u64 = refused
        .head
        .header("retry-after")
        .and_then(|value| value.parse().ok())
        .expect("whole seconds");
    // open_ms is 30 s, and this test is faster than the rest of it.
    assert!((20..=30).contains(&seconds), "{seconds}");
    assert_eq!(gpu.requests().len(), RUN);
    lb.idle().await;
}

// [BREAKER-4] field fault K5
#[tokio::test]
async fn it_closes_by_itself_once_its_probes_have_succeeded() {
    let (gpu, lb) = alone(", open_ms: 100, half_open_probes: 2", Script::error(500)).await;
    open(&lb).await;
    gpu.otherwise(Script::completion("back"));
    lb.eventually("a first probe", async |lb| lb.chat(false).await.status() == 200)
        .await;
    assert_eq!(state(&lb).await, "half_open");
    assert_eq!(gauge(&lb, "gpu").await, 2);
    assert_eq!(said(&lb).await, "back");
    assert_eq!(state(&lb).await, "closed");
    assert_eq!(provider(&lb, "gpu").await["breaker"]["window_volume"], 0);
}

// [BREAKER-4]
#[tokio::test]
async fn a_probe_that_fails_opens_it_again() {
    let (gpu, lb) = alone(", open_ms: 100", Script::error(500)).await;
    open(&lb).await;
    lb.eventually("a probe", async |lb| lb.chat(false).await.status() == 500)
        .await;
    let breaker = provider(&lb, "gpu").await["breaker"].clone();
    assert_eq!(breaker["cause"], "half_open_failure");
    assert_eq!(gpu.requests().len(), RUN + 1);
}

// [BREAKER-4] [BREAKER-5] field fault K6
#[tokio::test]
async fn a_probe_holds_its_place_until_it_ends_and_leaves_it_when_its_client_does() {
    let (gpu, lb) = alone(", open_ms: 100, half_open_probes: 1", Script::error(500)).await;
    open(&lb).await;
    gpu.otherwise(Script::silent().stall());
    lb.eventually("the time to be up", async |lb| state(lb).await == "half_open")
        .await;
    let probe = lb.begin().await;
    gpu.request(RUN).await;
    let refused = lb.chat(false).await;
    assert_eq!(
        (refused.status(), refused.head.header("retry-after")),
        (503, Some("1"))
    );
    drop(probe);
    gpu.otherwise(Script::completion("back"));
    lb.eventually("another probe to get through", async |lb| {
        lb.chat(false).await.status() == 200
    })
    .await;
    assert_eq!(state(&lb).await, "closed");
    lb.idle().await;
}

// [BREAKER-3]
#[tokio::test]
async fn what_was_sent_before_it_opened_changes_nothing() {
    let (gpu, lb) = alone("", Script::error(500)).await;
    let late = Signal::new();
    gpu.next(Script::silent().wait(&late).bytes(whole("late")));
    let mut early = Exchange::begin(lb.data(), lb_tests::client::chat("chat", false)).await;
    gpu.request(0).await;
    for _ in 0..RUN {
        assert_eq!(lb.chat(false).await.status(), 500);
    }
    late.fire();
    assert_eq!(early.head().await.status, 200);
    assert_eq!(state(&lb).await, "open");
}

fn whole(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len())
}

// [OUTCOME-9]
#[tokio::test]
async fn one_request_adds_one_server_error_however_often_it_was_tried() {
    let (a, b) = (
        Provider::start(Script::error(500)).await,
        Provider::start(Script::error(500)).await,
    );
    let lb = Lb::start(&Setup::new().at("gpu", &[&a.url(), &b.url()])).await;
    assert_eq!(lb.chat(false).await.status(), 500);
    assert_eq!((a.requests().len(), b.requests().len()), (1, 1));
    assert_eq!(provider(&lb, "gpu").await["breaker"]["consecutive_failures"], 1);
}

// [BREAKER-7] [RELOAD-16]
#[tokio::test]
async fn a_reload_keeps_it_by_the_providers_name_and_switching_it_off_forgets() {
    let (gpu, lb) = alone("", Script::error(500)).await;
    open(&lb).await;
    let setup = |member: &str| {
        let setup = Setup::single(&gpu)
            .provider(member)
            .provider("health: { enabled: false }");
        setup.provider("retries: { max_attempts: 1 }").text()
    };
    let reload = async |text: &str| {
        lb.write(text);
        assert_eq!(lb.reload().await.status(), 200);
    };
    reload(&setup("concurrency: 7")).await;
    assert_eq!(state(&lb).await, "open");
    reload(&setup("circuit_breaker: { enabled: false }")).await;
    assert!(provider(&lb, "gpu").await["breaker"].is_null());
    assert_eq!(gauge(&lb, "gpu").await, 0);
    reload(&setup("concurrency: 7")).await;
    assert_eq!(state(&lb).await, "closed");
}

// [BREAKER-10]
#[tokio::test]
async fn the_death_of_an_endpoint_is_one_failure_however_many_streams_it_takes_along() {
    let die = Signal::new();
    let gpu = Provider::start(Script::stream().token("a").wait(&die).close()).await;
    let setup = Setup::single(&gpu)
        .provider(&format!("circuit_breaker: {{ consecutive_failures: {RUN} }}"))
        .provider("health: { consecutive_failures: 2 }");
    let lb = Lb::start(&setup).await;
    let mut streams = Vec::new();
    for _ in 0..10 * RUN {
        let mut stream = lb.begin().await;
        stream.head().await;
        stream.until("\"a\"").await;
        streams.push(stream);
    }
    die.fire();
    for mut stream in streams {
        while stream.piece().await.is_ok() {}
    }
    lb.idle().await;
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "ejected");
    assert_eq!(state(&lb).await, "closed");
}
