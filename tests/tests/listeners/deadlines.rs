//! Clients that are silent or slow.

use std::time::{Duration, Instant};

use lb_tests::PATIENCE;
use lb_tests::client::{chat, chat_body, get, post};
use lb_tests::provider::Script;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::{SHORT, start};

const LIMIT: Duration = Duration::from_millis(SHORT);

/// Sends these bytes and reads to the end of the connection; returns what came, and when it was over.
async fn to_the_end(address: std::net::SocketAddr, sent: &[u8]) -> (String, Duration) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let begun = Instant::now();
    stream.write_all(sent).await.unwrap();
    rest(&mut stream, begun).await
}

async fn rest(stream: &mut TcpStream, begun: Instant) -> (String, Duration) {
    let mut read = Vec::new();
    let end = timeout(PATIENCE, stream.read_to_end(&mut read)).await;
    assert!(
        end.is_ok(),
        "still open after {PATIENCE:?}, having said {:?}",
        String::from_utf8_lossy(&read)
    );
    (String::from_utf8_lossy(&read).into_owned(), begun.elapsed())
}

// [HTTP-21]
#[tokio::test]
async fn a_client_that_says_nothing_is_closed() {
    for http2 in ["http2: true", "http2: false"] {
        let (_provider, lb) = start(Script::completion("ok"), &["first_byte_timeout_ms: 300", http2]).await;
        let (said, after) = to_the_end(lb.data(), b"").await;
        assert_eq!(said, "");
        assert!(after >= LIMIT, "{after:?}");
    }
}

// [HTTP-20] [HTTP-21]
#[tokio::test]
async fn half_a_preface_is_a_slow_head_and_a_whole_one_without_a_request_is_silence() {
    let limits = ["first_byte_timeout_ms: 300", "header_timeout_ms: 300"];
    let (_provider, lb) = start(Script::completion("ok"), &limits).await;
    for sent in [&b"P"[..], b"PRI * HTT", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let (said, after) = to_the_end(lb.data(), sent).await;
        assert!((LIMIT..PATIENCE).contains(&after), "{after:?}");
        assert_eq!(said.starts_with("HTTP/1.1 408 "), sent.len() < 24, "{said:?}");
    }
}

// [HTTP-22]
#[tokio::test]
async fn a_head_that_does_not_end_is_answered_with_408() {
    let (provider, lb) = start(Script::completion("ok"), &["header_timeout_ms: 300"]).await;
    let whole = get("/v1/models");
    let (said, after) = to_the_end(lb.data(), &whole[..20]).await;
    assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
    assert!(said.contains("connection: close"), "{said}");
    assert!(after >= LIMIT, "{after:?}");
    // Drip by drip it is no better, nor behind a request that was answered.
    let mut stream = TcpStream::connect(lb.data()).await.unwrap();
    stream.write_all(&whole).await.unwrap();
    let mut first = [0; 1024];
    assert!(stream.read(&mut first).await.unwrap() > 0);
    let begun = Instant::now();
    for byte in &whole[..whole.len() - 1] {
        if stream.write_all(&[*byte]).await.is_err() {
            break;
        }
        sleep(LIMIT / 10).await;
        if begun.elapsed() > 3 * LIMIT {
            break;
        }
    }
    let (said, _) = rest(&mut stream, begun).await;
    assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
    assert_eq!(provider.requests().len(), 0);
}

// [HTTP-38]
#[tokio::test]
async fn a_body_that_does_not_come_is_answered_with_408() {
    let (provider, lb) = start(Script::completion("ok"), &["header_timeout_ms: 300"]).await;
    let whole = post("/v1/chat/completions", "", chat_body("chat", false));
    let (said, after) = to_the_end(lb.data(), &whole[..whole.len() - 1]).await;
    assert!(said.starts_with("HTTP/1.1 408 "), "{said}");
    assert!(
        said.contains("request_timeout") && said.contains("connection: close"),
        "{said}"
    );
    assert!(after >= LIMIT, "{after:?}");
    assert_eq!(provider.requests().len(), 0);
}

// [HTTP-23]
#[tokio::test]
async fn a_kept_connection_is_closed_after_its_idle_time_and_not_before() {
    let (_provider, lb) = start(
        Script::completion("ok"),
        &[
            "idle_timeout_ms: 900",
            "header_timeout_ms: 300",
            "first_byte_timeout_ms: 300",
        ],
    )
    .await;
    let (said, after) = to_the_end(lb.data(), &chat("chat", false)).await;
    assert!(said.starts_with("HTTP/1.1 200 "), "{said}");
    assert!(after >= 3 * LIMIT, "idle is not a slow head: {after:?}");
}

// [HTTP-24]
#[tokio::test]
async fn a_client_that_takes_nothing_is_cut_and_its_upstream_with_it() {
    let endless = Script::stream().token("a").then(lb_tests::provider::Step::Repeat(
        format!("8000\r\n{}\r\n", ":".repeat(0x8000)).into(),
        10_000,
    ));
    let (provider, lb) = start(endless, &["write_timeout_ms: 300"]).await;
    let mut stream = TcpStream::connect(lb.data()).await.unwrap();
    stream.write_all(&chat("chat", true)).await.unwrap();
    let begun = Instant::now();
    let left = provider.left(0).await;
    assert!(left.duration_since(begun) >= LIMIT);
    lb.idle().await;
    drop(stream);
}
