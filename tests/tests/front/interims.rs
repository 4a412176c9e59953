//! Interim responses of providers.

use std::time::Duration;

use lb_tests::PATIENCE;
use lb_tests::client::{End, Exchange, chat, chat_body, get, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Signal, Step};
use lb_tests::setup::Setup;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::time::timeout;

use super::start;

const EARLY: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";
const BODY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";

/// All that comes until the final head, and its status.
async fn ahead(exchange: &mut Exchange) -> (String, u16) {
    let mut text = String::new();
    loop {
        let head = exchange.head().await;
        if head.status >= 200 {
            return (text, head.status);
        }
        text.push_str(&head.text);
    }
}

// HTTP checklist 29
// [HTTP-11]
#[tokio::test]
async fn an_interim_response_is_passed_on_at_once_without_what_is_for_one_hop() {
    let (provider, lb) = start(|setup| setup).await;
    let (more, last) = (Signal::new(), Signal::new());
    let first = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x-hop\r\nX-Hop: 1\r\n\
                 Keep-Alive: 1\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n";
    provider.next(
        Script::raw(first)
            .wait(&more)
            .bytes("HTTP/1.1 102 Processing\r\n\r\n")
            .wait(&last)
            .bytes(BODY),
    );
    let mut exchange = Exchange::begin(lb.data(), chat("chat", false)).await;
    assert_eq!(exchange.head().await.text, EARLY);
    assert!(exchange.nothing_yet());
    more.fire();
    assert_eq!(exchange.head().await.text, "HTTP/1.1 102 Processing\r\n\r\n");
    last.fire();
    assert_eq!(exchange.answer().await.text(), "{}");
    // The connection goes on, and the next answer has nothing of it.
    exchange.again(chat("chat", false)).await;
    assert_eq!(ahead(&mut exchange).await, (String::new(), 200));
}

// [HTTP-11]
#[tokio::test]
async fn interim_responses_stand_before_their_own_answer_however_the_bytes_come() {
    let (provider, lb) = start(|setup| setup).await;
    // In one piece with the answer, and to requests that were sent ahead.
    for _ in 0..3 {
        provider.next(Script::raw(format!("{EARLY}{EARLY}{BODY}")));
    }
    let mut exchange = Exchange::begin(lb.data(), chat("chat", false).repeat(3)).await;
    for _ in 0..3 {
        assert_eq!(ahead(&mut exchange).await, (EARLY.repeat(2), 200));
        assert_eq!(exchange.until("{}").await, b"{}");
        assert_eq!(exchange.piece().await.err(), Some(End::Clean));
    }
    // Behind the word that the body is wanted.
    provider.next(Script::raw(format!("{EARLY}{BODY}")));
    let body = chat_body("chat", false);
    let asking = post("/v1/chat/completions", "expect: 100-continue\r\n", &body);
    exchange.again(&asking[..asking.len() - body.len()]).await;
    assert_eq!(exchange.head().await.text, "HTTP/1.1 100 Continue\r\n\r\n");
    exchange.send(&body).await;
    assert_eq!(ahead(&mut exchange).await, (EARLY.to_owned(), 200));
}

