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

// [HTTP-31] [HTTP-33] [HTTP-34] [HTTP-35]
#[tokio::test]
async fn what_could_be_read_in_two_ways_is_refused_and_ends_the_connection() {
    let (provider, lb) = start(Script::completion("ok"), &[]).await;
    let coded = |fields: &str| chunked(fields, "SIZE\r\n", "\r\n0\r\n\r\n");
    let te = "transfer-encoding: chunked\r\n";
    let cases = [
        (
            chat_with("POST ftp://lb.test/v1/chat/completions HTTP/1.1\r\n", HOST),
            400,
        ),
        (
            chat_with("POST http://u:p@lb.test/v1/chat/completions HTTP/1.1\r\n", HOST),
            400,
        ),
        (
            chat_with("POST http://lb.test/v1/chat/completions HTTP/1.1\r\n", ""),
            400,
        ),
        (chat_with(PATH, "host: lb.test\r\nexpect: a miracle\r\n"), 417),
        (
            chat_with(
                PATH,
                "host: lb.test\r\nupgrade: websocket\r\nconnection: upgrade\r\n",
            ),
            400,
        ),
        (coded(&format!("{te}{te}")), 400),
        (coded("transfer-encoding: chunked, chunked\r\n"), 400),
        (coded("transfer-encoding: gzip, chunked\r\n"), 501),
        (coded("transfer-encoding: chunked, gzip\r\n"), 400),
        (coded("transfer-encoding: xchunked\r\n"), 400),
        (coded("transfer-encoding: \"chunked\"\r\n"), 400),
        (coded(te).replace("HTTP/1.1", "HTTP/1.0"), 400),
    ];
    for (request, status) in cases {
        refused(&lb, &provider, &request, status).await;
    }
}

// [HTTP-6]
#[tokio::test]
async fn heads_and_targets_have_limits() {
    let (provider, lb) = start(Script::completion("ok"), &[]).await;
    let long = "x".repeat(140_000);
    for target in [&long, &long[..66_000]] {
        refused(
            &lb,
            &provider,
            &chat_with(&format!("POST /v1/{target} HTTP/1.1\r\n"), HOST),
            414,
        )
        .await;
    }
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
        &chat_with(PATH, &format!("{HOST}{}", "x: y\r\n".repeat(101))),
        431,
    )
    .await;
    assert_eq!(
        lb.ask(chat_with(PATH, &format!("{HOST}x: {}\r\n", &long[..100_000])))
            .await
            .status(),
        200
    );
}

// [HTTP-45]
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

// [HTTP-46]
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
