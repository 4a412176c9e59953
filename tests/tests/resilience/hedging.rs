//! Hedging: a second attempt beside one that is slow.

use lb_tests::client::{Exchange, chat, chat_body, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Signal};
use lb_tests::setup::Setup;
use serde_json::json;

use super::{provider, retries, said};

const PATH: &str = "/v1/chat/completions";

/// A provider of two endpoints, the first of which is asked first, with these retries; and `alt` behind it.
async fn replicas(first: Script, second: Script, settings: &str) -> ([Provider; 2], Provider, Lb) {
    changed(first, second, settings, |setup| setup).await
}

async fn changed(
    first: Script,
    second: Script,
    settings: &str,
    change: impl FnOnce(Setup) -> Setup,
) -> ([Provider; 2], Provider, Lb) {
    let gpu = [Provider::start(first).await, Provider::start(second).await];
    let alt = Provider::start(Script::completion("alt")).await;
    let setup = Setup::new()
        .at("gpu", &[&gpu[0].url(), &gpu[1].url()])
        .at("alt", &[&alt.url()])
        .provider("balance: round_robin")
        .provider(&format!("retries: {{ {settings} }}"));
    let lb = Lb::start(&change(setup)).await;
    (gpu, alt, lb)
}

async fn hedges(lb: &Lb, outcome: &str) -> u64 {
    let label = format!("outcome=\"{outcome}\"");
    lb.sum("lb_hedges_total", &["provider=\"gpu\"", &label]).await
}

async fn attempts(lb: &Lb, outcome: &str) -> u64 {
    let label = format!("outcome=\"{outcome}\"");
    lb.sum("lb_attempts_total", &["provider=\"gpu\"", &label]).await
}

// [HEDGE-1] [HEDGE-3] [HEDGE-5]
#[tokio::test]
async fn beside_a_silent_attempt_another_endpoint_is_asked_and_what_answers_first_is_the_answer() {
    let (gpu, alt, lb) = replicas(
        Script::silent().stall(),
        Script::completion("gpu"),
        "hedge_after_ms: 30",
    )
    .await;
    assert_eq!(said(&lb).await, "gpu");
    gpu[0].left(0).await;
    assert_eq!((gpu[0].requests().len(), gpu[1].requests().len()), (1, 1));
    assert!(alt.requests().is_empty());
    assert_eq!(gpu[0].requests()[0].body, gpu[1].requests()[0].body);
    assert_eq!((hedges(&lb, "won").await, retries(&lb, "sent").await), (1, 0));
    assert_eq!((attempts(&lb, "outrun").await, attempts(&lb, "ok").await), (1, 1));
    lb.idle().await;
    // The one that was cut is nothing to anyone, and the other was paid for.
    let state = provider(&lb, "gpu").await;
    assert_eq!(
        state["retries"],
        json!({"window_requests": 1, "window_retries": 1, "allowed": true, "hedge_after_ms": 30.0})
    );
    assert_eq!(state["breaker"]["window_failures"], 0);
    assert_eq!(state["breaker"]["window_volume"], 1);
    lb.logged(&["\"hedging\"", "gpu-1"]).await;
    assert_eq!(lb.count(&["\"hedging\"", "gpu-1"]), 1);
}

// [HEDGE-3]
#[tokio::test]
async fn where_the_first_answers_after_all_its_hedge_is_cut() {
    let signal = Signal::new();
    let slow = Script::silent().wait(&signal).bytes(raw_completion("first"));
    let (gpu, _alt, lb) = replicas(slow, Script::silent().stall(), "hedge_after_ms: 30").await;
    let mut asking = Exchange::begin(lb.data(), chat("chat", false)).await;
    gpu[1].request(0).await;
    signal.fire();
    let answer = asking.answer().await;
    assert!(answer.text().contains("first"));
    gpu[1].left(0).await;
    assert_eq!((hedges(&lb, "lost").await, attempts(&lb, "outrun").await), (1, 1));
    lb.idle().await;
}

/// The bytes of a whole completion.
fn raw_completion(text: &str) -> Vec<u8> {
    let body = json!({"choices": [{"message": {"content": text}}]}).to_string();
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into()
}

