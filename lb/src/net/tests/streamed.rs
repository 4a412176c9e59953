//! Request bodies that are sent as they come, and connections that change hands.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::Frame;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{CONNECT, LIMITS, Upstream, client, get, post, text};
use crate::net::{Destination, Error, Streamed};

/// A body of what is sent to it, until its sender is gone.
struct Channel(UnboundedReceiver<Result<Frame<Bytes>, &'static str>>);

impl http_body::Body for Channel {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        self.0.poll_recv(cx)
    }
}

type Sender = UnboundedSender<Result<Frame<Bytes>, &'static str>>;

fn body(length: Option<u64>) -> (Sender, Option<Streamed>) {
    let (sender, receiver) = unbounded_channel();
    (sender, Some(Streamed::new(Channel(receiver), length)))
}

fn data(sender: &Sender, text: &'static str) {
    sender
        .send(Ok(Frame::data(Bytes::from_static(text.as_bytes()))))
        .unwrap();
}

const HEAD: &str = "POST /v1/x?a=b HTTP/1.1\r\nhost: up.example\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

async fn read(peer: &mut super::Peer, expected: &str) {
    let mut seen = vec![0; expected.len()];
    peer.0.read_exact(&mut seen).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&seen), expected);
}

// [NET-25]
#[tokio::test]
async fn a_body_is_sent_as_it_comes() {
    for (length, wire) in [
        (
            None,
            [
                "transfer-encoding: chunked\r\n\r\n",
                "5\r\nhello\r\n",
                "6\r\n world\r\n",
                "0\r\n\r\n",
            ],
        ),
        (Some(11), ["content-length: 11\r\n\r\n", "hello", " world", ""]),
    ] {
        let upstream = Upstream::new().await;
        let destination = upstream.destination();
        let (sender, mut body) = body(length);
        let (client, request) = (
            client(),
            super::Request {
                body: None,
                ..post(&[])
            },
        );
        let sending = client.send_streamed(&request, &mut body, &destination, false, CONNECT);
        let (response, _peer) = tokio::join!(sending, async {
            let mut peer = upstream.accept().await;
            read(&mut peer, HEAD).await;
            read(&mut peer, wire[0]).await;
            data(&sender, "hello");
            read(&mut peer, wire[1]).await;
            data(&sender, "");
            data(&sender, " world");
            read(&mut peer, wire[2]).await;
            drop(sender);
            read(&mut peer, wire[3]).await;
            peer.send(OK).await;
            peer
        });
        assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "ok");
        assert!(body.is_none());
        assert_eq!(
            destination.idle(),
            1,
            "all was sent, so the connection is good for more"
        );
    }
}

// [NET-25]
#[tokio::test]
async fn trailers_of_a_body_in_chunks_go_with_it() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let (sender, mut body) = body(None);
    data(&sender, "ab");
    let trailers = [("x-sum", "1"), ("host", "evil")];
    let trailers = trailers.map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
    sender
        .send(Ok(Frame::trailers(HeaderMap::from_iter(trailers))))
        .unwrap();
    let (client, request) = (client(), get());
    let sending = client.send_streamed(&request, &mut body, &destination, false, CONNECT);
    let (response, _peer) = tokio::join!(sending, async {
        let mut peer = upstream.accept().await;
        read(
            &mut peer,
            "GET /v1/x?a=b HTTP/1.1\r\nhost: up.example\r\ntransfer-encoding: chunked\r\n\r\n",
        )
        .await;
        read(&mut peer, "2\r\nab\r\n0\r\nx-sum: 1\r\n\r\n").await;
        peer.send(OK).await;
        peer
    });
    assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "ok");
}

