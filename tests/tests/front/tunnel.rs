//! Connections that are switched to another protocol.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lb_tests::client::{Exchange, chat};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Signal};
use lb_tests::setup::Setup;
use rustix::process::Signal as Kill;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A server that switches to whatever it is asked for, says `hello` behind its head in one write, and sends back what it
/// gets. Gives the head of the request and when its peer had gone.
fn echo(listener: TcpListener) -> JoinHandle<(String, Instant)> {
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a head"));
        }
        let answer = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: x\r\n\r\nhello";
        stream.write_all(answer.as_bytes()).await.expect("open");
        let mut buffer = [0; 1024];
        while let Ok(length @ 1..) = stream.read(&mut buffer).await {
            stream.write_all(&buffer[..length]).await.expect("open");
        }
        (String::from_utf8(head).expect("text"), Instant::now())
    })
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    (listener, address)
}

const ASKED: &str = "GET /v1/realtime?model=chat HTTP/1.1\r\nhost: a\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\n\
                     sec-websocket-key: k\r\n\r\n";

async fn begin(lb: &Lb) -> Exchange {
    let mut exchange = Exchange::begin(lb.data(), format!("{ASKED}early ")).await;
    let head = exchange.head().await;
    assert_eq!(head.status, 101, "{}", head.text);
    assert_eq!(head.all("upgrade"), ["websocket"]);
    assert_eq!(head.all("connection"), ["upgrade"]);
    assert_eq!(head.all("sec-websocket-accept"), ["x"]);
    exchange.until("helloearly ").await;
    exchange
}

// HTTP checklist 23
// [TUNNEL-1] [TUNNEL-2] [TUNNEL-4] [PROXY-14]
#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways_and_is_a_request_in_flight_until_it_ends() {
    let (listener, address) = listen().await;
    let lb = Lb::start(&Setup::new().at("gpu", &[&format!("http://{address}/v1")])).await;
    let server = echo(listener);
    let mut exchange = begin(&lb).await;
    assert_eq!(lb.endpoint("gpu", 0).await["in_flight"], 1);
    assert_eq!(lb.sum("lb_inflight_requests", &["model=\"chat\""]).await, 1);
    exchange.send("\0\u{1}anything").await;
    exchange.until("\0\u{1}anything").await;
    exchange.half_close().await;
    assert!(exchange.closed().await, "both halves end");
    let (head, _) = server.await.expect("no panic");
    assert!(
        head.starts_with("GET /v1/realtime?model=gpu-model HTTP/1.1\r\n"),
        "{head}"
    );
    for line in [
        "connection: upgrade\r\n",
        "upgrade: websocket\r\n",
        "sec-websocket-key: k\r\n",
    ] {
        assert_eq!(head.to_lowercase().matches(line).count(), 1, "{line} in {head}");
    }
    lb.idle().await;
    assert_eq!(lb.sum("lb_requests_total", &["outcome=\"ok\""]).await, 1);
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "healthy");
}

// field fault D1
// [TUNNEL-4] [STREAM-14]
#[tokio::test]
async fn a_client_that_goes_takes_its_tunnel_with_it() {
    for reset in [false, true] {
        let (listener, address) = listen().await;
        let lb = Lb::start(&Setup::new().at("gpu", &[&format!("http://{address}/v1")])).await;
        let server = echo(listener);
        let exchange = begin(&lb).await;
        let leaving = Instant::now();
        if reset {
            exchange.reset();
        } else {
            drop(exchange);
        }
        let (_, gone) = server.await.expect("no panic");
        assert!(gone.saturating_duration_since(leaving) < Duration::from_secs(1));
        lb.idle().await;
    }
}

// [TUNNEL-3]
#[tokio::test]
async fn a_silent_tunnel_is_ended_after_the_idle_time() {
    let (listener, address) = listen().await;
    let setup = Setup::new().at("gpu", &[&format!("http://{address}/v1")]);
    let lb = Lb::start(&setup.section("failover: { stream_idle_timeout_ms: 300 }")).await;
    let server = echo(listener);
    let begun = Instant::now();
    let mut exchange = begin(&lb).await;
    assert!(exchange.closed().await);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    drop(server);
    lb.idle().await;
}

/// A server that switches, and closes in order as soon as more has come than it has read.
async fn hasty(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a head"));
        }
        let answer =
            "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\nhello";
        stream.write_all(answer.as_bytes()).await.expect("open");
        assert!(stream.peek(&mut [0]).await.expect("open") > 0);
        stream.write_all(b"bye").await.expect("open");
    }
}

