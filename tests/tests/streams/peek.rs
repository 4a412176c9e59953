//! What is withheld, until when.

use lb_tests::client::{End, Exchange};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Signal, Step, token};
use lb_tests::setup::Setup;

/// U1 with this script, an alternate that says "from alt", and what the test changes in between.
async fn pair(preferred: Script, change: impl FnOnce(Setup) -> Setup) -> (Provider, Provider, Lb) {
    let preferred = Provider::start(preferred).await;
    let alternate = Provider::start(Script::streamed(&["from alt"])).await;
    let lb = Lb::start(&change(Setup::pair(&preferred, &alternate))).await;
    (preferred, alternate, lb)
}

/// Expects the first token before the signal that lets the rest come.
async fn first_then_rest(exchange: &mut Exchange, first: &str, signal: &Signal) -> Vec<u8> {
    assert_eq!(exchange.head().await.status, 200);
    let mut body = exchange.until(first).await;
    signal.fire();
    body.extend(exchange.until("[DONE]").await);
    body
}

// [STREAM-1]
#[tokio::test]
async fn the_head_waits_for_the_first_data_and_what_was_withheld_comes_unchanged() {
    let (comment, first, rest) = (Signal::new(), Signal::new(), Signal::new());
    let script = Script::stream_with(&[("x-own", "1")])
        .bytes(": hello\n\n")
        .bytes("id: 1\n\n")
        .wait(&comment)
        .token("a")
        .wait(&first)
        .token("b")
        .wait(&rest)
        .finish();
    let (preferred, _alternate, lb) = pair(script, |setup| setup).await;
    let mut exchange = lb.begin().await;
    preferred.request(0).await;
    // Whatever lb would send for the comments, it would send it now; the state answers after it has had its turn.
    lb.state().await;
    assert!(exchange.nothing_yet());
    comment.fire();
    let head = exchange.head().await;
    assert_eq!((head.status, head.header("x-own")), (200, Some("1")));
    let mut body = exchange.until("\"a\"").await;
    first.fire();
    body.extend(exchange.until("\"b\"").await);
    let expected = format!(
        ": hello\n\nid: 1\n\ndata: {}\n\ndata: {}\n\n",
        token("a"),
        token("b")
    );
    assert_eq!(String::from_utf8(body).unwrap(), expected);
    rest.fire();
    exchange.until("[DONE]").await;
    assert_eq!(exchange.piece().await, Err(End::Clean));
}

// [STREAM-6]
#[tokio::test]
async fn a_preamble_alone_commits_after_its_own_wait_and_an_error_then_passes_on() {
    let preamble = "event: message_start\ndata: {\"type\":\"message_start\"}\n\n";
    let error = "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    let late = Signal::new();
    let script = Script::stream().bytes(preamble).wait(&late).bytes(error).end();
    let (_preferred, alternate, lb) =
        pair(script, |setup| setup.model("peek: { preamble_wait_ms: 50 }")).await;
    let mut exchange = lb.begin().await;
    assert_eq!(exchange.head().await.status, 200);
    let mut body = exchange.until("message_start\"}").await;
    late.fire();
    body.extend(exchange.until("overloaded_error").await);
    assert_eq!(alternate.requests().len(), 0, "committed: never another attempt");
    assert!(String::from_utf8(body).unwrap().starts_with(preamble));
}

// [STREAM-6]
#[tokio::test]
async fn with_past_preamble_off_the_first_event_commits() {
    let preamble = "event: message_start\ndata: {\"type\":\"message_start\"}\n\n";
    let error = "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    let script = Script::stream().bytes(preamble).bytes(error).end();
    let (_preferred, alternate, lb) =
        pair(script, |setup| setup.model("peek: { past_preamble: false }")).await;
    let answer = lb.chat(true).await;
    assert_eq!(
        (answer.status(), answer.text()),
        (200, format!("{preamble}{error}"))
    );
    assert_eq!(alternate.requests().len(), 0);
}

