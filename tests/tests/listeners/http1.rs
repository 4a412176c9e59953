//! Requests of HTTP/1 byte by byte, and an origin that records what reached it. docs/HTTP.md is this table in words.

use lb_tests::client::{Exchange, chat_body, get};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};

use super::start;

const PATH: &str = "POST /v1/chat/completions HTTP/1.1\r\n";
const HOST: &str = "host: lb.test\r\n";

/// A chat request with this request line and these header lines, and its body's length.
fn chat_with(line: &str, headers: &str) -> String {
    let body = chat_body("chat", false);
    format!("{line}{headers}content-length: {}\r\n\r\n{body}", body.len())
}

/// A chat request of these header lines, with its body in one chunk of this size line and this end.
fn chunked(headers: &str, size: &str, end: &str) -> String {
    let body = chat_body("chat", false);
    let size = size.replace("SIZE", &format!("{:x}", body.len()));
    format!("{PATH}{HOST}{headers}\r\n{size}{body}{end}")
}

async fn refused(lb: &Lb, provider: &Provider, request: &str, status: u16) {
    let before = provider.requests().len();
    let mut exchange = Exchange::begin(lb.data(), request).await;
    let answer = exchange.answer().await;
    assert_eq!(answer.status(), status, "{request:?}: {}", answer.text());
    assert!(exchange.closed().await, "{request:?} leaves its connection open");
    assert_eq!(
        provider.requests().len(),
        before,
        "{request:?} reached the provider"
    );
    let next = lb.ask(get("/v1/models")).await;
    assert_eq!(next.status(), 200, "{request:?} harmed others");
}

// [HTTP-30] [HTTP-31] [HTTP-32]
#[tokio::test]
async fn what_a_head_may_not_say_is_refused_and_ends_the_connection() {
    let (provider, lb) = start(Script::completion("ok"), &[]).await;
    let cases = [
        (chat_with(PATH, ""), 400),
        (chat_with(PATH, "host: a\r\nhost: a\r\n"), 400),
        (chat_with(PATH, "host: a, b\r\n"), 400),
        (chat_with(PATH, "host: user@a\r\n"), 400),
        (chat_with(PATH, "host: a/b\r\n"), 400),
        (chat_with(PATH, "host:\r\n"), 400),
        (chat_with("POST * HTTP/1.1\r\n", HOST), 400),
        (chat_with("POST v1/chat/completions HTTP/1.1\r\n", HOST), 400),
        (
            chat_with("POST ftp://lb.test/v1/chat/completions HTTP/1.1\r\n", HOST),
            400,
        ),
        (
            chat_with("POST http://u:p@lb.test/v1/chat/completions HTTP/1.1\r\n", HOST),
            400,
        ),
        (chat_with("CONNECT lb.test:443 HTTP/1.1\r\n", HOST), 400),
        (chat_with("TRACE /v1/chat/completions HTTP/1.1\r\n", HOST), 400),
        (chat_with("POST /v1/chat/completions HTTP/2.0\r\n", HOST), 400),
        (chat_with("POST  /v1/chat/completions HTTP/1.1\r\n", HOST), 400),
        (
            chat_with("PO\u{1}ST /v1/chat/completions HTTP/1.1\r\n", HOST),
            400,
        ),
        (chat_with(PATH, "host: lb.test\r\nx : y\r\n"), 400),
        (chat_with(PATH, "host: lb.test\r\n: y\r\n"), 400),
        (chat_with(PATH, "host: lb.test\r\nno colon\r\n"), 400),
        (chat_with(PATH, "host: lb.test\r\nx: a\r\n b\r\n"), 400),
        (chat_with(PATH, " host: lb.test\r\n"), 400),
        (chat_with(PATH, "host: lb.test\r\nx: a\0b\r\n"), 400),
        (chat_with(PATH, "host: lb.test\r\nx: a\rb\r\n"), 400),
        (chat_with(PATH, "host: lb.test\r\nexpect: a miracle\r\n"), 417),
        (
            chat_with(PATH, "host: lb.test\r\nupgrade: h2c\r\nconnection: upgrade\r\n"),
            400,
        ),
    ];
    for (request, status) in cases {
        refused(&lb, &provider, &request, status).await;
    }
}