// [NET-7] [NET-25]
#[tokio::test]
async fn trailers_of_a_body_that_is_held_go_behind_one_chunk_and_every_time_it_is_sent() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let trailers = HeaderMap::from_iter(
        [("x-sum", "1"), ("host", "evil")]
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))),
    );
    let large = [Bytes::from(vec![b'x'; 5000]), Bytes::from_static(b"y")];
    let small = [Bytes::from_static(b"a"), Bytes::new(), Bytes::from_static(b"b")];
    let head = "POST /v1/x?a=b HTTP/1.1\r\nhost: up.example\r\ntransfer-encoding: chunked\r\nte: trailers\r\nconnection: te\r\n\r\n";
    let long = format!("1389\r\n{}y", "x".repeat(5000));
    for (body, wire) in [(&small[..], "2\r\nab"), (&large, long.as_str()), (&[], "")] {
        let request = super::Request {
            trailers: Some(&trailers),
            takes_trailers: true,
            ..post(body)
        };
        let end = if body.is_empty() { "" } else { "\r\n" };
        let client = client();
        let sending = client.send(&request, &destination, true, CONNECT);
        let (response, _peer) = tokio::join!(sending, async {
            let mut peer = upstream.accept().await;
            read(&mut peer, head).await;
            read(&mut peer, &format!("{wire}{end}0\r\nx-sum: 1\r\n\r\n")).await;
            peer.send(OK).await;
            peer
        });
        assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "ok");
    }
}

// [NET-16] [NET-25]
#[tokio::test]
async fn a_refusal_stops_the_body_and_lets_go_of_it() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let (sender, mut body) = body(None);
    data(&sender, "some");
    let (client, request) = (client(), get());
    let sending = client.send_streamed(&request, &mut body, &destination, false, CONNECT);
    let (response, peer) = tokio::join!(sending, async {
        let mut peer = upstream.accept().await;
        read(&mut peer, HEAD.replace("POST", "GET").as_str()).await;
        peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
            .await;
        peer
    });
    let response = response.unwrap();
    assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert!(sender.is_closed(), "no more is wanted");
    assert_eq!(text(response.into_body()).await.unwrap(), "no");
    assert_eq!((destination.open(), destination.idle()), (0, 0));
    peer.closed().await;
}

// [NET-25]
#[tokio::test]
async fn a_body_that_breaks_off_or_lies_about_its_length_never_looks_complete() {
    for (length, sent, fault) in [
        (None, &["ab"][..], Some("gone")),
        (Some(5), &["ab"][..], None),
        (Some(3), &["ab", "cd"][..], None),
    ] {
        let upstream = Upstream::new().await;
        let destination = upstream.destination();
        let (sender, mut body) = body(length);
        for text in sent {
            data(&sender, text);
        }
        if let Some(fault) = fault {
            sender.send(Err(fault)).unwrap();
        }
        drop(sender);
        let (client, request) = (client(), get());
        let sending = client.send_streamed(&request, &mut body, &destination, false, CONNECT);
        let (response, seen) = tokio::join!(sending, async {
            let mut peer = upstream.accept().await;
            let mut seen = Vec::new();
            let _reset = peer.0.read_to_end(&mut seen).await;
            String::from_utf8(seen).unwrap()
        });
        assert!(matches!(response, Err(Error::Cut(_))), "{response:?}");
        assert!(!seen.ends_with("0\r\n\r\n"), "{seen:?}");
        assert_eq!(destination.open(), 0);
    }
}

// [NET-25]
#[tokio::test]
async fn a_body_that_met_no_connection_is_still_there() {
    let refusing = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    refusing.bind(&any.into()).unwrap();
    let address = refusing.local_addr().unwrap().as_socket().unwrap();
    let destination = Arc::new(Destination::new(&[address], None, LIMITS, 1));
    let (_sender, mut body) = body(None);
    let (client, request) = (client(), get());
    let sent = client
        .send_streamed(&request, &mut body, &destination, false, CONNECT)
        .await;
    assert!(matches!(sent, Err(Error::Connect(_))), "{sent:?}");
    assert!(body.is_some());
}

