//! HTTP/1.1 as clients and upstreams may send it, good and bad. Numbers are those of the HTTP checklist.

#![cfg(test)]

use std::time::Duration;

use lb_tests::client::{End, Exchange, chat_body, get, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

async fn start() -> (Provider, Lb) {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    (provider, lb)
}

/// A chat request with this request line and these header lines, its length and body as they should be.
fn request(line: &str, headers: &str) -> String {
    let body = chat_body("chat", false);
    format!("{line}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

/// A chat request with this way of telling its length.
fn framed(framing: &str, body: &str) -> String {
    format!("POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\n{framing}\r\n\r\n{body}")
}

const LINE: &str = "POST /v1/chat/completions HTTP/1.1";

/// Sends each request and expects one of these statuses, a closed connection, and nothing upstream.
async fn refused(requests: &[String], statuses: &[u16]) {
    let (provider, lb) = start().await;
    let mut wrong = Vec::new();
    for request in requests {
        let mut exchange = Exchange::begin(lb.data(), request).await;
        let status = exchange.try_head().await.map(|head| head.status);
        if !status.is_some_and(|status| statuses.contains(&status)) {
            wrong.push(format!("{status:?} for {request:?}"));
            continue;
        }
        while exchange.piece().await.is_ok() {}
        if tokio::time::timeout(SOON, exchange.closed()).await.is_err() {
            wrong.push(format!("{status:?} and an open connection for {request:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(provider.requests().len(), 0);
    assert_eq!(lb.chat(false).await.status(), 200, "and lb goes on");
}

/// How soon a refused connection is closed.
const SOON: Duration = Duration::from_secs(2);

// HTTP checklist 2, 3
// [HTTP-1]
#[tokio::test]
async fn a_request_line_that_is_none_is_refused() {
    let lines = [
        "POST  /v1/chat/completions HTTP/1.1",
        "POST\t/v1/chat/completions HTTP/1.1",
        "POST /v1/chat/completions  HTTP/1.1",
        "POST /v1/chat/completions HTTP/1.1 ",
        "POST /v1/chat/completions HTTP/2.0",
        "POST /v1/chat/completions HTTQ/1.1",
        "P(ST /v1/chat/completions HTTP/1.1",
    ];
    refused(&lines.map(|line| request(line, "host: a\r\n")), &[400, 505]).await;
}

// HTTP checklist 5
// [HTTP-1]
#[tokio::test]
async fn a_target_that_is_no_path_is_refused() {
    let lines = [
        "POST v1/chat/completions HTTP/1.1",
        "GET * HTTP/1.1",
        "CONNECT a:80 HTTP/1.1",
        "TRACE /v1/models HTTP/1.1",
        "POST /v1/chat/\u{7f}completions HTTP/1.1",
        "POST /v1/chat/\0completions HTTP/1.1",
    ];
    refused(&lines.map(|line| request(line, "host: a\r\n")), &[400, 405, 501]).await;
}

// HTTP checklist 7
// [HTTP-2]
#[tokio::test]
async fn a_request_without_exactly_one_valid_host_is_refused() {
    let hosts = [
        "",
        "host: a\r\nhost: a\r\n",
        "host: a b\r\n",
        "host: u@a\r\n",
        "host: a,b\r\n",
        "host: a/b\r\n",
        "host: a:b\r\n",
    ];
    refused(&hosts.map(|host| request(LINE, host)), &[400]).await;
}

// HTTP checklist 8, 9, 10
// [HTTP-3]
#[tokio::test]
async fn a_field_that_is_none_is_refused() {
    let fields = [
        "host: a\r\nx-a : 1\r\n",
        "host: a\r\n: 1\r\n",
        "host: a\r\nno colon\r\n",
        "host: a\r\nx-a: 1\r\n folded\r\n",
        "host: a\r\nx-a: 1\0\r\n",
        "host: a\r\nx-a: 1\r2\r\n",
        "host: a\r\nx(a: 1\r\n",
        " host: a\r\n",
    ];
    refused(&fields.map(|fields| request(LINE, fields)), &[400]).await;
}

// HTTP checklist 13, 14
// [HTTP-4]
#[tokio::test]
async fn a_length_that_two_readers_could_read_in_two_ways_is_refused() {
    let framings = [
        "content-length: +5",
        "content-length: -5",
        "content-length: 0x5",
        "content-length: 5 5",
        "content-length: 99999999999999999999999",
        "content-length: 5\r\ncontent-length: 6",
        "content-length: 5, 6",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "transfer-encoding: xchunked",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: chunked, gzip",
        "transfer-encoding: \"chunked\"",
        "transfer-encoding: ,chunked",
        "transfer-encoding: \x0bchunked",
    ];
    refused(
        &framings.map(|framing| framed(framing, "5\r\nhello\r\n0\r\n\r\n")),
        &[400, 501],
    )
    .await;
    let old = "POST /v1/chat/completions HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    refused(&[old.to_owned()], &[400]).await;
}

// HTTP checklist 15, 16
// [HTTP-5]
#[tokio::test]
async fn bad_chunking_is_refused_and_no_upstream_sees_it_as_complete() {
    let bodies = [
        "0x5\r\nhello\r\n0\r\n\r\n",
        "-5\r\nhello\r\n0\r\n\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
        "5 5\r\nhello\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        "5\r\nhelloX\r\n0\r\n\r\n",
        "\r\nhello\r\n0\r\n\r\n",
        " 5\r\nhello\r\n0\r\n\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\rhello\r\n0\r\n\r\n",
        "5;a\nhello\r\n0\r\n\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "5\r\nhell\r\n0\r\n\r\n",
        "5\r\nhello\r\n0\n\r\n",
        "5\r\nhello\r\n0\r\n\rX",
    ];
    refused(
        &bodies.map(|body| framed("transfer-encoding: chunked", body)),
        &[400],
    )
    .await;
}

// HTTP checklist 14
// [HTTP-4]
#[tokio::test]
async fn with_both_a_coding_and_a_length_the_coding_counts_and_the_connection_ends() {
    let (provider, lb) = start().await;
    let body = chat_body("chat", false);
    let both = framed(
        "content-length: 3\r\ntransfer-encoding: chunked",
        &format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
    );
    let mut exchange = Exchange::begin(lb.data(), both).await;
    let answer = exchange.answer().await;
    if answer.status() == 200 {
        let sent = provider.request(0).await;
        assert_eq!(sent.all("content-length"), [sent.body.len().to_string()]);
        assert_eq!(sent.header("transfer-encoding"), None);
    } else {
        assert_eq!(answer.status(), 400);
    }
    assert!(exchange.closed().await);
}

// HTTP checklist 6, 12
// [HTTP-6]
#[tokio::test]
async fn long_targets_and_heads_pass_up_to_a_limit_and_are_refused_past_it() {
    let (provider, lb) = start().await;
    let long = format!("/v1/chat/completions?a={}", "x".repeat(8000));
    assert_eq!(
        lb.ask(post(&long, "", chat_body("chat", false))).await.status(),
        200
    );
    assert_eq!(provider.request(0).await.line().1, long);
    let huge = format!("/v1/chat/completions?a={}", "x".repeat(70_000));
    let status = lb.ask(post(&huge, "", chat_body("chat", false))).await.status();
    // hyper says 431 where the head is too long for its buffer, of which the target is a part.
    assert!([414, 431].contains(&status), "{status}");
    let many = "x-again: 1\r\n".repeat(1000);
    assert_eq!(
        lb.ask(post("/v1/chat/completions", &many, chat_body("chat", false)))
            .await
            .status(),
        431
    );
    let wide = format!("x-wide: {}\r\n", "x".repeat(1 << 20));
    assert_eq!(
        lb.ask(post("/v1/chat/completions", &wide, chat_body("chat", false)))
            .await
            .status(),
        431
    );
}

// HTTP checklist 4, 11, 18
// [HTTP-7]
#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let (provider, lb) = start().await;
    for text in ["first", "second"] {
        provider.next(Script::completion(text));
    }
    let good = post("/v1/chat/completions", "", chat_body("chat", false));
    let both = [b"\r\n".as_slice(), &good, &good, b"nonsense\r\n\r\n"].concat();
    let mut exchange = Exchange::begin(lb.data(), both).await;
    for text in ["first", "second"] {
        assert_eq!(
            exchange.answer().await.json()["choices"][0]["message"]["content"],
            text
        );
    }
    assert_eq!(exchange.answer().await.status(), 400);
    assert!(exchange.closed().await);
}

// HTTP checklist 19
// [HTTP-8]
#[tokio::test]
async fn continue_is_said_by_lb_once_the_body_is_wanted_and_expected_of_nobody_else() {
    let (provider, lb) = start().await;
    let body = chat_body("chat", false);
    let head = format!(
        "{LINE}\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut exchange = Exchange::begin(lb.data(), head).await;
    assert_eq!(exchange.head().await.status, 100);
    exchange.again(body).await;
    assert_eq!(exchange.answer().await.status(), 200);
    assert_eq!(provider.request(0).await.header("expect"), None);
}

// HTTP checklist 23
// [HTTP-9]
#[tokio::test]
async fn an_upgrade_with_a_body_is_refused() {
    let fields = [
        "connection: upgrade\r\nupgrade: websocket\r\n",
        "connection: upgrade\r\nupgrade: h2c\r\n",
    ];
    refused(
        &fields.map(|fields| request(LINE, &format!("host: a\r\n{fields}"))),
        &[400],
    )
    .await;
}

// HTTP checklist 27
// [HTTP-10]
#[tokio::test]
async fn where_a_request_came_from_is_said_by_lb() {
    let (provider, lb) = start().await;
    let lies = "x-forwarded-for: 9.9.9.9\r\nx-forwarded-proto: https\r\nx-forwarded-host: b\r\nforwarded: for=9.9.9.9\r\n\
                x-lb-provider: other\r\n";
    lb.ask(post("/v1/chat/completions", lies, chat_body("chat", false)))
        .await;
    let request = provider.request(0).await;
    assert_eq!(request.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(request.all("x-forwarded-proto"), ["http"]);
    assert_eq!(request.all("x-forwarded-host"), ["lb.test"]);
    assert!(!request.head.contains("9.9.9.9") && !request.head.contains("x-lb-provider"));

    let trusting = Lb::start(&Setup::single(&provider).server("trusted_proxies: [\"127.0.0.0/8\"]")).await;
    let true_words = "x-forwarded-for: 9.9.9.9\r\nx-forwarded-proto: https\r\nx-request-id: theirs\r\n";
    let answer = trusting
        .ask(post("/v1/chat/completions", true_words, chat_body("chat", false)))
        .await;
    let request = provider.request(1).await;
    assert_eq!(request.all("x-forwarded-for"), ["9.9.9.9, 127.0.0.1"]);
    assert_eq!(request.all("x-forwarded-proto"), ["https"]);
    assert_eq!(answer.head.header("x-request-id"), Some("theirs"));
}

// HTTP checklist 31, 35, 24
// [HTTP-11]
#[tokio::test]
async fn an_upstreams_malformed_response_is_answered_for() {
    let heads = [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(1 << 20)),
        "nonsense\r\n\r\n".to_owned(),
    ];
    let (preferred, alternate) = (
        Provider::start(Script::silent()).await,
        Provider::start(Script::completion("ok")).await,
    );
    let lb = Lb::start(&Setup::pair(&preferred, &alternate)).await;
    for head in heads {
        preferred.next(Script::raw(head.clone()).close());
        let answer = lb.chat(false).await;
        assert_eq!(answer.status(), 200, "{head:.80}");
        assert_eq!(answer.json()["choices"][0]["message"]["content"], "ok");
    }
}

// HTTP checklist 29, 34
// [HTTP-11]
#[tokio::test]
async fn interim_responses_are_passed_over_and_trailers_do_no_harm() {
    let (provider, lb) = start().await;
    provider.next(Script::raw(
        "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
         2\r\n{}\r\n0\r\nx-checksum: 1\r\ncontent-length: 7\r\n\r\n",
    ));
    let answer = lb.chat(false).await;
    assert_eq!(
        (answer.status(), answer.end, answer.text().as_str()),
        (200, End::Clean, "{}")
    );
    assert_eq!(lb.chat(false).await.status(), 200);
}

// HTTP checklist 38
// [HTTP-12]
#[tokio::test]
async fn a_client_of_http_1_0_gets_no_chunks() {
    let (provider, lb) = start().await;
    provider.next(Script::streamed(&["a"]));
    let body = chat_body("chat", true);
    let old = format!(
        "POST /v1/chat/completions HTTP/1.0\r\nhost: a\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = lb.ask(old).await;
    assert_eq!(
        (answer.status(), answer.head.header("transfer-encoding")),
        (200, None)
    );
    assert!(answer.text().starts_with("data: {") && answer.text().ends_with("data: [DONE]\n\n"));
}

// HTTP checklist 30
// [HTTP-12]
#[tokio::test]
async fn a_request_for_the_head_only_gets_no_body() {
    let (_provider, lb) = start().await;
    let both = [
        b"HEAD /v1/models HTTP/1.1\r\nhost: a\r\n\r\n".as_slice(),
        &get("/v1/models"),
    ]
    .concat();
    let mut exchange = Exchange::begin(lb.data(), both).await;
    let first = exchange.head().await;
    assert!(first.status == 200 || first.status == 405, "{}", first.status);
    // The next bytes are the next answer's head: no body came in between.
    assert_eq!(exchange.head().await.status, 200);
}

// HTTP checklist 38
// [HTTP-12] [STREAM-28]
#[tokio::test]
async fn a_client_of_http_1_0_keeps_its_connection_only_if_it_asks_to() {
    let (_provider, lb) = start().await;
    let old = |fields: &str| {
        let body = chat_body("chat", false);
        let length = body.len();
        format!(
            "POST /v1/chat/completions HTTP/1.0\r\nhost: a\r\n{fields}content-length: {length}\r\n\r\n{body}"
        )
    };
    let mut exchange = Exchange::begin(lb.data(), old("")).await;
    assert_eq!(exchange.answer().await.status(), 200);
    assert!(exchange.closed().await);
    let mut exchange = Exchange::begin(lb.data(), old("connection: keep-alive\r\n")).await;
    let answer = exchange.answer().await;
    assert_eq!(answer.head.header("connection"), Some("keep-alive"));
    exchange.again(old("")).await;
    assert_eq!(exchange.answer().await.status(), 200);
    assert!(exchange.closed().await);
}

// HTTP checklist 19, 29
// [HTTP-8]
#[tokio::test]
async fn a_client_of_http_1_0_is_never_told_to_go_on() {
    let (_provider, lb) = start().await;
    let body = chat_body("chat", false);
    let head = format!(
        "POST /v1/chat/completions HTTP/1.0\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut exchange = Exchange::begin(lb.data(), head).await;
    exchange.send(body).await;
    assert_eq!(exchange.head().await.status, 200);
}