// [HTTP-11]
#[tokio::test]
async fn a_client_of_http_1_0_is_told_nothing_ahead_of_its_answer() {
    let (provider, lb) = start(|setup| setup).await;
    provider.next(Script::raw(format!("{EARLY}{BODY}")));
    let body = chat_body("chat", false);
    let head = format!(
        "POST /v1/chat/completions HTTP/1.0\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut exchange = Exchange::begin(lb.data(), head + &body).await;
    assert_eq!(ahead(&mut exchange).await, (String::new(), 200));
}

// [HTTP-11]
#[tokio::test]
async fn an_interim_response_is_no_commit_and_moves_no_deadline() {
    let (gpu, alt) = (
        Provider::start(Script::raw(EARLY).stall()).await,
        Provider::start(Script::streamed(&["a"])).await,
    );
    let lb = Lb::start(&Setup::pair(&gpu, &alt).fallback("first_token_timeout_ms: 300")).await;
    let mut exchange = Exchange::begin(lb.data(), chat("chat", true)).await;
    assert_eq!(ahead(&mut exchange).await, (EARLY.to_owned(), 200));
    exchange.until("[DONE]").await;
    assert_eq!(lb.sum("lb_first_token_timeouts_total", &[]).await, 1);
    // An attempt that fails behind one goes on to the next target, whose own are passed on as well.
    gpu.otherwise(Script::raw(EARLY).close());
    alt.next(Script::raw(format!("{EARLY}{BODY}")));
    let mut exchange = Exchange::begin(lb.data(), chat("chat", false)).await;
    assert_eq!(ahead(&mut exchange).await, (EARLY.repeat(2), 200));
    lb.idle().await;
}

// [HTTP-11] [NET-4]
#[tokio::test]
async fn a_client_is_told_no_more_than_the_limit_over_all_attempts() {
    let (gpu, alt) = (
        Provider::start(Script::raw(EARLY.repeat(33)).stall()).await,
        Provider::start(Script::raw(format!("{EARLY}{BODY}"))).await,
    );
    let lb = Lb::start(&Setup::pair(&gpu, &alt)).await;
    let mut exchange = Exchange::begin(lb.data(), chat("chat", false)).await;
    assert_eq!(ahead(&mut exchange).await, (EARLY.repeat(32), 200));
}

// [HTTP-11] [ROUTE-13]
#[tokio::test]
async fn what_a_route_changes_in_answers_it_changes_in_interim_responses_too() {
    let route = "routes: [{ match: { path_prefix: / }, to: { provider: gpu }, \
                 response_headers: { remove: [link], set: { x-by: lb } } }]";
    let (provider, lb) = start(|setup| setup.section(route)).await;
    provider.next(Script::raw(format!("{EARLY}{BODY}")));
    let mut exchange = Exchange::begin(lb.data(), get("/page")).await;
    assert_eq!(
        ahead(&mut exchange).await.0,
        "HTTP/1.1 103 Early Hints\r\nx-by: lb\r\n\r\n"
    );
}

// [HTTP-11] [HTTP-24]
#[tokio::test]
async fn a_client_that_has_not_taken_an_interim_response_and_reads_again_is_not_cut() {
    const LENGTH: usize = 8_000_000;
    let limit = Duration::from_millis(600);
    let (provider, lb) = start(|setup| setup.listener("write_timeout_ms: 600")).await;
    // The first answer fills what the kernel holds for the client, the interim responses what is left of that.
    let length = LENGTH.to_string();
    provider.next(
        Script::head(200, &[("content-length", &length)]).then(Step::Repeat(vec![b'x'; 8000].into(), 1000)),
    );
    let hint = format!("HTTP/1.1 103 Early Hints\r\nlink: {}\r\n\r\n", "y".repeat(60_000));
    provider.next(
        Script::raw(hint.repeat(32))
            .then(Step::Pause(3 * limit))
            .bytes(BODY),
    );
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 * 1024).unwrap();
    let mut stream = socket.connect(lb.data()).await.unwrap();
    stream.write_all(&chat("chat", false).repeat(2)).await.unwrap();
    let mut read = Vec::new();
    while timeout(Duration::from_millis(20), provider.request(1))
        .await
        .is_err()
    {
        let more = stream.read_buf(&mut read).await.unwrap();
        assert!(more > 0, "an end after {} bytes", read.len());
        read.reserve(64 * 1024);
    }
    let cut = timeout(limit / 3, provider.left(1)).await;
    assert!(cut.is_err(), "cut before its time");
    while !read.ends_with(b"{}") {
        let more = timeout(PATIENCE, stream.read_buf(&mut read)).await;
        assert!(matches!(more, Ok(Ok(1..))), "{more:?} after {} bytes", read.len());
    }
    let text = String::from_utf8(read).unwrap();
    assert_eq!(text.matches(&hint).count(), 32);
}