// [HTTP-33] [HTTP-34]
#[tokio::test]
async fn a_body_whose_end_is_in_doubt_is_refused_and_ends_the_connection() {
    let (provider, lb) = start(Script::completion("ok"), &[]).await;
    let length = |headers: &str| format!("{PATH}{HOST}{headers}\r\n{}", chat_body("chat", false));
    let te = "transfer-encoding: chunked\r\n";
    let cases = [
        (length("content-length: 7\r\ncontent-length: 8\r\n"), 400),
        (length("content-length: +7\r\n"), 400),
        (length("content-length: 0x7\r\n"), 400),
        (length("content-length: 7 7\r\n"), 400),
        (length("content-length: 99999999999999999999\r\n"), 400),
        (chunked(&format!("{te}{te}"), "SIZE\r\n", "\r\n0\r\n\r\n"), 400),
        (
            chunked(
                "transfer-encoding: chunked, chunked\r\n",
                "SIZE\r\n",
                "\r\n0\r\n\r\n",
            ),
            400,
        ),
        (
            chunked(
                "transfer-encoding: gzip, chunked\r\n",
                "SIZE\r\n",
                "\r\n0\r\n\r\n",
            ),
            501,
        ),
        (
            chunked(
                "transfer-encoding: chunked, gzip\r\n",
                "SIZE\r\n",
                "\r\n0\r\n\r\n",
            ),
            400,
        ),
        (
            chunked("transfer-encoding: xchunked\r\n", "SIZE\r\n", "\r\n0\r\n\r\n"),
            400,
        ),
        (
            chunked("transfer-encoding: \"chunked\"\r\n", "SIZE\r\n", "\r\n0\r\n\r\n"),
            400,
        ),
        (chunked(te, "+SIZE\r\n", "\r\n0\r\n\r\n"), 400),
        (chunked(te, "0xSIZE\r\n", "\r\n0\r\n\r\n"), 400),
        (chunked(te, "fffffffffffffffff\r\n", "\r\n0\r\n\r\n"), 400),
        (chunked(te, "SIZE\r\n", "xx0\r\n\r\n"), 400),
    ];
    for (request, status) in cases {
        refused(&lb, &provider, &request, status).await;
    }
    let old = chunked(te, "SIZE\r\n", "\r\n0\r\n\r\n").replace("HTTP/1.1", "HTTP/1.0");
    refused(&lb, &provider, &old, 400).await;
}

// [HTTP-45]
#[tokio::test]
async fn heads_and_targets_have_limits() {
    let (provider, lb) = start(Script::completion("ok"), &[]).await;
    let long = "x".repeat(70_000);
    refused(
        &lb,
        &provider,
        &chat_with(&format!("POST /v1/{long} HTTP/1.1\r\n"), HOST),
        431,
    )
    .await;
    refused(
        &lb,
        &provider,
        &chat_with(PATH, &format!("{HOST}x: {long}\r\n")),
        431,
    )
    .await;
    refused(
        &lb,
        &provider,
        &chat_with(PATH, &format!("{HOST}{}", "x: y\r\n".repeat(200))),
        431,
    )
    .await;
    let line = format!("POST /v1/chat/completions?{} HTTP/1.1\r\n", "x".repeat(8000));
    assert_eq!(lb.ask(chat_with(&line, HOST)).await.status(), 200);
}

// [HTTP-46]
#[tokio::test]
async fn what_can_be_read_in_one_way_only_is_forwarded_in_its_plain_form() {
    let (provider, lb) = start(Script::completion("ok"), &[]).await;
    let te = "transfer-encoding: chunked\r\n";
    let cases = [
        chat_with("\r\nPOST /v1/chat/completions HTTP/1.1\r\n", HOST),
        chat_with(PATH, HOST).replacen("\r\n", "\n", 3),
        chat_with("POST http://lb.test/v1/chat/completions HTTP/1.1\r\n", HOST),
        chat_with(
            PATH,
            &format!("{HOST}content-length: {}\r\n", chat_body("chat", false).len()),
        ),
        chat_with("POST /v1/chat/completions HTTP/1.0\r\n", ""),
        chunked(te, "SIZE\r\n", "\r\n0\r\n\r\n"),
        chunked("Transfer-Encoding: CHUNKED\r\n", "SIZE\r\n", "\r\n0\r\n\r\n"),
        chunked(te, "000SIZE;name=\"value\"\r\n", "\r\n0;x\r\ntrailer: x\r\n\r\n"),
    ];
    for (number, request) in cases.iter().enumerate() {
        let answer = lb.ask(request).await;
        assert_eq!(answer.status(), 200, "{request:?}: {}", answer.text());
        let seen = provider.request(number).await;
        assert_eq!(seen.line(), ("POST", "/v1/chat/completions"), "{request:?}");
        assert_eq!(seen.all("content-length").len(), 1, "{request:?}: {}", seen.head);
        assert_eq!(seen.json()["model"], "gpu-model", "{request:?}");
        for name in ["transfer-encoding", "trailer"] {
            assert_eq!(seen.header(name), None, "{request:?}: {}", seen.head);
        }
        assert!(
            !seen.head.replace("\r\n", "").contains(['\r', '\n']),
            "{:?}",
            seen.head
        );
    }
}