// [HEDGE-4]
#[tokio::test]
async fn when_one_of_the_two_fails_the_other_goes_on_whichever_it_is() {
    for status in [500, 503, 429] {
        let signal = Signal::new();
        let slow = Script::silent().wait(&signal).bytes(raw_completion("first"));
        let (gpu, alt, lb) = replicas(slow, Script::error(status), "hedge_after_ms: 30").await;
        let mut asking = Exchange::begin(lb.data(), chat("chat", false)).await;
        gpu[1].request(0).await;
        lb.eventually("the hedge to have failed", async |lb| {
            hedges(lb, "failed").await == 1
        })
        .await;
        signal.fire();
        assert!(asking.answer().await.text().contains("first"), "{status}");
        assert!(alt.requests().is_empty());
        lb.idle().await;
    }
    let signal = Signal::new();
    let slow = Script::silent().wait(&signal).bytes(raw_completion("second"));
    let failing = Script::silent().wait(&signal).reset();
    let (gpu, alt, lb) = replicas(failing, Script::silent(), "hedge_after_ms: 30").await;
    let answered = Signal::new();
    gpu[1].otherwise(slow.clone().wait(&answered));
    let mut asking = Exchange::begin(lb.data(), chat("chat", false)).await;
    gpu[1].request(0).await;
    signal.fire();
    assert!(asking.answer().await.text().contains("second"));
    assert!(alt.requests().is_empty());
    answered.fire();
    lb.idle().await;
}

// [HEDGE-4]
#[tokio::test]
async fn the_next_target_is_asked_once_both_have_failed_and_not_before() {
    let signal = Signal::new();
    let slow = Script::silent().wait(&signal).reset();
    let (gpu, alt, lb) = replicas(slow, Script::error(500), "hedge_after_ms: 30").await;
    let mut asking = Exchange::begin(lb.data(), chat("chat", false)).await;
    gpu[1].request(0).await;
    lb.eventually("the hedge to have failed", async |lb| {
        hedges(lb, "failed").await == 1
    })
    .await;
    assert!(alt.requests().is_empty() && asking.nothing_yet());
    signal.fire();
    assert!(asking.answer().await.text().contains("alt"));
    assert_eq!((gpu[0].requests().len(), gpu[1].requests().len()), (1, 1));
    assert_eq!(lb.sum("lb_failovers_total", &[]).await, 1);
    lb.idle().await;
}

// [HEDGE-4]
#[tokio::test]
async fn an_answer_that_no_other_try_could_mend_is_the_answer_of_both() {
    let (gpu, _alt, lb) = replicas(Script::silent().stall(), Script::error(400), "hedge_after_ms: 30").await;
    assert_eq!(lb.chat(false).await.status(), 400);
    gpu[0].left(0).await;
    lb.idle().await;
}

