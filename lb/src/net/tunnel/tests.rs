use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use super::Proxy;
use crate::net::tests::{EMPTY, LIMITS, Peer, Upstream, send, text};
use crate::net::{Destination, Error};

fn through(upstream: &Upstream, proxy: Proxy) -> Arc<Destination> {
    Arc::new(Destination::new(&[upstream.address()], None, LIMITS, 1).through(proxy))
}

// [NET-33]
#[tokio::test]
async fn a_proxy_is_asked_for_a_tunnel_and_the_request_goes_through_it() {
    let proxy = Upstream::new().await;
    let asking = Proxy::new("up.example:8000", Some(("user", "pass:word")));
    assert_eq!(
        format!("{asking:?}"),
        "Proxy { target: \"up.example:8000\", credentials: true }"
    );
    let destination = through(&proxy, asking);
    let serve = async {
        let mut peer = proxy.accept().await;
        let asked = peer.request().await;
        assert_eq!(
            asked,
            "CONNECT up.example:8000 HTTP/1.1\r\nhost: up.example:8000\r\n\
             proxy-authorization: Basic dXNlcjpwYXNzOndvcmQ=\r\n\r\n"
        );
        peer.send("HTTP/1.1 200 Established\r\nVia: x\r\n\r\n").await;
        let sent = peer.request().await;
        assert!(
            sent.starts_with("GET /v1/x?a=b HTTP/1.1\r\nhost: up.example\r\n"),
            "{sent}"
        );
        assert!(!sent.contains("proxy-"), "{sent}");
        peer.send(EMPTY).await;
        peer
    };
    let (response, mut peer) = tokio::join!(send(&destination), serve);
    assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "");
    let (response, ()) = tokio::join!(send(&destination), peer.answer(EMPTY));
    assert!(
        response.unwrap().body().reused(),
        "a tunnel is kept as any connection"
    );
}

// [NET-33]
#[tokio::test]
async fn what_a_proxy_refuses_is_a_connection_that_was_not_made() {
    for (answer, why) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
            "the proxy answered 407",
        ),
        ("HTTP/1.1 502 Bad Gateway\r\n\r\n", "the proxy answered 502"),
        (
            "SOCKS\r\n\r\n",
            "the proxy's answer: not an HTTP/1.1 response head",
        ),
        (
            "HTTP/1.1 200 OK\r\n\r\nhello",
            "the proxy sent more than its answer",
        ),
        ("", "the proxy closed the connection"),
    ] {
        let proxy = Upstream::new().await;
        let destination = through(&proxy, Proxy::new("up.example:443", None));
        let serve = async {
            let mut peer: Peer = proxy.accept().await;
            assert!(!peer.request().await.contains("proxy-authorization"));
            peer.send(answer).await;
            (!answer.is_empty()).then_some(peer)
        };
        let (response, _peer) = tokio::join!(send(&destination), serve);
        let Err(Error::Connect(error)) = response else {
            panic!("{answer:?}: {response:?}")
        };
        assert_eq!(error.to_string(), why);
        assert_eq!(destination.open(), 0);
    }
}

// [NET-19] [NET-33]
#[tokio::test(start_paused = true)]
async fn a_proxy_that_says_nothing_uses_up_the_connect_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::new("up.example:443", None);
    let address = listener.local_addr().unwrap();
    let destination = Arc::new(Destination::new(&[address], None, LIMITS, 1).through(proxy));
    let begun = tokio::time::Instant::now();
    let (response, _peer) = tokio::join!(send(&destination), listener.accept());
    assert!(matches!(response, Err(Error::ConnectTimeout)), "{response:?}");
    assert!(
        begun.elapsed() < Duration::from_millis(5100),
        "{:?}",
        begun.elapsed()
    );
}
