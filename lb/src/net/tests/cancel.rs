//! A dropped request leaves nothing behind, in whatever phase it was.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt as _;

use super::dial::full_listener;
use super::{CONNECT, LIMITS, Upstream, client, post, send};
use crate::net::{Destination, Error, Protocol, Tls, tls};

/// Polls `send` until `done` is, and drops it then.
async fn drop_when<T>(send: impl Future<Output = Result<T, Error>>, done: impl Future<Output = ()>) {
    tokio::select! {
        biased;
        _ = send => panic!("the request ended before it was to be dropped"),
        () = done => {}
    }
}

fn all_zero(destination: &Destination) {
    assert_eq!((destination.open(), destination.idle()), (0, 0));
}

// [NET-11]
#[tokio::test]
async fn dropped_while_connecting() {
    let listener = full_listener();
    let destination = Arc::new(Destination::new(&[listener.address], None, LIMITS, 1));
    let busy = async {
        while destination.open() == 0 {
            tokio::task::yield_now().await;
        }
    };
    drop_when(send(&destination), busy).await;
    all_zero(&destination);
}

// [NET-11]
#[tokio::test]
async fn dropped_in_the_tls_handshake() {
    let upstream = Upstream::new().await;
    let tls = Arc::new(Tls::new("localhost", tls::Trust::Anyone, None, Protocol::Auto).unwrap());
    let destination = Arc::new(Destination::new(&[upstream.address()], Some(tls), LIMITS, 1));
    let mut accepted = None;
    drop_when(send(&destination), async {
        accepted = Some(upstream.accept().await);
    })
    .await;
    all_zero(&destination);
    accepted.unwrap().closed().await;
}

// [NET-11]
#[tokio::test]
async fn dropped_while_the_request_is_being_written() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let body = [Bytes::from(vec![b'x'; 32 << 20])];
    let (client, request) = (client(), post(&body));
    let mut accepted = None;
    let send = client.send(&request, &destination, false, CONNECT);
    drop_when(send, async { accepted = Some(upstream.accept().await) }).await;
    all_zero(&destination);
    assert!(
        accepted.unwrap().closed().await < 32 << 20,
        "the rest was not sent"
    );
}

// [NET-11]
#[tokio::test]
async fn dropped_while_waiting_for_the_answer() {
    let upstream = Upstream::new().await;
    let (destination, mut peer) = upstream.warm().await;
    drop_when(send(&destination), async {
        peer.request().await;
    })
    .await;
    all_zero(&destination);
    assert_eq!(peer.closed().await, 0);
}

// [NET-11]
#[tokio::test]
async fn dropped_inside_the_head() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let mut accepted = None;
    let serve = async { accepted = Some(upstream.answer("HTTP/1.1 200 OK\r\nX-A").await) };
    drop_when(send(&destination), serve).await;
    all_zero(&destination);
    assert_eq!(accepted.unwrap().closed().await, 0);
}

// [NET-10] [NET-11]
#[tokio::test]
async fn dropped_with_the_body_unread_or_half_read() {
    for frames in [0, 1] {
        let upstream = Upstream::new().await;
        let destination = upstream.destination();
        let raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n";
        let (response, peer) = tokio::join!(send(&destination), upstream.answer(raw));
        let mut body = response.unwrap().into_body();
        for _ in 0..frames {
            body.frame().await.unwrap().unwrap();
        }
        assert_eq!(destination.open(), 1);
        drop(body);
        all_zero(&destination);
        assert_eq!(peer.closed().await, 0);
    }
}

// [NET-11]
#[tokio::test]
async fn a_failed_body_has_closed_its_connection_before_it_is_dropped() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nbroken";
    let (response, peer) = tokio::join!(send(&destination), upstream.answer(raw));
    let mut body = response.unwrap().into_body();
    assert!(body.frame().await.unwrap().is_err());
    all_zero(&destination);
    peer.closed().await;
    assert!(body.frame().await.is_none(), "an error is the last frame");
}

// [NET-11]
#[tokio::test]
async fn idle_connections_close_with_their_destination() {
    let upstream = Upstream::new().await;
    let (destination, peer) = upstream.warm().await;
    assert_eq!(destination.idle(), 1);
    drop(destination);
    assert_eq!(peer.closed().await, 0);
}
