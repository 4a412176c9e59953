//! First-token and idle timeouts. The timers are short and real; nothing else here waits.

use std::time::Duration;

use lb_tests::client::End;
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

/// Two providers under a first-token deadline of 300 ms.
async fn pair(preferred: Script, alternate: Script) -> (Provider, Provider, Lb) {
    let (preferred, alternate) = (Provider::start(preferred).await, Provider::start(alternate).await);
    let lb = Lb::start(&short_deadline(Setup::pair(&preferred, &alternate))).await;
    (preferred, alternate, lb)
}

fn short_deadline(setup: Setup) -> Setup {
    setup
        .fallback("first_token_timeout_ms: 300")
        .fallback("aimd: { latency_budget_ms: 200 }")
}

// field faults T2, T3
// [STREAM-9]
#[tokio::test]
async fn silence_after_the_head_falls_under_the_same_deadline_as_silence_before_it() {
    let (preferred, _alternate, lb) = pair(Script::silent(), Script::streamed(&["ok"])).await;
    let silences = [
        Script::silent().stall(),
        Script::stream().stall(),
        Script::stream().bytes("data: {\"half").stall(),
        Script::silent()
            .pause(200)
            .streams()
            .pause(200)
            .token("late")
            .stall(),
    ];
    for silence in silences {
        preferred.next(silence.clone());
        let answer = lb.chat(true).await;
        assert_eq!((answer.status(), answer.end), (200, End::Clean), "{silence:?}");
        assert!(
            answer.text().contains("\"ok\"") && !answer.text().contains("late"),
            "{silence:?}"
        );
        let first = answer.pieces[0].0;
        assert!(
            first >= Duration::from_millis(300),
            "cut after {first:?}, before the deadline: {silence:?}"
        );
    }
    for request in 0..4 {
        preferred.left(request).await;
    }
    lb.idle().await;
    let timeouts = lb
        .sum(
            "lb_first_token_timeouts_total",
            &["model=\"chat\"", "role=\"preferred\""],
        )
        .await;
    assert_eq!(timeouts, 4);
    assert_eq!(lb.sum("lb_aimd_samples_total", &["outcome=\"breach\""]).await, 4);
}

// field fault T2
// [STREAM-9]
#[tokio::test]
async fn comments_do_not_move_the_deadline() {
    let mut chatter = Script::stream();
    for _ in 0..20 {
        chatter = chatter.bytes(": still thinking\n\n").pause(50);
    }
    let (_preferred, alternate, lb) = pair(chatter.token("late").stall(), Script::streamed(&["ok"])).await;
    let answer = lb.chat(true).await;
    assert!(answer.text().contains("\"ok\"") && !answer.text().contains("thinking"));
    assert_eq!(alternate.requests().len(), 1);
}

// field fault T2
// [STREAM-9]
#[tokio::test]
async fn every_attempt_but_the_last_has_a_deadline() {
    let slow = || Script::silent().pause(600).streams().token("slow").finish();
    let providers = [
        Provider::start(slow()).await,
        Provider::start(slow()).await,
        Provider::start(slow()).await,
    ];
    let [first, second, third] = &providers;
    let setup = Setup::new()
        .at("a", &[&first.url()])
        .at("b", &[&second.url()])
        .at("c", &[&third.url()]);
    let lb = Lb::start(&short_deadline(setup)).await;
    let answer = lb.chat(true).await;
    assert_eq!((answer.status(), answer.end), (200, End::Clean));
    assert!(answer.text().contains("slow"), "the last one may take its time");
    assert_eq!(
        providers.each_ref().map(|provider| provider.requests().len()),
        [1, 1, 1]
    );
}

// [STREAM-9]
#[tokio::test]
async fn a_single_provider_and_an_exempt_request_have_no_deadline() {
    let slow = Script::silent().pause(600).streams().token("slow").finish();
    let single = Provider::start(slow.clone()).await;
    let lb = Lb::start(&short_deadline(Setup::single(&single))).await;
    assert!(lb.chat(true).await.text().contains("slow"));

    let (_preferred, alternate, lb) = pair(slow, Script::streamed(&["ok"])).await;
    let body = lb_tests::client::chat_body("chat", true);
    let exempt = lb_tests::client::post("/v1/chat/completions", "x-lb-exempt: \r\n", body);
    assert!(lb.ask(exempt).await.text().contains("slow"));
    assert_eq!(alternate.requests().len(), 0);
    assert_eq!(
        lb.sum("lb_aimd_draws_total", &[]).await,
        0,
        "an exempt request takes no part in the share"
    );
}

