//! Lengths, hop-by-hop headers and the reuse of connections.

use lb_tests::client::{End, chat_body, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, token};
use lb_tests::setup::Setup;

// field fault H1
#[tokio::test]
async fn a_stream_with_a_wrong_length_is_never_more_or_less_than_it_says() {
    let event = format!("data: {}\n\n", token("a"));
    let short = event.len().to_string();
    let head = |length: &str| {
        Script::head(
            200,
            &[("content-type", "text/event-stream"), ("content-length", length)],
        )
    };
    let provider = Provider::start(head(&short).bytes(event.repeat(2)).close()).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let answer = lb.chat(true).await;
    assert_eq!(
        (answer.end, answer.text()),
        (End::Clean, event.clone()),
        "its length was its end"
    );
    provider.next(head("9999").bytes(event.clone()).close());
    let answer = lb.chat(true).await;
    assert_eq!((answer.end, answer.text()), (End::Cut, event));
}

// field fault H1
#[tokio::test]
async fn what_stands_behind_a_response_is_no_answer_to_the_next_request() {
    let extra = Script::raw(
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil",
    );
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    provider.next(extra);
    assert_eq!(lb.chat(false).await.text(), "{}");
    assert_eq!(
        lb.chat(false).await.json()["choices"][0]["message"]["content"],
        "ok"
    );
}

// field fault H2
#[tokio::test]
async fn hop_by_hop_headers_end_at_the_hop_in_both_directions() {
    let headers = [
        ("connection", "x-hop"),
        ("x-hop", "1"),
        ("keep-alive", "timeout=5"),
        ("x-end", "1"),
    ];
    let provider = Provider::start(Script::json(200, &headers, &serde_json::json!({}))).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let ours = "connection: x-mine, authorization, host\r\nx-mine: 1\r\nkeep-alive: 1\r\nte: gzip\r\n\
                proxy-connection: close\r\nx-kept: 1\r\n";
    let answer = lb
        .ask(post("/v1/chat/completions", ours, chat_body("chat", false)))
        .await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
    for gone in ["x-hop", "keep-alive"] {
        assert_eq!(answer.head.header(gone), None, "{gone}");
    }
    assert_eq!(answer.head.header("x-end"), Some("1"));
    let request = provider.request(0).await;
    for gone in ["x-mine", "keep-alive", "te", "proxy-connection"] {
        assert_eq!(request.header(gone), None, "{gone}");
    }
    assert_eq!(request.header("x-kept"), Some("1"));
    let host = provider.address().to_string();
    assert_eq!(request.all("host"), [host.as_str()]);
    assert_eq!(
        request.header("authorization"),
        Some("Bearer key-of-gpu"),
        "a client cannot name it away"
    );
}

// field fault H4
#[tokio::test]
async fn only_a_connection_that_was_read_to_its_end_is_used_again() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    lb.chat(false).await;
    lb.chat(false).await;
    assert_eq!(
        (provider.requests().len(), provider.connections().len()),
        (2, 1),
        "read to its end: kept"
    );

    provider.next(Script::stream().token("a").stall());
    let mut exchange = lb.begin().await;
    exchange.head().await;
    exchange.until("\"a\"").await;
    drop(exchange);
    provider.left(2).await;
    assert_eq!(lb.chat(false).await.status(), 200);
    assert_eq!(
        provider.connections().len(),
        2,
        "left in the middle: closed, and a fresh one made"
    );
}

// field fault C3
#[tokio::test]
async fn a_kept_connection_that_the_provider_has_closed_costs_the_client_nothing() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    for _ in 0..5 {
        provider.next(Script::completion("once").close());
        assert_eq!(lb.chat(false).await.status(), 200);
        assert_eq!(lb.chat(false).await.status(), 200);
    }
    let health = lb.endpoint("gpu", 0).await;
    assert_eq!(health["state"], "healthy");
}
