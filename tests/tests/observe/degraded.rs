//! What the fields of a response say of how it came about.

use lb_tests::client::{End, ask, chat};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Refusing, Script, token};
use lb_tests::setup::Setup;

/// A preset whose own model fails, and a fallback that answers.
async fn start(notice: &str, reveal: &str) -> (Provider, Provider, Lb) {
    let first = Provider::start(Script::error(503)).await;
    let spare = Provider::start(Script::streamed(&["ok"])).await;
    let text = Setup::single(&first)
        .model(&format!("notice: {notice}"))
        .server(&format!("reveal: {reveal}"))
        .text();
    let text = text.replace(
        "models:\n",
        &format!(
            "  spare: {{ endpoints: [{{ name: spare-0, url: \"{}\" }}] }}\nmodels:\n  small: {{ targets: [{{ provider: spare, \
             upstream_model: small-model }}] }}\n",
            spare.url()
        ),
    );
    // Nothing cools down, so that each request begins at the preset's own model.
    let presets = "failover: { cooldown_ms: 0 }\npresets:\n  assistant: { model: chat, fallbacks: [assistant-fast] }\n  assistant-fast: { model: small }\n";
    let lb = Lb::with(&format!("{text}{presets}")).await;
    (first, spare, lb)
}

// [NOTICE-1]
#[tokio::test]
async fn an_answer_by_a_fallback_says_so_and_by_whom_only_where_that_is_revealed() {
    for (notice, told) in [("header", Some("1")), ("comment", Some("1")), ("none", None)] {
        let (first, _spare, lb) = start(notice, "none").await;
        let answer = ask(lb.data(), chat("assistant", true)).await;
        assert_eq!(answer.head.header("x-lb-degraded"), told, "{notice}");
        assert_eq!(
            answer.head.text.matches("x-lb-").count(),
            usize::from(told.is_some())
        );
        let comment = answer.text().starts_with(": lb degraded\n\ndata: ");
        assert_eq!(comment, notice == "comment", "{notice}: {}", answer.text());
        assert_eq!(answer.text().matches("lb degraded").count(), usize::from(comment));
        let line = super::line(&lb, 0).await;
        assert_eq!(
            (&line["model"], &line["preset"]),
            (&"small".into(), &"assistant".into())
        );
        assert_eq!(line["bytes_out"], answer.body.len());
        // The preset's own model is nobody's fallback.
        first.otherwise(Script::streamed(&["well"]));
        let answer = ask(lb.data(), chat("assistant", true)).await;
        assert!(!answer.head.text.contains("x-lb-") && !answer.text().contains("lb degraded"));
    }
}

// [NOTICE-2]
#[tokio::test]
async fn a_comment_is_put_before_the_first_frame_and_never_before_a_byte_order_mark() {
    let (_first, spare, lb) = start("comment", "none").await;
    let marked = format!("\u{feff}data: {}\n\n", token("a"));
    spare.next(Script::stream().bytes(marked.clone()).finish());
    let answer = ask(lb.data(), chat("assistant", true)).await;
    assert!(answer.text().starts_with(&marked), "{}", answer.text());
    assert_eq!(answer.head.header("x-lb-degraded"), Some("1"));
    spare.next(Script::completion("ok"));
    let answer = ask(lb.data(), chat("assistant", false)).await;
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "ok");
}

// [NOTICE-2] [STREAM-12]
#[tokio::test]
async fn a_length_that_has_no_room_for_the_comment_is_no_length() {
    let (_first, spare, lb) = start("comment", "none").await;
    let endless = [
        ("content-type", "text/event-stream"),
        ("content-length", "18446744073709551615"),
    ];
    spare.next(Script::head(200, &endless).token("a").close());
    let answer = ask(lb.data(), chat("assistant", true)).await;
    let head = &answer.head;
    assert_eq!(
        (head.header("content-length"), head.header("transfer-encoding")),
        (None, Some("chunked"))
    );
    let event = format!("data: {}\n\n", token("a"));
    assert_eq!(
        (answer.end, answer.text()),
        (End::Cut, format!(": lb degraded\n\n{event}"))
    );
}

// [STREAM-26] [NOTICE-3]
#[tokio::test]
async fn all_of_it_is_told_where_everything_is_revealed() {
    let (first, _spare, lb) = start("header", "endpoint").await;
    let answer = ask(lb.data(), chat("assistant", true)).await;
    let names = [
        "provider", "endpoint", "model", "attempts", "fallback", "degraded",
    ];
    let told = names.map(|name| answer.head.header(&format!("x-lb-{name}")));
    let expected = ["spare", "spare-0", "small-model", "2", "assistant-fast", "1"];
    assert_eq!(told, expected.map(Some));
    let timing = answer.head.header("server-timing").unwrap();
    let (queue, ttft) = timing.split_once(", ").unwrap();
    let ms = |text: &str, name: &str| -> f64 { text.strip_prefix(name).unwrap().parse().unwrap() };
    assert!(ms(queue, "queue;dur=") <= ms(ttft, "ttft;dur="), "{timing}");
    first.otherwise(Script::completion("ok"));
    let answer = ask(lb.data(), chat("assistant", false)).await;
    assert_eq!(answer.head.header("x-lb-fallback"), None);
    assert!(
        answer
            .head
            .header("server-timing")
            .unwrap()
            .starts_with("queue;dur=")
    );
}

// [NOTICE-4]
#[tokio::test]
async fn a_client_is_told_not_to_retry_only_what_lb_has_tried_twice_and_gives_no_time_for() {
    let (one, two) = (Refusing::new(), Refusing::new());
    let setup = Setup::new().at("gpu", &[&one.url()]).at("alt", &[&two.url()]);
    let setup = setup.provider("retries: { max_attempts: 1 }");
    let lb = Lb::start(&setup.server("reveal: provider")).await;
    let answer = lb.chat(false).await;
    assert_eq!(
        (answer.status(), answer.head.header("x-should-retry")),
        (502, Some("false"))
    );
    assert_eq!(answer.head.header("x-lb-attempts"), Some("2"));

    let busy = Provider::start(Script::error(503)).await;
    let lb = Lb::start(&Setup::refused(&one, &busy)).await;
    let answer = lb.chat(false).await;
    assert_eq!(
        (answer.status(), answer.head.header("x-should-retry")),
        (503, None),
        "a provider's own answer"
    );

    let once = Setup::new().at("gpu", &[&one.url()]);
    let lb = Lb::start(&once.provider("retries: { max_attempts: 1 }")).await;
    let answer = lb.chat(false).await;
    assert_eq!(
        (answer.status(), answer.head.header("x-should-retry")),
        (502, None),
        "tried once"
    );

    let lb = Lb::start(
        &Setup::new()
            .at("gpu", &[&one.url()])
            .provider("health: { fail_open: false, consecutive_failures: 1 }"),
    )
    .await;
    lb.chat(false).await;
    let answer = lb.chat(false).await;
    assert_eq!(
        (answer.status(), answer.head.header("x-should-retry")),
        (503, None)
    );
    assert!(answer.head.header("retry-after").is_some());
}