// [NET-25]
#[tokio::test]
async fn a_streamed_body_goes_by_a_fresh_connection() {
    let upstream = Upstream::new().await;
    let (destination, _idle) = upstream.warm().await;
    let (sender, mut body) = body(Some(0));
    drop(sender);
    let (client, request) = (client(), get());
    let sending = client.send_streamed(&request, &mut body, &destination, false, CONNECT);
    let (response, _peer) = tokio::join!(sending, upstream.answer(OK));
    assert!(!response.unwrap().body().reused());
}

// [NET-26]
#[tokio::test]
async fn a_body_that_is_to_be_asked_for_waits_for_it_or_for_a_second() {
    for asked in [true, false] {
        let upstream = Upstream::new().await;
        let destination = upstream.destination();
        let (sender, body) = body(Some(2));
        let mut body = body.map(Streamed::expecting_continue);
        data(&sender, "ab");
        let (client, request) = (client(), get());
        let sending = client.send_streamed(&request, &mut body, &destination, false, CONNECT);
        let (response, _peer) = tokio::join!(sending, async {
            let mut peer = upstream.accept().await;
            let head = "GET /v1/x?a=b HTTP/1.1\r\nhost: up.example\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n";
            read(&mut peer, head).await;
            let begun = tokio::time::Instant::now();
            let early = tokio::time::timeout(Duration::from_millis(20), peer.0.read_u8()).await;
            assert!(early.is_err(), "{early:?}");
            if asked {
                peer.send("HTTP/1.1 100 Continue\r\n\r\n").await;
            }
            read(&mut peer, "ab").await;
            assert_eq!(begun.elapsed() >= Duration::from_millis(900), !asked);
            peer.send(OK).await;
            peer
        });
        assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "ok");
    }
}

// [NET-26]
#[tokio::test]
async fn a_refused_body_that_was_to_be_asked_for_is_never_read() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let (sender, body) = body(None);
    let mut body = body.map(Streamed::expecting_continue);
    data(&sender, "never");
    let (client, request) = (client(), get());
    let sending = client.send_streamed(&request, &mut body, &destination, false, CONNECT);
    let (response, seen) = tokio::join!(sending, async {
        let mut peer = upstream.accept().await;
        let head = peer.request().await;
        peer.send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")
            .await;
        (head, peer.closed().await)
    });
    assert_eq!(response.unwrap().status(), StatusCode::EXPECTATION_FAILED);
    assert!(seen.0.contains("expect: 100-continue"));
    assert_eq!(seen.1, 0);
}

// [NET-27]
#[tokio::test]
async fn after_an_upgrade_the_connection_is_the_callers() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let websocket = HeaderValue::from_static("websocket");
    let request = super::Request {
        upgrade: Some(&websocket),
        ..get()
    };
    let client = client();
    let sending = client.send(&request, &destination, false, CONNECT);
    let (response, mut peer) = tokio::join!(sending, async {
        let mut peer = upstream.accept().await;
        assert!(
            peer.request()
                .await
                .contains("\r\nconnection: upgrade\r\nupgrade: websocket\r\n")
        );
        peer.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nearly")
            .await;
        peer
    });
    let response = response.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let mut raw = response.into_body().into_upgraded().unwrap();
    let mut seen = [0; 5];
    raw.read_exact(&mut seen).await.unwrap();
    assert_eq!(&seen, b"early");
    raw.write_all(b"up").await.unwrap();
    read(&mut peer, "up").await;
    peer.send("down!").await;
    raw.read_exact(&mut seen).await.unwrap();
    assert_eq!((&seen, destination.open()), (b"down!", 1));
    drop(raw);
    assert_eq!((peer.closed().await, destination.open()), (0, 0));
}

// [NET-27]
#[tokio::test]
async fn an_upgrade_that_is_answered_otherwise_is_an_ordinary_answer() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let websocket = HeaderValue::from_static("websocket");
    let request = super::Request {
        upgrade: Some(&websocket),
        ..get()
    };
    let client = client();
    let (response, _peer) = tokio::join!(
        client.send(&request, &destination, false, CONNECT),
        upstream.answer(OK)
    );
    assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "ok");
    assert_eq!(destination.idle(), 1);
}