// [HEDGE-2]
#[tokio::test]
async fn what_may_not_be_sent_twice_is_not_hedged() {
    let slow = || Script::silent().pause(100).bytes(raw_completion("slow"));
    let preset = |setup: Setup| {
        setup
            .server("replay_bytes: 1000")
            .section("presets: { quick: { model: chat } }")
    };
    let (gpu, _alt, lb) = changed(slow(), slow(), "hedge_after_ms: 10", preset).await;
    let long = json!({"model": "chat", "x": "y".repeat(3000)}).to_string();
    let requests = [
        post("/v1/images/generations", "", chat_body("chat", false)),
        post("/v1/responses", "", r#"{"model":"chat","store":true}"#),
        post(PATH, "x-lb-exempt: 1\r\n", chat_body("chat", false)),
        post(PATH, "", chat_body("quick", false)),
        post(PATH, "", long),
    ];
    for (asked, request) in requests.iter().enumerate() {
        assert!(lb.ask(request).await.text().contains("slow"));
        assert_eq!(gpu[0].requests().len() + gpu[1].requests().len(), asked + 1);
    }
    assert_eq!(lb.sum("lb_hedges_total", &[]).await, 0);
    let upgrade =
        "GET /v1/realtime?model=chat HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    assert!(lb.ask(upgrade).await.text().contains("slow"));
    assert_eq!(lb.sum("lb_hedges_total", &[]).await, 0);
    // And what may be, is.
    lb.chat(false).await;
    assert_eq!(hedges(&lb, "won").await + hedges(&lb, "lost").await, 1);
}

// [HEDGE-5]
#[tokio::test]
async fn without_budget_room_or_tries_the_first_attempt_goes_on_alone() {
    let slow = || Script::silent().pause(100).bytes(raw_completion("slow"));
    for (settings, more, outcome) in [
        (
            "hedge_after_ms: 10, budget_percent: 0, budget_min_per_window: 0",
            "",
            "budget",
        ),
        ("hedge_after_ms: 10", "concurrency: 1", "room"),
        ("hedge_after_ms: 10, max_attempts: 1", "", "room"),
    ] {
        let tries = usize::from(!settings.contains("max_attempts"));
        let limited = |setup: Setup| {
            if more.is_empty() {
                setup
            } else {
                setup.provider(more)
            }
        };
        let (gpu, _alt, lb) = changed(slow(), slow(), settings, limited).await;
        assert_eq!(said(&lb).await, "slow", "{settings}");
        assert_eq!((gpu[0].requests().len(), gpu[1].requests().len()), (1, 0));
        assert_eq!(hedges(&lb, outcome).await, tries as u64, "{settings} {more}");
        let budget = provider(&lb, "gpu").await["retries"]["window_retries"].clone();
        assert_eq!(budget, 0, "what was not sent is not paid for");
    }
}

// [HEDGE-1]
#[tokio::test]
async fn a_stream_is_hedged_until_it_has_said_something_and_never_after() {
    // A head is no commit: a strict stream waits for its first event.
    let (gpu, _alt, lb) = replicas(
        Script::stream().stall(),
        Script::streamed(&["gpu"]),
        "hedge_after_ms: 30",
    )
    .await;
    let strict = lb.chat(true).await;
    assert!(strict.text().contains("gpu") && strict.text().ends_with("data: [DONE]\n\n"));
    gpu[0].left(0).await;
    lb.idle().await;
    let long = Script::stream().token("one").pause(1300).token("two").finish();
    let (gpu, _alt, lb) = replicas(long, Script::streamed(&["gpu"]), "hedge_after_ms: 1000").await;
    assert!(lb.chat(true).await.text().contains("two"));
    assert!(gpu[1].requests().is_empty());
    assert_eq!(lb.sum("lb_hedges_total", &[]).await, 0);
}

// [HEDGE-3]
#[tokio::test]
async fn the_share_hears_of_the_original_alone() {
    let samples = async |lb: &Lb, outcome: &str| {
        let label = format!("outcome=\"{outcome}\"");
        lb.sum("lb_aimd_samples_total", &[&label]).await
    };
    let (_gpu, _alt, lb) = replicas(
        Script::silent().stall(),
        Script::streamed(&["gpu"]),
        "hedge_after_ms: 30",
    )
    .await;
    assert!(lb.chat(true).await.text().contains("gpu"));
    assert_eq!(
        (samples(&lb, "healthy").await, samples(&lb, "unknown").await),
        (0, 1)
    );
    lb.idle().await;
    let signal = Signal::new();
    let slow = Script::silent().wait(&signal).streams().token("first").finish();
    let (gpu, _alt, lb) = replicas(slow, Script::error(503), "hedge_after_ms: 30").await;
    let mut asking = lb.begin().await;
    gpu[1].request(0).await;
    lb.eventually("the hedge to have failed", async |lb| {
        hedges(lb, "failed").await == 1
    })
    .await;
    signal.fire();
    assert!(asking.answer().await.text().contains("first"));
    assert_eq!(
        (samples(&lb, "healthy").await, samples(&lb, "breach").await),
        (1, 0)
    );
    lb.idle().await;
}

// [HEDGE-6]
#[tokio::test]
async fn a_client_that_leaves_ends_both() {
    let (gpu, _alt, lb) = replicas(
        Script::silent().stall(),
        Script::silent().stall(),
        "hedge_after_ms: 30",
    )
    .await;
    let asking = lb.begin().await;
    gpu[1].request(0).await;
    drop(asking);
    gpu[0].left(0).await;
    gpu[1].left(0).await;
    lb.idle().await;
    assert_eq!(
        (hedges(&lb, "cancelled").await, attempts(&lb, "cancelled").await),
        (1, 2)
    );
}

// [HEDGE-6]
#[tokio::test]
async fn a_total_deadline_ends_both() {
    let settings = "hedge_after_ms: 30, total_deadline_ms: 400";
    let silent = || Script::silent().stall();
    let (gpu, _alt, lb) = replicas(silent(), silent(), settings).await;
    assert_eq!(said(&lb).await, "alt", "the visit is over, the request is not");
    gpu[0].left(0).await;
    gpu[1].left(0).await;
    assert_eq!(
        (hedges(&lb, "cancelled").await, attempts(&lb, "timeout").await),
        (1, 2)
    );
    lb.idle().await;
}

// [HEDGE-7]
#[tokio::test]
async fn the_line_of_the_request_tells_both_and_names_the_one_that_answered() {
    let signal = Signal::new();
    let slow = Script::silent().wait(&signal).bytes(raw_completion("first"));
    let (gpu, _alt, lb) = replicas(slow, Script::silent().stall(), "hedge_after_ms: 30").await;
    let mut asking = Exchange::begin(lb.data(), chat("chat", false)).await;
    gpu[1].request(0).await;
    signal.fire();
    asking.answer().await;
    let line = lb.logged(&["\"bytes_out\"", "\"outrun\""]).await;
    let line: serde_json::Value = serde_json::from_str(&line).expect("a line of JSON");
    assert_eq!(line["endpoint"], "gpu-0");
    let told = |n: usize| ["endpoint", "outcome"].map(|key| line["attempts"][n][key].clone());
    assert_eq!(
        (told(0), told(1)),
        (
            ["gpu-0", "ok"].map(Into::into),
            ["gpu-1", "outrun"].map(Into::into)
        )
    );
}