// [TUNNEL-3]
#[tokio::test]
async fn a_client_that_sends_to_one_that_closes_does_not_have_it_ejected() {
    let (listener, address) = listen().await;
    let lb = Lb::start(&Setup::new().at("gpu", &[&format!("http://{address}/v1")])).await;
    let server = tokio::spawn(hasty(listener));
    for _ in 0..8 {
        let mut exchange = Exchange::begin(lb.data(), ASKED).await;
        assert_eq!(exchange.head().await.status, 101);
        exchange.until("hello").await;
        exchange.send("too much").await;
        assert!(exchange.until("bye").await.ends_with(b"bye"));
        assert!(exchange.closed().await);
    }
    lb.idle().await;
    let endpoint = lb.endpoint("gpu", 0).await;
    assert_eq!(
        (
            &endpoint["state"],
            &endpoint["consecutive_failures"],
            &endpoint["window_failures"]
        ),
        (&"healthy".into(), &0.into(), &0.into()),
        "{endpoint}"
    );
    server.abort();
}

// [TUNNEL-5]
#[tokio::test]
async fn before_the_101_it_is_a_request_like_any_other() {
    let (listener, address) = listen().await;
    let preferred = Provider::start(Script::error(503)).await;
    let setup = Setup::new()
        .at("gpu", &[&preferred.url()])
        .at("alt", &[&format!("http://{address}/v1")]);
    let lb = Lb::start(&setup).await;
    let server = echo(listener);
    drop(begin(&lb).await);
    let (head, _) = server.await.expect("no panic");
    assert!(head.contains("?model=alt-model "), "{head}");
    // What is answered without a switch is answered.
    let refusing = Provider::start(Script::error(426)).await;
    let lb = Lb::start(&Setup::single(&refusing)).await;
    assert_eq!(lb.ask(ASKED).await.status(), 426);
    assert_eq!(refusing.request(0).await.all("upgrade"), ["websocket"]);
    assert_eq!(lb.chat(false).await.status(), 426, "and the connection goes on");
}

// [TUNNEL-6]
#[tokio::test]
async fn a_drain_waits_for_a_tunnel_and_cuts_it_at_its_end() {
    let (listener, address) = listen().await;
    let setup = Setup::new().at("gpu", &[&format!("http://{address}/v1")]);
    let mut lb = Lb::start(&setup.server("drain_timeout_ms: 700")).await;
    let server = echo(listener);
    let mut exchange = begin(&lb).await;
    let begun = Instant::now();
    lb.signal(Kill::TERM);
    lb.logged(&["draining"]).await;
    exchange.send("still there").await;
    exchange.until("still there").await;
    assert!(exchange.closed().await);
    assert!(begun.elapsed() >= Duration::from_millis(600));
    assert!(lb.exit().await.success());
    drop(server);
}

// HTTP checklist 23
// [TUNNEL-1] [HTTP-9]
#[tokio::test]
async fn what_is_no_upgrade_for_others_goes_on_without_it() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let asked = |connection: &str, upgrade: &str| {
        format!(
            "GET /v1/realtime?model=chat HTTP/1.1\r\nhost: a\r\nconnection: {connection}\r\nupgrade: {upgrade}\r\n\r\n"
        )
    };
    for (connection, upgrade) in [
        ("upgrade, http2-settings", "h2c"),
        ("close", "websocket"),
        ("upgrade", "HTTP/3.0"),
    ] {
        let sent = provider.requests().len();
        assert_eq!(
            lb.ask(asked(connection, upgrade)).await.status(),
            200,
            "{upgrade}"
        );
        assert_eq!(provider.request(sent).await.header("upgrade"), None);
    }
}

// [TUNNEL-5]
#[tokio::test]
async fn a_client_that_goes_before_the_101_leaves_nothing_behind() {
    let signal = Signal::new();
    let provider = Provider::start(Script::silent().wait(&signal)).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let exchange = Exchange::begin(lb.data(), ASKED).await;
    provider.request(0).await;
    drop(exchange);
    provider.left(0).await;
    lb.idle().await;
    provider.otherwise(Script::completion("ok"));
    assert_eq!(lb.ask(chat("chat", false)).await.status(), 200);
}

// [ACCESS-1] [ACCESS-2]
#[tokio::test]
async fn the_line_of_a_tunnel_says_how_much_went_each_way_however_it_ended() {
    for (outcome, resets) in [("ok", false), ("cancelled", true)] {
        let (listener, address) = listen().await;
        let lb = Lb::start(&Setup::new().at("gpu", &[&format!("http://{address}/v1")])).await;
        let server = echo(listener);
        let mut exchange = begin(&lb).await;
        exchange.send("0123456789").await;
        exchange.until("0123456789").await;
        if resets {
            exchange.reset();
        } else {
            exchange.half_close().await;
            assert!(exchange.closed().await);
        }
        let line = lb.logged(&["\"request_id\"", "/v1/realtime"]).await;
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        let (up, down) = ("early 0123456789", "helloearly 0123456789");
        let said = ["outcome", "status", "bytes_in", "bytes_out"].map(|key| line[key].clone());
        assert_eq!(
            serde_json::json!(said),
            serde_json::json!([outcome, 101, up.len(), down.len()])
        );
        drop(server);
    }
}
