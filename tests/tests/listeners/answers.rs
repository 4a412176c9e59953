//! How answers over HTTP/1 end, and what becomes of their connections.

use std::io::ErrorKind;
use std::time::Duration;

use lb_tests::PATIENCE;
use lb_tests::client::{Exchange, chat_body, get, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Step};
use lb_tests::setup::Setup;
use rustix::process::Signal as Unix;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::start;

fn refused(length: usize, sent: &str) -> String {
    format!("POST /nowhere HTTP/1.1\r\nhost: lb.test\r\ncontent-length: {length}\r\n\r\n{sent}")
}

// [HTTP-58]
#[tokio::test]
async fn a_body_that_was_not_wanted_is_skipped_where_it_has_come() {
    let (_provider, lb) = start(Script::completion("ok"), &[]).await;
    let mut exchange = Exchange::begin(lb.data(), refused(4, "body")).await;
    for _ in 0..3 {
        let answer = exchange.answer().await;
        assert_eq!((answer.status(), answer.head.header("connection")), (404, None));
        exchange.again(refused(4, "body")).await;
    }
    assert_eq!(exchange.answer().await.status(), 404);
    exchange.again(get("/v1/models")).await;
    assert_eq!(exchange.answer().await.status(), 200);
}

// [HTTP-58]
#[tokio::test]
async fn a_body_that_was_not_wanted_and_still_comes_is_the_connections_last() {
    let (_provider, lb) = start(Script::completion("ok"), &[]).await;
    let mut exchange = Exchange::begin(lb.data(), refused(1_000_000, "a part")).await;
    let answer = exchange.answer().await;
    assert_eq!(
        (answer.status(), answer.head.header("connection")),
        (404, Some("close"))
    );
    // What follows is of that body, whatever it looks like.
    exchange.send(get("/v1/models")).await;
    assert!(exchange.closed().await);
    // Nobody told this client that its body is wanted, so it must not come either.
    let waits = refused(4, "").replacen("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n", 1);
    let mut exchange = Exchange::begin(lb.data(), waits).await;
    let answer = exchange.answer().await;
    assert_eq!(
        (answer.status(), answer.head.header("connection")),
        (404, Some("close"))
    );
    assert!(exchange.closed().await);
}

// [HTTP-49]
#[tokio::test]
async fn a_head_that_is_none_is_answered_as_every_refusal() {
    let (_provider, lb) = start(Script::completion("ok"), &[]).await;
    let long = "x".repeat(140_000);
    for (request, status, code) in [
        ("GET  / HTTP/1.1\r\n\r\n".to_owned(), 400, "bad_request"),
        ("GET / HTTP/1.1\r\nx : y\r\n\r\n".to_owned(), 400, "bad_request"),
        (format!("GET /{long} HTTP/1.1\r\n\r\n"), 414, "target_too_long"),
        (
            format!("GET / HTTP/1.1\r\nx: {long}\r\n\r\n"),
            431,
            "request_head_too_large",
        ),
    ] {
        let mut exchange = Exchange::begin(lb.data(), &request).await;
        let answer = exchange.answer().await;
        assert_eq!((answer.status(), answer.code().as_str()), (status, code));
        assert_eq!(answer.head.header("connection"), Some("close"));
        assert!(
            answer
                .head
                .header("x-request-id")
                .is_some_and(|id| id.len() == 36)
        );
        assert!(exchange.closed().await);
    }
    let refused = lb.metric("lb_refused_total{code=\"bad_request\"}").await;
    assert!((refused - 2.0).abs() < 0.1, "{refused}");
}

/// A client of HTTP/1.0 that has asked for a stream.
struct Old {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Old {
    async fn ask(lb: &Lb) -> Self {
        let mut stream = TcpStream::connect(lb.data()).await.expect("lb accepts");
        let request = post("/v1/chat/completions", "", chat_body("chat", true));
        let request = String::from_utf8(request)
            .expect("text")
            .replacen("HTTP/1.1", "HTTP/1.0", 1);
        stream.write_all(request.as_bytes()).await.expect("lb reads");
        let read = Vec::new();
        Self { stream, read }
    }

    /// Reads until this has come.
    async fn until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.read).contains(text) {
            let read = timeout(PATIENCE, self.stream.read_buf(&mut self.read)).await;
            assert!(matches!(read, Ok(Ok(1..))), "{read:?} before {text:?}");
        }
    }

    /// All that it gets, and whether it ended in order.
    async fn end(mut self) -> (String, Result<(), ErrorKind>) {
        let end = loop {
            match timeout(PATIENCE, self.stream.read_buf(&mut self.read))
                .await
                .expect("an end")
            {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error.kind()),
            }
        };
        (String::from_utf8_lossy(&self.read).into_owned(), end)
    }
}

// [HTTP-59]
#[tokio::test]
async fn a_client_of_http10_can_tell_a_cut_answer_from_a_whole_one() {
    let pause = Duration::from_millis(50);
    let whole = Script::stream()
        .token("a")
        .then(Step::Pause(pause))
        .token("b")
        .finish();
    let (provider, lb) = start(whole, &[]).await;
    let (answer, end) = Old::ask(&lb).await.end().await;
    assert!(answer.starts_with("HTTP/1.0 200 OK\r\n"), "{answer}");
    assert!(
        !answer.contains("transfer-encoding") && answer.contains("connection: close"),
        "{answer}"
    );
    assert!(answer.ends_with("data: [DONE]\n\n"), "{answer}");
    assert_eq!(end, Ok(()));
    provider.otherwise(
        Script::stream()
            .token("a")
            .then(Step::Pause(pause))
            .then(Step::Close),
    );
    let (answer, end) = Old::ask(&lb).await.end().await;
    assert!(answer.contains("\"a\"") && !answer.contains("[DONE]"), "{answer}");
    assert_eq!(end, Err(ErrorKind::ConnectionReset));
}

// [HTTP-59]
#[tokio::test]
async fn what_lb_itself_cuts_a_client_of_http10_can_tell_too() {
    let provider = Provider::start(Script::stream().token("a").stall()).await;
    // At the end of the drain, and by the second signal.
    for (limit, signals) in [(200, 1), (60_000, 2)] {
        let limit = format!("drain_timeout_ms: {limit}");
        let mut lb = Lb::start(&Setup::single(&provider).server(&limit)).await;
        let mut client = Old::ask(&lb).await;
        client.until("\"a\"").await;
        for _ in 0..signals {
            lb.signal(Unix::TERM);
            lb.logged(&["\"draining\""]).await;
        }
        let (answer, end) = client.end().await;
        assert!(answer.contains("\"a\""), "{answer}");
        assert_eq!(end, Err(ErrorKind::ConnectionReset), "{signals} signals");
        assert_eq!(lb.exit().await.code(), Some(0));
    }
}

// [HTTP-24] [HTTP-59]
#[tokio::test]
async fn a_client_of_http10_that_took_nothing_for_too_long_can_tell() {
    let piece = format!("8000\r\n{}\r\n", ":".repeat(0x8000));
    let endless = Script::stream()
        .token("a")
        .then(Step::Repeat(piece.into(), 10_000));
    let (provider, lb) = start(endless, &["write_timeout_ms: 300"]).await;
    let client = Old::ask(&lb).await;
    provider.left(0).await;
    let (answer, end) = client.end().await;
    assert!(answer.contains("\"a\""), "{}", answer.len());
    assert_eq!(end, Err(ErrorKind::ConnectionReset));
}
