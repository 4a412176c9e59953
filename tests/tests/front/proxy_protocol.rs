//! A proxy in front that says whom a connection is from.

use std::time::Instant;

use lb_tests::client::{Exchange, chat, get};
use lb_tests::provider::Script;

use super::start;

const TRUSTED: &str = "trusted_proxies: [\"127.0.0.0/8\"]";

fn introduced(client: &str, request: &[u8]) -> Vec<u8> {
    [
        format!("PROXY TCP4 {client} 192.0.2.9 4711 443\r\n").as_bytes(),
        request,
    ]
    .concat()
}

fn binary(client: [u8; 4], request: &[u8]) -> Vec<u8> {
    let head = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c";
    [
        &head[..],
        &client,
        &[192, 0, 2, 9],
        &[0x12, 0x67, 1, 0xbb],
        request,
    ]
    .concat()
}

// [LIMIT-6]
#[tokio::test]
async fn the_client_that_a_trusted_proxy_names_is_whom_requests_come_from() {
    let (provider, lb) = start(|setup| setup.server(TRUSTED).listener("proxy_protocol: any")).await;
    let request = chat("chat", false);
    for (number, bytes) in [
        introduced("203.0.113.7", &request),
        binary([203, 0, 113, 8], &request),
    ]
    .iter()
    .enumerate()
    {
        assert_eq!(lb.ask(bytes).await.status(), 200);
        let sent = provider.request(number).await;
        assert_eq!(sent.all("x-forwarded-for"), [format!("203.0.113.{}", 7 + number)]);
    }
    // The client is not trusted because its proxy is.
    let lies = [b"GET /v1/models HTTP/1.1\r\nhost: a\r\nx-request-id: mine\r\n\r\n".as_slice()].concat();
    let answer = lb.ask(introduced("203.0.113.7", &lies)).await;
    assert_ne!(answer.head.header("x-request-id"), Some("mine"));
    // A proxy's own checks come without a client.
    assert_eq!(
        lb.ask([b"PROXY UNKNOWN\r\n".as_slice(), &get("/v1/models")].concat())
            .await
            .status(),
        200
    );
}

// [LIMIT-6]
#[tokio::test]
async fn without_its_header_a_trusted_proxy_is_turned_away_and_a_stranger_is_not_believed() {
    let (provider, lb) = start(|setup| setup.server(TRUSTED).listener("proxy_protocol: v2")).await;
    for bytes in [get("/v1/models"), introduced("203.0.113.7", &get("/v1/models"))] {
        let mut exchange = Exchange::begin(lb.data(), bytes).await;
        assert!(exchange.try_head().await.is_none());
    }
    assert!((lb.metric("lb_connections_turned_away_total").await - 2.0).abs() < 0.1);
    let (_other, stranger) = start(|setup| setup.listener("proxy_protocol: any")).await;
    assert_eq!(stranger.ask(get("/v1/models")).await.status(), 200);
    assert_eq!(
        stranger
            .ask(introduced("203.0.113.7", &get("/v1/models")))
            .await
            .status(),
        400
    );
    assert_eq!(provider.requests().len(), 0);
}

// [LIMIT-6]
#[tokio::test]
async fn lists_and_limits_of_sources_are_about_the_client() {
    let listener = |setup: lb_tests::setup::Setup| {
        setup
            .server(TRUSTED)
            .listener("proxy_protocol: v1")
            .listener("allow_sources: [203.0.113.0/24]")
            .listener("max_connections_per_source: 1")
    };
    let (_provider, lb) = start(listener).await;
    let models = get("/v1/models");
    let mut first = Exchange::begin(lb.data(), introduced("203.0.113.7", &models)).await;
    assert_eq!(first.answer().await.status(), 200);
    for (client, served) in [
        ("203.0.113.7", false),
        ("203.0.113.8", true),
        ("198.51.100.1", false),
    ] {
        let mut exchange = Exchange::begin(lb.data(), introduced(client, &models)).await;
        assert_eq!(exchange.try_head().await.is_some(), served, "{client}");
    }
    drop(first);
    lb.eventually("the place to be free", async |lb| {
        lb.metric("lb_downstream_connections").await < 0.5
    })
    .await;
    assert_eq!(lb.ask(introduced("203.0.113.7", &models)).await.status(), 200);
}

// [LIMIT-6]
#[tokio::test]
async fn a_proxy_that_says_nothing_is_given_up() {
    let (provider, lb) = start(|setup| {
        setup
            .server(TRUSTED)
            .listener("proxy_protocol: any")
            .listener("first_byte_timeout_ms: 300")
    })
    .await;
    let begun = Instant::now();
    let mut silent = Exchange::begin(lb.data(), "PROXY TCP4 203.0.1").await;
    assert!(silent.closed().await);
    assert!(begun.elapsed().as_millis() >= 290);
    provider.otherwise(Script::completion("ok"));
    assert_eq!(
        lb.ask(introduced("203.0.113.7", &chat("chat", false)))
            .await
            .status(),
        200
    );
}