// [HTTP-46]
#[tokio::test]
async fn a_length_beside_chunks_is_dropped_and_the_connection_ends() {
    let (provider, lb) = start(Script::completion("ok"), &[]).await;
    for headers in [
        "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
        "content-length: 5\r\ntransfer-encoding: chunked\r\n",
    ] {
        let mut exchange = Exchange::begin(lb.data(), chunked(headers, "SIZE\r\n", "\r\n0\r\n\r\n")).await;
        assert_eq!(exchange.answer().await.status(), 200);
        assert!(exchange.closed().await);
    }
    let whole = provider.request(1).await;
    assert_eq!(whole.json()["model"], "gpu-model");
    assert_ne!(whole.header("content-length"), Some("5"));
}

// [HTTP-31]
#[tokio::test]
async fn the_provider_is_told_the_host_that_counts() {
    let (provider, lb) = start(Script::completion("ok"), &[]).await;
    lb.ask(chat_with(
        "POST http://other.test/v1/chat/completions HTTP/1.1\r\n",
        HOST,
    ))
    .await;
    lb.ask(chat_with(PATH, HOST)).await;
    let told = [provider.request(0).await, provider.request(1).await].map(|request| {
        assert_eq!(request.all("host"), [provider.address().to_string()]);
        request.header("x-forwarded-host").unwrap_or_default().to_owned()
    });
    assert_eq!(told, ["other.test", "lb.test"]);
}

// [HTTP-47]
#[tokio::test]
async fn a_refused_client_can_read_why_though_it_is_still_sending() {
    let (_provider, lb) = start(Script::completion("ok"), &["max_body_bytes: 1000"]).await;
    for _ in 0..5 {
        let request = format!(
            "{PATH}{HOST}content-length: 300000\r\n\r\n{}",
            "x".repeat(300_000)
        );
        let answer = lb.ask(request).await;
        assert_eq!(
            (answer.status(), answer.code().as_str()),
            (413, "request_too_large")
        );
    }
}

// [HTTP-48]
#[tokio::test]
async fn a_body_is_asked_for_only_when_it_is_wanted() {
    let (_provider, lb) = start(Script::completion("ok"), &["max_body_bytes: 1000"]).await;
    let head = |length| format!("{PATH}{HOST}expect: 100-continue\r\ncontent-length: {length}\r\n\r\n");
    let body = chat_body("chat", false);
    let mut wanted = Exchange::begin(lb.data(), head(body.len())).await;
    assert_eq!(wanted.head().await.status, 100);
    wanted.again(body).await;
    assert_eq!(wanted.answer().await.status(), 200);
    let mut unwanted = Exchange::begin(lb.data(), head(2000)).await;
    assert_eq!(unwanted.answer().await.status(), 413);
    assert!(unwanted.closed().await);
}

// [HTTP-49]
#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let (provider, lb) = start(Script::completion("ok"), &[]).await;
    let three = [
        chat_with(PATH, HOST),
        String::from_utf8(get("/v1/models")).unwrap(),
        chat_with(PATH, ""),
    ];
    let mut exchange = Exchange::begin(lb.data(), three.concat()).await;
    assert!(exchange.answer().await.text().contains("chatcmpl"));
    exchange.again("").await;
    assert!(exchange.answer().await.text().contains("\"list\""));
    exchange.again("").await;
    assert_eq!(exchange.answer().await.status(), 400);
    assert!(exchange.closed().await);
    assert_eq!(provider.requests().len(), 1);
}
