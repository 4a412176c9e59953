//! The sections 1 and 2 of the HTTP checklist as far as `tests/http.rs` and `tests/listeners` do not have them. Numbers
//! are the checklist's.

use lb_tests::client::{Exchange, chat_body, get, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::Script;
use lb_tests::setup::Setup;

use super::start;

fn request(line: &str, headers: &str) -> String {
    let body = chat_body("chat", false);
    format!(
        "{line}\r\nhost: a\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

const LINE: &str = "POST /v1/chat/completions HTTP/1.1";

// HTTP checklist 1
// [HTTP-1]
#[tokio::test]
async fn a_methods_case_is_kept_and_unknown_ones_are_passed_on() {
    let (provider, lb) = start(|setup| setup).await;
    for (number, method) in ["post", "QUERY", "M-SEARCH", "x!#$%&'*+.^_`|~"]
        .into_iter()
        .enumerate()
    {
        let line = format!("{method} /v1/chat/completions HTTP/1.1");
        assert_eq!(lb.ask(request(&line, "")).await.status(), 200, "{method}");
        assert_eq!(provider.request(number).await.line().0, method);
    }
}

// HTTP checklist 3
// [HTTP-1]
#[tokio::test]
async fn a_minor_version_above_one_is_no_version_that_is_spoken() {
    let (provider, lb) = start(|setup| setup).await;
    for version in [
        "HTTP/1.2",
        "HTTP/1.9",
        "HTTP/0.9",
        "HTTP/3.0",
        "http/1.1",
        "HTTP/1.10",
        "HTTP/1",
    ] {
        let line = format!("POST /v1/chat/completions {version}");
        let mut exchange = Exchange::begin(lb.data(), request(&line, "")).await;
        assert_eq!(
            exchange.try_head().await.map(|head| head.status),
            Some(400),
            "{version}"
        );
    }
    assert_eq!(provider.requests().len(), 0);
}

// HTTP checklist 5
// [HTTP-51]
#[tokio::test]
async fn an_absolute_targets_authority_is_whom_the_request_is_for() {
    let (provider, lb) = start(|setup| setup).await;
    let line = "POST http://else.test:81/v1/chat/completions?a=1 HTTP/1.1";
    assert_eq!(lb.ask(request(line, "")).await.status(), 200);
    let sent = provider.request(0).await;
    assert_eq!(sent.line().1, "/v1/chat/completions?a=1");
    assert_eq!(sent.all("x-forwarded-host"), ["else.test:81"]);
    assert_eq!(sent.all("host"), [provider.address().to_string()]);
}

// HTTP checklist 5
// [HTTP-1]
#[tokio::test]
async fn no_byte_that_is_none_of_a_target_passes() {
    let (provider, lb) = start(|setup| setup).await;
    for target in [
        "/v1/x y",
        "/v1/\t",
        "/v1/\u{1}",
        "/v1/\u{7f}",
        "/v1/\\..\\",
        "/v1/../x",
        "/v1/%2e%2e",
        "//",
    ] {
        let line = format!("POST {target} HTTP/1.1");
        let mut exchange = Exchange::begin(lb.data(), request(&line, "")).await;
        let status = exchange.try_head().await.map(|head| head.status);
        assert!(matches!(status, Some(400 | 404)), "{status:?} for {target:?}");
    }
    let raw = [
        b"POST /v1/\xe5\xa5\xbd HTTP/1.1\r\nhost: a\r\n".as_slice(),
        b"content-length: 0\r\n\r\n",
    ]
    .concat();
    assert_eq!(lb.ask(raw).await.code(), "bad_request");
    for target in ["/v1/models/\u{e9}", "/v1/models?x=\u{597d}"] {
        let answer = lb.ask(get(target)).await;
        assert_eq!(
            (answer.status(), answer.code().as_str()),
            (400, "bad_request"),
            "{target}"
        );
    }
    assert_eq!(provider.requests().len(), 0);
}

// HTTP checklist 10
// [HTTP-52]
#[tokio::test]
async fn bytes_above_ascii_pass_in_values_and_control_characters_do_not() {
    let (provider, lb) = start(|setup| setup).await;
    let text = request(LINE, "x-name: caf");
    let at = text.find("caf").expect("it is there") + 3;
    let raw = [&text.as_bytes()[..at], b"\xe9\xff\r\n", &text.as_bytes()[at..]].concat();
    assert_eq!(lb.ask(raw).await.status(), 200);
    assert!(provider.request(0).await.head.contains("x-name: caf"));
    for byte in [0x01, 0x07, 0x0b, 0x1f, 0x7f] {
        let raw = [&text.as_bytes()[..at], &[byte], b"\r\n", &text.as_bytes()[at..]].concat();
        let mut exchange = Exchange::begin(lb.data(), raw).await;
        assert_eq!(
            exchange.try_head().await.map(|head| head.status),
            Some(400),
            "{byte:#x}"
        );
    }
}

// [HTTP-53]
#[tokio::test]
async fn what_is_no_field_for_a_provider_is_no_trailer_either() {
    let routes =
        "routes: [{ match: {}, to: models, request_headers: { remove: [x-secret], set: { x-tenant: t } } }]";
    let (provider, lb) = start(|setup| {
        setup
            .section(routes)
            .server("replay_bytes: 1000, exempt_header: x-urgent")
    })
    .await;
    // The second is sent on while it comes.
    for (number, length) in [0, 100_000].into_iter().enumerate() {
        let body = format!("{{\"model\":\"chat\",\"a\":\"{}\"}}", "x".repeat(length));
        let request = format!(
            "{LINE}\r\nhost: a\r\nconnection: x-hop\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\
             x-secret: s\r\nx-sum: 1\r\nx-tenant: forged\r\nx-hop: h\r\n\r\n",
            body.len()
        );
        assert_eq!(lb.ask(request).await.status(), 200);
        let sent = provider.request(number).await;
        assert_eq!(
            (sent.trailers.as_str(), sent.all("x-tenant")),
            ("x-sum: 1\r\n", vec!["t"]),
            "{length}"
        );
    }
    let body = "{\"model\":\"chat\"}";
    let request = format!(
        "{LINE}\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\nx-urgent: 1\r\n\r\n",
        body.len()
    );
    assert_eq!(lb.ask(request).await.status(), 200);
    assert_eq!(provider.request(2).await.trailers, "");
}

// HTTP checklist 12, 15
// [HTTP-53]
#[tokio::test]
async fn chunk_extensions_and_trailers_are_limited_and_only_harmless_trailers_go_on() {
    let (provider, lb) = start(|setup| setup).await;
    let body = chat_body("chat", false);
    let chunked = |extension: &str, trailers: &str| {
        format!(
            "{LINE}\r\nhost: a\r\nte: trailers\r\ntransfer-encoding: chunked\r\n\r\n{:x}{extension}\r\n{body}\r\n0\r\n{trailers}\r\n",
            body.len()
        )
    };
    assert_eq!(
        lb.ask(chunked(
            ";a=1;b=\"c\"",
            "x-sum: 1\r\nhost: evil\r\nx-api-key: mine\r\nx-forwarded-for: 10.0.0.1\r\n"
        ))
        .await
        .status(),
        200
    );
    let sent = provider.request(0).await;
    assert_eq!(
        &sent.body[..],
        body.replace("\"chat\"", "\"gpu-model\"").as_bytes()
    );
    assert!(!sent.head.contains("x-sum") && sent.all("host").len() == 1);
    assert_eq!(sent.header("transfer-encoding"), Some("chunked"));
    assert_eq!(sent.trailers, "x-sum: 1\r\n");
    let private = "openai-organization: o\r\nOpenAI-Project: p\r\ntraceparent: t\r\nx-request-id: i\r\nx-lb-model: m\r\n";
    assert_eq!(lb.ask(chunked("", private)).await.status(), 200);
    assert_eq!(provider.request(1).await.trailers, "");
    for (extension, trailers) in [
        (format!(";{}", "x".repeat(1 << 20)), String::new()),
        (String::new(), "x: y\r\n".repeat(100_000)),
    ] {
        let mut exchange = Exchange::begin(lb.data(), chunked(&extension, &trailers)).await;
        let status = exchange.try_head().await.map(|head| head.status);
        assert!(matches!(status, Some(400 | 431) | None), "{status:?}");
    }
    assert_eq!(provider.requests().len(), 2);
}

// HTTP checklist 17
// [HTTP-54]
#[tokio::test]
async fn the_body_of_a_get_goes_with_it() {
    let (provider, lb) = start(|setup| setup).await;
    assert_eq!(lb.ask(request("GET /v1/search HTTP/1.1", "")).await.status(), 200);
    let sent = provider.request(0).await;
    assert_eq!((sent.line().0, sent.body.is_empty()), ("GET", false));
}

// HTTP checklist 19
// [HTTP-8]
#[tokio::test]
async fn a_request_that_is_refused_by_its_head_is_not_told_to_go_on() {
    let (provider, lb) = start(|setup| setup.listener("max_body_bytes: 1000")).await;
    let expecting =
        |line: &str, more: &str| format!("{line}\r\nhost: a\r\nexpect: 100-continue\r\n{more}\r\n");
    for (line, more, status) in [
        (LINE, "content-length: 2000\r\n", 413),
        (LINE, "content-encoding: gzip\r\ncontent-length: 10\r\n", 415),
        ("POST /elsewhere HTTP/1.1", "content-length: 10\r\n", 404),
        (LINE, "expect: magic\r\ncontent-length: 10\r\n", 417),
        (
            LINE,
            "content-type: multipart/form-data\r\ncontent-length: 10\r\n",
            400,
        ),
    ] {
        let mut exchange = Exchange::begin(lb.data(), expecting(line, more)).await;
        assert_eq!(exchange.head().await.status, status, "{more}");
        while exchange.piece().await.is_ok() {}
        assert!(
            exchange.closed().await,
            "the body that follows is nobody's: {more}"
        );
    }
    // One without a body waits for nothing.
    let mut exchange = Exchange::begin(
        lb.data(),
        "GET /v1/models HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\n\r\n",
    )
    .await;
    assert_eq!(exchange.head().await.status, 200);
    assert_eq!(provider.requests().len(), 0);
}

// HTTP checklist 21, 22, 27, 28
// [PROXY-1] [PROXY-3]
#[tokio::test]
async fn what_a_connection_field_names_ends_here_unless_it_guards_something() {
    let (provider, lb) = start(|setup| setup).await;
    let headers = "connection: x-a, host, content-length, authorization, x-forwarded-for, x-request-id, content-type\r\n\
                   x-a: 1\r\nx-b: 2\r\nkeep-alive: timeout=5\r\nproxy-connection: keep-alive\r\nproxy-authorization: Basic x\r\n\
                   te: trailers, gzip\r\ntrailer: x-b\r\nupgrade: h2c\r\nauthorization: Bearer theirs\r\ncookie: c\r\n\
                   content-type: application/json\r\n";
    assert_eq!(
        lb.ask(request(LINE, headers)).await.status(),
        400,
        "an upgrade with a body"
    );
    assert_eq!(
        lb.ask(request(LINE, &headers.replace("upgrade: h2c\r\n", "")))
            .await
            .status(),
        200
    );
    let sent = provider.request(0).await;
    for gone in [
        "x-a",
        "keep-alive",
        "proxy-connection",
        "proxy-authorization",
        "trailer",
        "cookie",
    ] {
        assert_eq!(sent.header(gone), None, "{gone}");
    }
    assert_eq!(
        (sent.all("te"), sent.all("connection")),
        (vec!["trailers"], vec!["te"])
    );
    assert_eq!(sent.all("x-b"), ["2"]);
    assert_eq!(sent.all("content-type"), ["application/json"]);
    assert_eq!(sent.all("authorization"), ["Bearer key-of-gpu"]);
    assert_eq!(sent.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(sent.all("content-length"), [sent.body.len().to_string()]);
    assert_eq!(sent.all("host"), [provider.address().to_string()]);
}

// HTTP checklist 27
// [PROXY-2] [HTTP-10]
#[tokio::test]
async fn forwarded_is_said_by_lb_and_added_to_what_a_trusted_proxy_says() {
    let (provider, lb) = start(|setup| setup).await;
    let said = "forwarded: for=9.9.9.9;host=b\r\n";
    lb.ask(request(LINE, said)).await;
    assert_eq!(
        provider.request(0).await.all("forwarded"),
        ["for=127.0.0.1;proto=http"]
    );
    let trusting = Lb::start(&Setup::single(&provider).server("trusted_proxies: [\"127.0.0.0/8\"]")).await;
    trusting.ask(request(LINE, said)).await;
    let sent = provider.request(1).await;
    assert_eq!(
        sent.all("forwarded"),
        ["for=9.9.9.9;host=b, for=127.0.0.1;proto=http"]
    );
    assert_eq!(sent.all("x-forwarded-proto"), ["http"], "which it did not say");
}

// HTTP checklist 29
// [HTTP-11]
#[tokio::test]
async fn interim_responses_without_end_are_a_fault_and_never_reach_an_old_client() {
    let (provider, lb) = start(|setup| setup).await;
    provider.next(Script::raw("HTTP/1.1 102 Processing\r\n\r\n".repeat(1000)).stall());
    assert_eq!(lb.chat(false).await.status(), 502);
    provider.next(Script::raw(
        "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    ));
    let old = request("POST /v1/chat/completions HTTP/1.0", "");
    let answer = lb.ask(old).await;
    assert_eq!((answer.status(), answer.text().as_str()), (200, "{}"));
}

// HTTP checklist 34
// [HTTP-55]
#[tokio::test]
async fn a_providers_trailers_reach_a_client_that_asked_for_them() {
    let (provider, lb) = start(|setup| setup).await;
    let script = || {
        Script::raw(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n2\r\n{}\r\n0\r\nx-sum: 7\r\n\
             content-length: 9\r\n\r\n",
        )
    };
    provider.next(script());
    let asking = post(
        "/v1/chat/completions",
        "te: trailers\r\nconnection: te\r\n",
        chat_body("chat", false),
    );
    let mut exchange = Exchange::begin(lb.data(), asking).await;
    let head = exchange.head().await;
    assert_eq!(head.all("trailer"), ["x-sum"]);
    exchange.skip("2\r\n{}\r\n0\r\nx-sum: 7\r\n\r\n".len()).await;
    provider.next(script());
    let answer = lb.chat(false).await;
    assert_eq!(answer.text(), "{}", "others get none");
}

// HTTP checklist 18
// [HTTP-7]
#[tokio::test]
async fn requests_sent_ahead_are_read_only_as_far_as_they_are_served() {
    let (provider, lb) = start(|setup| setup).await;
    let one = get("/v1/models");
    let mut exchange = Exchange::begin(lb.data(), one.repeat(500)).await;
    for _ in 0..500 {
        assert_eq!(exchange.answer().await.status(), 200);
    }
    assert_eq!(provider.requests().len(), 0);
}