// field fault T4
// [STREAM-10] [STREAM-18]
#[tokio::test]
async fn silence_after_the_first_token_ends_the_stream_and_frees_its_slot() {
    let preferred = Provider::start(Script::stream().token("a").stall()).await;
    let alternate = Provider::start(Script::streamed(&["ok"])).await;
    let setup = Setup::pair(&preferred, &alternate).section("failover: { stream_idle_timeout_ms: 300 }");
    let lb = Lb::start(&setup).await;
    let answer = lb.chat(true).await;
    assert_eq!((answer.status(), answer.end), (200, End::Cut));
    assert!(answer.text().contains("\"a\"") && !answer.text().contains("[DONE]"));
    preferred.left(0).await;
    assert_eq!(alternate.requests().len(), 0, "no failover after the commit");
    lb.idle().await;
}

// field fault T5
// [STREAM-11]
#[tokio::test]
async fn a_healthy_stream_outlives_every_timer_that_ends_at_its_commit() {
    let tokens = (0..15).fold(Script::stream(), |script, n| {
        script.token(&format!("t{n}")).pause(80)
    });
    let preferred = Provider::start(tokens.finish()).await;
    let alternate = Provider::start(Script::streamed(&["ok"])).await;
    let setup = short_deadline(Setup::pair(&preferred, &alternate))
        .provider("timeouts: { read_ms: 400 }")
        .section("failover: { stream_idle_timeout_ms: 400 }");
    let lb = Lb::start(&setup).await;
    let answer = lb.chat(true).await;
    assert_eq!(answer.end, End::Clean);
    assert!(answer.text().contains("t14") && answer.text().ends_with("data: [DONE]\n\n"));
    assert!(
        answer.pieces.last().unwrap().0 > Duration::from_secs(1),
        "longer than any of the timers"
    );
}

// [STREAM-10]
#[tokio::test]
async fn the_head_of_an_answer_that_is_not_streamed_has_a_timer_of_its_own() {
    let preferred = Provider::start(Script::silent().stall()).await;
    let alternate = Provider::start(Script::completion("ok")).await;
    let setup = Setup::pair(&preferred, &alternate).provider("timeouts: { read_ms: 300 }");
    let lb = Lb::start(&setup).await;
    let answer = lb.chat(false).await;
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "ok");
    preferred.left(0).await;
}

// field fault T8
#[tokio::test]
async fn the_first_token_is_the_first_whole_data_event_or_where_asked_the_first_content() {
    let role = r#"{"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}"#;
    let script = Script::stream().data(role).pause(600).token("slow").finish();
    let (_preferred, alternate, lb) = pair(script.clone(), Script::streamed(&["ok"])).await;
    assert!(
        lb.chat(true).await.text().contains("slow"),
        "a role delta is data"
    );
    assert_eq!(alternate.requests().len(), 0);
    lb.idle().await;
    assert_eq!(
        lb.sum("lb_first_token_seconds_count", &["role=\"preferred\""])
            .await,
        1
    );

    let (preferred, alternate) = (
        Provider::start(script).await,
        Provider::start(Script::streamed(&["ok"])).await,
    );
    let lb =
        Lb::start(&short_deadline(Setup::pair(&preferred, &alternate)).model("first_token: content")).await;
    assert!(
        lb.chat(true).await.text().contains("\"ok\""),
        "a role delta is not content"
    );
}

// field fault T8
#[tokio::test]
async fn a_fragment_of_an_event_is_not_a_first_token() {
    let fragments = Script::stream()
        .bytes("data: {\"a\":\n")
        .bytes("data: 1\n")
        .bytes("data: }\n")
        .stall();
    let (_preferred, _alternate, lb) = pair(fragments, Script::streamed(&["ok"])).await;
    assert!(lb.chat(true).await.text().contains("\"ok\""));
}