// [STREAM-7]
#[tokio::test]
async fn without_a_deadline_the_wait_after_the_head_is_bounded() {
    let late = Signal::new();
    let script = Script::stream()
        .bytes(": thinking\n\n")
        .wait(&late)
        .token("a")
        .finish();
    let provider = Provider::start(script).await;
    let lb = Lb::start(&Setup::single(&provider).model("peek: { max_wait_ms: 100 }")).await;
    first_then_rest(&mut lb.begin().await, ": thinking", &late).await;
}

// [STREAM-7]
#[tokio::test]
async fn what_is_withheld_is_bounded_in_bytes() {
    let (late, large) = (Signal::new(), format!(": {}\n\n", "x".repeat(4096)));
    let script = Script::stream()
        .bytes(large.clone())
        .wait(&late)
        .token("a")
        .finish();
    let (_preferred, alternate, lb) = pair(script, |setup| setup.model("peek: { max_bytes: 1024 }")).await;
    let body = first_then_rest(&mut lb.begin().await, "xxx", &late).await;
    assert!(body.starts_with(large.as_bytes()));
    assert_eq!(alternate.requests().len(), 0);
}

// [STREAM-8]
#[tokio::test]
async fn a_passthrough_model_passes_the_head_at_once_and_an_error_unchanged() {
    let late = Signal::new();
    let error = "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    let script = Script::stream().wait(&late).bytes(error).end();
    let (_preferred, alternate, lb) = pair(script, |setup| setup.model("stream_mode: passthrough")).await;
    let mut exchange = lb.begin().await;
    assert_eq!(exchange.head().await.status, 200);
    late.fire();
    assert_eq!(exchange.until("overloaded_error\"}}\n\n").await, error.as_bytes());
    assert_eq!(alternate.requests().len(), 0);
}

// [STREAM-8]
#[tokio::test]
async fn an_answer_that_is_no_stream_is_passed_at_once_and_piece_by_piece() {
    for streaming in [true, false] {
        let late = Signal::new();
        let script = Script::head(
            200,
            &[("content-type", "application/json"), ("content-length", "12")],
        )
        .bytes("{\"half\"")
        .wait(&late)
        .bytes(":\"1\"}");
        let (_preferred, _alternate, lb) = pair(script, |setup| setup).await;
        let mut exchange = Exchange::begin(lb.data(), lb_tests::client::chat("chat", streaming)).await;
        assert_eq!(exchange.head().await.header("content-length"), Some("12"));
        exchange.until("{\"half\"").await;
        late.fire();
        exchange.until("}").await;
        assert_eq!(exchange.piece().await, Err(End::Clean));
    }
}

// [STREAM-8]
#[tokio::test]
async fn each_event_reaches_the_client_as_it_comes() {
    let signals: Vec<_> = (0..20).map(|_| Signal::new()).collect();
    let script = signals
        .iter()
        .enumerate()
        .fold(Script::stream(), |script, (number, signal)| {
            script.token(&format!("t{number}.")).wait(signal)
        });
    let (_preferred, _alternate, lb) = pair(script.finish(), |setup| setup).await;
    let mut exchange = lb.begin().await;
    exchange.head().await;
    for (number, signal) in signals.iter().enumerate() {
        exchange.until(&format!("t{number}.")).await;
        signal.fire();
    }
    exchange.until("[DONE]").await;
}

// [STREAM-15]
#[tokio::test]
async fn an_answer_delimited_by_the_close_ends_cleanly_with_it() {
    let script = Script::head(200, &[("content-type", "text/event-stream")])
        .bytes(format!("data: {}\n\ndata: [DONE]\n\n", token("a")))
        .then(Step::Close);
    let (_preferred, alternate, lb) = pair(script, |setup| setup).await;
    let answer = lb.chat(true).await;
    assert_eq!((answer.status(), answer.end), (200, End::Clean));
    assert!(answer.text().ends_with("data: [DONE]\n\n"));
    assert_eq!(alternate.requests().len(), 0);
}
