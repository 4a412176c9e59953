//! What lb itself says in a provider's stream.

use std::time::Duration;

use lb_tests::client::End;
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Step, token};
use lb_tests::setup::Setup;

async fn start(model: &[&str]) -> (Provider, Lb) {
    let provider = Provider::start(Script::silent()).await;
    let setup = Setup::single(&provider)
        .provider("health: { enabled: false }")
        .section("failover: { stream_idle_timeout_ms: 1000 }");
    let lb = Lb::start(&model.iter().fold(setup, |setup, member| setup.model(member))).await;
    (provider, lb)
}

fn event(text: &str) -> String {
    format!("data: {}\n\n", token(text))
}

fn error(message: &str, code: &str) -> String {
    format!(
        "data: {{\"error\":{{\"message\":\"{message}\",\"type\":\"server_error\",\"param\":null,\"code\":\"{code}\"}}}}\n\n"
    )
}

// [INSERT-1]
#[tokio::test]
async fn a_broken_stream_says_so_between_two_events_and_ends_abnormally_all_the_same() {
    let (provider, lb) = start(&["stream_error_event: true"]).await;
    let broke = error("the provider's stream broke off", "upstream_error");
    let silent = error("the provider's stream fell silent", "upstream_timeout");
    let sized = Script::head(
        200,
        &[("content-type", "text/event-stream"), ("content-length", "9999")],
    );
    let cases = [
        (Script::stream().token("a").close(), &broke),
        (Script::stream().token("a").pause(50).reset(), &broke),
        (
            Script::stream()
                .token("a")
                .then(Step::Send("zz\r\n".into()))
                .stall(),
            &broke,
        ),
        (sized.bytes(event("a")).close(), &broke),
        (Script::stream().token("a").stall(), &silent),
    ];
    for (script, said) in cases {
        provider.next(script.clone());
        let answer = lb.chat(true).await;
        assert_eq!((answer.status(), answer.end), (200, End::Cut), "{script:?}");
        assert_eq!(answer.text(), format!("{}{said}", event("a")), "{script:?}");
        assert_eq!(answer.head.header("content-length"), None);
    }
}

// [INSERT-1]
#[tokio::test]
async fn nothing_is_said_inside_an_event_after_another_error_or_after_the_end() {
    let (provider, lb) = start(&["stream_error_event: true"]).await;
    let told = "data: {\"error\":{\"code\":500}}\n\n";
    let cases = [
        (event("a"), "data: {\"half".to_owned()),
        (event("a"), "data: whole\n".to_owned()),
        (event("a"), told.to_owned()),
        (event("a"), "data: [DONE]\n\n".to_owned()),
    ];
    for (first, second) in cases {
        provider.next(
            Script::stream()
                .bytes(first.clone())
                .bytes(second.clone())
                .close(),
        );
        let answer = lb.chat(true).await;
        assert_eq!(
            (answer.end, answer.text()),
            (End::Cut, format!("{first}{second}"))
        );
    }
    // A clean end is no failure, and what is no event stream, or cannot be read, is left alone.
    provider.next(Script::stream().token("a").end());
    let answer = lb.chat(true).await;
    assert_eq!((answer.end, answer.text()), (End::Clean, event("a")));
    let encoded = Script::stream_with(&[("content-encoding", "br")])
        .bytes("xyz")
        .close();
    let json = Script::head(
        200,
        &[("content-type", "application/json"), ("content-length", "9")],
    );
    for script in [encoded, json.bytes("xyz").close()] {
        provider.next(script);
        let answer = lb.chat(true).await;
        assert_eq!((answer.end, answer.text().as_str()), (End::Cut, "xyz"));
    }
}

// [INSERT-1]
#[tokio::test]
async fn without_the_setting_nothing_is_said() {
    let (provider, lb) = start(&[]).await;
    provider.next(Script::stream().token("a").close());
    let answer = lb.chat(true).await;
    assert_eq!((answer.end, answer.text()), (End::Cut, event("a")));
}

// [INSERT-2]
#[tokio::test]
async fn a_silent_stream_is_kept_alive_by_comments_that_do_not_move_its_idle_timer() {
    let (provider, lb) = start(&["sse_keepalive_ms: 100"]).await;
    provider.next(Script::stream().token("a").pause(350).token("b").stall());
    let answer = lb.chat(true).await;
    assert_eq!(answer.end, End::Cut, "silence is silence");
    let text = answer.text();
    let (before, after) = text.split_once(&event("b")).expect("both tokens");
    let before = before
        .strip_prefix(&event("a"))
        .expect("nothing before the first token");
    let comments = |text: &str| {
        assert_eq!(text.replace(": x\n", ""), "", "only comments: {text}");
        text.len() / ": x\n".len()
    };
    // The gap is 350 ms, and the idle timer 1000 ms.
    assert!((1..=3).contains(&comments(before)), "{text}");
    assert!((5..=10).contains(&comments(after)), "{text}");
    let total = answer.pieces.last().unwrap().0;
    assert!(total < Duration::from_secs(3), "{total:?}");
}

// [INSERT-2] [NAME-2]
#[tokio::test]
async fn comments_do_not_wait_where_the_model_is_renamed() {
    let (provider, lb) = start(&["sse_keepalive_ms: 50", "rewrite_response_model: true"]).await;
    provider.next(Script::stream().token("a").stall());
    let mut stream = lb.begin().await;
    stream.head().await;
    stream.until(": x\n: x\n").await;
}

// [INSERT-2]
#[tokio::test]
async fn a_comment_never_goes_into_an_event_before_the_commit_or_into_what_cannot_be_read() {
    let (provider, lb) = start(&["sse_keepalive_ms: 50"]).await;
    let cases = [
        Script::stream()
            .token("a")
            .bytes("data: {\"half")
            .pause(300)
            .bytes("\"}\n\n")
            .end(),
        Script::stream().pause(300).token("a").end(),
        Script::stream_with(&[("content-encoding", "gzip")])
            .bytes("xyz")
            .pause(300)
            .end(),
    ];
    for script in cases {
        provider.next(script.clone());
        let answer = lb.chat(true).await;
        assert!(
            answer.end == End::Clean && !answer.text().contains(": x"),
            "{script:?}: {}",
            answer.text()
        );
    }
    let json = Script::head(
        200,
        &[("content-type", "application/json"), ("content-length", "2")],
    );
    provider.next(json.bytes("{").pause(300).bytes("}"));
    assert_eq!(lb.chat(false).await.text(), "{}");
}
