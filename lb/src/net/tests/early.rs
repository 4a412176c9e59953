//! Answers that come before the request has been read.

use bytes::Bytes;
use http::StatusCode;
use tokio::io::AsyncReadExt as _;

use super::{CONNECT, Upstream, client, post, text};

const LARGE: usize = 32 << 20;

// [NET-16]
#[tokio::test]
async fn a_refusal_is_heard_while_a_large_body_is_being_written() {
    for then_reset in [false, true] {
        let upstream = Upstream::new().await;
        let destination = upstream.destination();
        let body = [Bytes::from(vec![b'x'; LARGE])];
        let (client, request) = (client(), post(&body));
        let serve = async {
            let mut peer = upstream.accept().await;
            peer.0.read_exact(&mut [0; 1000]).await.unwrap();
            peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 5\r\n\r\nlarge")
                .await;
            if then_reset {
                drop(peer);
                None
            } else {
                Some(peer)
            }
        };
        let (response, peer) = tokio::join!(client.send(&request, &destination, false, CONNECT), serve);
        let response = response.unwrap();
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(text(response.into_body()).await.unwrap(), "large");
        assert_eq!(
            (destination.open(), destination.idle()),
            (0, 0),
            "half a request is on that connection"
        );
        if let Some(peer) = peer {
            assert!(peer.closed().await < LARGE, "the rest is not sent");
        }
    }
}

// [NET-16]
#[tokio::test]
async fn a_server_that_answers_while_it_reads_gets_the_whole_request() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let body = [
        Bytes::from(vec![b'x'; LARGE / 2]),
        Bytes::from(vec![b'y'; LARGE / 2]),
    ];
    let (client, request) = (client(), post(&body));
    let serve = async {
        let mut peer = upstream.accept().await;
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngoes\r\n")
            .await;
        let mut left =
            "POST /v1/x?a=b HTTP/1.1\r\nhost: up.example\r\ncontent-length: 33554432\r\n\r\n".len() + LARGE;
        let mut buffer = vec![0; 1 << 20];
        while left > 0 {
            let read = peer.0.read(&mut buffer).await.unwrap();
            assert!(read > 0, "closed with {left} bytes to come");
            left -= read;
        }
        peer.send("3\r\n on\r\n0\r\n\r\n").await;
        peer
    };
    let exchange = async {
        let response = client.send(&request, &destination, false, CONNECT).await.unwrap();
        text(response.into_body()).await.unwrap()
    };
    let (payload, _peer) = tokio::join!(exchange, serve);
    assert_eq!(payload, "goes on");
    assert_eq!(
        (destination.open(), destination.idle()),
        (1, 1),
        "both directions came to their end"
    );
}

// [NET-16]
#[tokio::test]
async fn a_connection_whose_request_was_not_taken_whole_is_not_kept() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let body = [Bytes::from(vec![b'x'; LARGE])];
    let (client, request) = (client(), post(&body));
    let serve = async {
        let mut peer = upstream.accept().await;
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine")
            .await;
        peer
    };
    let (response, peer) = tokio::join!(client.send(&request, &destination, false, CONNECT), serve);
    assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "fine");
    assert_eq!((destination.open(), destination.idle()), (0, 0));
    assert!(peer.closed().await < LARGE);
}
