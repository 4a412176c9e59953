//! HTTP/2 upstreams, scripted frame by frame where that matters.

mod burst;
mod fate;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::{CONNECT, LIMITS, client, eventually, get, post, send, text, until_error};
use crate::net::{BodyError, Destination, Error, Limits, Protocol};
use crate::wire::http1::Malformed;

/// An upstream that speaks HTTP/2 by prior knowledge.
struct Upstream(TcpListener);

type Stream = (Request<RecvStream>, SendResponse<Bytes>);

/// One connection of it, driven by a task of its own.
struct Peer {
    streams: tokio::sync::mpsc::UnboundedReceiver<Stream>,
    commands: tokio::sync::mpsc::UnboundedSender<Command>,
    task: JoinHandle<Result<(), h2::Error>>,
}

enum Command {
    /// GOAWAY that lets nothing more in.
    Leave,
}

impl Upstream {
    async fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn destination(&self) -> Arc<Destination> {
        self.limited(LIMITS)
    }

    fn limited(&self, limits: Limits) -> Arc<Destination> {
        let address = self.0.local_addr().unwrap();
        Arc::new(Destination::new(&[address], None, limits, 1).speaking(Protocol::Http2))
    }

    async fn accept(&self) -> Peer {
        self.allowing(100).await
    }

    async fn allowing(&self, streams: u32) -> Peer {
        let (socket, _) = self.0.accept().await.unwrap();
        let mut builder = h2::server::Builder::new();
        let connection = builder.max_concurrent_streams(streams).handshake(socket);
        Peer::drive(connection.await.unwrap())
    }
}

impl Peer {
    fn drive(mut connection: Connection<TcpStream, Bytes>) -> Self {
        let (to_streams, streams) = tokio::sync::mpsc::unbounded_channel();
        let (commands, mut to_do) = tokio::sync::mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            loop {
                tokio::select! {
                    stream = connection.accept() => match stream {
                        Some(stream) => drop(to_streams.send(stream?)),
                        None => return Ok(()),
                    },
                    Some(Command::Leave) = to_do.recv() => connection.graceful_shutdown(),
                }
            }
        });
        Self {
            streams,
            commands,
            task,
        }
    }

    async fn next(&mut self) -> Stream {
        self.streams.recv().await.expect("another stream")
    }

    /// Takes the next request and begins to answer it.
    async fn answer(&mut self) -> SendStream<Bytes> {
        let (_, mut respond) = self.next().await;
        respond.send_response(Response::new(()), false).unwrap()
    }

    /// Takes the next request and answers it whole.
    async fn serve(&mut self, payload: &'static str) {
        let mut body = self.answer().await;
        body.send_data(Bytes::from_static(payload.as_bytes()), true)
            .unwrap();
    }

    /// Drops the socket without a word.
    fn die(self) {
        self.task.abort();
    }
}

/// Whether and why the client reset the stream.
async fn reset(body: &mut SendStream<Bytes>) -> Reason {
    std::future::poll_fn(|cx| body.poll_reset(cx)).await.unwrap()
}

// [NET-28]
#[tokio::test]
async fn requests_share_a_connection() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let serve = async {
        let mut peer = upstream.accept().await;
        let (request, mut respond) = peer.next().await;
        assert_eq!(request.uri(), "http://up.example/v1/x?a=b");
        assert_eq!(request.headers().len(), 0);
        let mut first = respond.send_response(Response::new(()), false).unwrap();
        first.send_data(Bytes::from_static(b"one"), false).unwrap();
        (peer, first)
    };
    let (response, (mut peer, mut first)) = tokio::join!(send(&destination), serve);
    let mut one = response.unwrap().into_body();
    assert!(!one.reused());
    let (two, ()) = tokio::join!(send(&destination), peer.serve("two"));
    let two = two.unwrap();
    assert!(two.body().reused());
    assert_eq!(text(two.into_body()).await.unwrap(), "two");
    assert_eq!((destination.open(), destination.idle()), (1, 0));
    assert_eq!(one.frame().await.unwrap().unwrap().into_data().unwrap(), "one");
    first.send_data(Bytes::new(), true).unwrap();
    assert_eq!(text(one).await.unwrap(), "");
    assert_eq!((destination.open(), destination.idle()), (1, 1));
}

// [NET-28]
#[tokio::test]
async fn a_burst_of_first_requests_makes_one_connection() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let serve = async {
        let mut peer = upstream.accept().await;
        for _ in 0..10 {
            peer.serve("ok").await;
        }
        peer
    };
    let asking = (0..10).map(|_| {
        let destination = Arc::clone(&destination);
        tokio::spawn(async move { text(send(&destination).await.unwrap().into_body()).await.unwrap() })
    });
    let asking: Vec<_> = asking.collect();
    let _peer = serve.await;
    for asked in asking {
        assert_eq!(asked.await.unwrap(), "ok");
    }
    assert_eq!(destination.open(), 1);
}

// [NET-28]
#[tokio::test]
async fn a_connection_carries_no_more_streams_than_either_side_allows() {
    for (ours, theirs) in [(2, 100), (64, 2)] {
        let upstream = Upstream::new().await;
        let destination = upstream.limited(Limits {
            max_streams: ours,
            ..LIMITS
        });
        let (first, (mut peer, _one)) = tokio::join!(send(&destination), async {
            let mut peer = upstream.allowing(theirs).await;
            let one = peer.answer().await;
            (peer, one)
        });
        let (second, _two) = tokio::join!(send(&destination), peer.answer());
        let (third, (_other, _three)) = tokio::join!(send(&destination), async {
            let mut peer = upstream.accept().await;
            let three = peer.answer().await;
            (peer, three)
        });
        let (_first, _second, third) = (first.unwrap(), second.unwrap(), third.unwrap());
        assert!(!third.body().reused());
        assert_eq!(destination.open(), 2, "{ours} {theirs}");
    }
}

// [NET-29]
#[tokio::test]
async fn a_stream_that_is_not_read_does_not_stop_the_others() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let mut peer = None;
    let mut stalled = Vec::new();
    let large = Bytes::from(vec![b'x'; 4 << 20]);
    for _ in 0..60 {
        let serve = async {
            if peer.is_none() {
                peer = Some(upstream.accept().await);
            }
            let mut body = peer.as_mut().unwrap().answer().await;
            body.send_data(large.clone(), true).unwrap();
            body
        };
        let (response, body) = tokio::join!(send(&destination), serve);
        stalled.push((response.unwrap(), body));
    }
    let mut peer = peer.unwrap();
    let (response, ()) = tokio::join!(send(&destination), peer.serve("fluent"));
    assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "fluent");
    let (response, _body) = stalled.pop().unwrap();
    let whole = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(whole.len(), large.len(), "and what is read goes on");
    assert_eq!(destination.open(), 1);
}

// [NET-11] [NET-30]
#[tokio::test]
async fn what_is_dropped_is_reset_and_the_connection_goes_on() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let (response, (mut peer, mut body)) = tokio::join!(send(&destination), async {
        let mut peer = upstream.accept().await;
        let body = peer.answer().await;
        (peer, body)
    });
    drop(response);
    assert_eq!(reset(&mut body).await, Reason::CANCEL);
    let waiting = async {
        let (_, respond) = peer.next().await;
        respond
    };
    let mut respond = tokio::select! {
        biased;
        _ = send(&destination) => panic!("nobody answers"),
        respond = waiting => respond,
    };
    let reason = std::future::poll_fn(|cx| respond.poll_reset(cx)).await.unwrap();
    assert_eq!(reason, Reason::CANCEL);
    assert_eq!((destination.open(), destination.idle()), (1, 1));
    let (response, ()) = tokio::join!(send(&destination), peer.serve("on"));
    assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "on");
}

// [NET-31]
#[tokio::test]
async fn a_connection_on_which_an_attempt_was_given_up_takes_no_other_and_finishes_its_streams() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let (response, (mut peer, mut body)) = tokio::join!(send(&destination), async {
        let mut peer = upstream.accept().await;
        let body = peer.answer().await;
        (peer, body)
    });
    let given_up = async {
        let stream = peer.next().await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::time::resume();
        stream
    };
    let _stream = tokio::select! {
        biased;
        _ = send(&destination) => panic!("nobody answers"),
        stream = given_up => stream,
    };
    let (other, _peer) = tokio::join!(send(&destination), async {
        let mut peer = upstream.accept().await;
        peer.serve("fresh").await;
        peer
    });
    assert_eq!(text(other.unwrap().into_body()).await.unwrap(), "fresh");
    body.send_data(Bytes::from_static(b"finished"), true).unwrap();
    assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "finished");
    eventually(|| destination.open() == 1).await;
}

// [NET-30]
#[tokio::test]
async fn a_reset_before_the_head_leaves_the_request_unanswered_and_the_connection_in_use() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let (response, mut peer) = tokio::join!(send(&destination), async {
        let mut peer = upstream.accept().await;
        let (_, mut respond) = peer.next().await;
        respond.send_reset(Reason::PROTOCOL_ERROR);
        peer
    });
    assert!(matches!(response, Err(Error::Unanswered(_))), "{response:?}");
    let (response, ()) = tokio::join!(send(&destination), peer.serve("on"));
    assert!(response.unwrap().body().reused());
}

// [NET-32]
#[tokio::test]
async fn a_refused_stream_has_not_been_looked_at() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let (first, mut peer) = tokio::join!(send(&destination), async {
        let mut peer = upstream.accept().await;
        peer.serve("ok").await;
        peer
    });
    assert_eq!(text(first.unwrap().into_body()).await.unwrap(), "ok");
    let (second, ()) = tokio::join!(send(&destination), async {
        let (_, mut respond) = peer.next().await;
        respond.send_reset(Reason::REFUSED_STREAM);
    });
    assert!(
        matches!(second, Err(Error::Refused { again: true, .. })),
        "{second:?}"
    );
    let (client, request) = (client(), get());
    let fresh = client.send(&request, &destination, true, CONNECT);
    let (third, _peer) = tokio::join!(fresh, async {
        let mut peer = upstream.accept().await;
        let (_, mut respond) = peer.next().await;
        respond.send_reset(Reason::REFUSED_STREAM);
        peer
    });
    assert!(
        matches!(third, Err(Error::Refused { again: false, .. })),
        "{third:?}"
    );
}

// [NET-32]
#[tokio::test]
async fn after_a_goaway_streams_finish_and_new_ones_go_elsewhere() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let (response, (mut peer, mut body)) = tokio::join!(send(&destination), async {
        let mut peer = upstream.accept().await;
        let body = peer.answer().await;
        (peer, body)
    });
    let mut response = response.unwrap().into_body();
    assert!(peer.commands.send(Command::Leave).is_ok());
    body.send_data(Bytes::from_static(b"first "), false).unwrap();
    assert_eq!(
        response.frame().await.unwrap().unwrap().into_data().unwrap(),
        "first "
    );
    // Where the GOAWAY has been seen before, the request goes to a fresh connection at once; else it is refused.
    let client = client();
    let request = get();
    let other = async {
        match client.send(&request, &destination, false, CONNECT).await {
            Err(Error::Refused { again: true, .. }) => {
                client.send(&request, &destination, true, CONNECT).await
            }
            answered => answered,
        }
    };
    let (other, _fresh) = tokio::join!(other, async {
        let mut fresh = upstream.accept().await;
        fresh.serve("elsewhere").await;
        fresh
    });
    assert_eq!(text(other.unwrap().into_body()).await.unwrap(), "elsewhere");
    body.send_data(Bytes::from_static(b"second"), true).unwrap();
    assert_eq!(text(response).await.unwrap(), "second");
    assert!(
        peer.streams.recv().await.is_none(),
        "the old connection got nothing more"
    );
    eventually(|| destination.open() == 1).await;
}

// [NET-12] [NET-30]
#[tokio::test]
async fn a_stream_that_is_cut_short_never_ends_cleanly() {
    for how in ["reset", "death", "short"] {
        let upstream = Upstream::new().await;
        let destination = upstream.destination();
        let (response, (peer, mut body)) = tokio::join!(send(&destination), async {
            let mut peer = upstream.accept().await;
            let (_, mut respond) = peer.next().await;
            let mut head = Response::new(());
            if how == "short" {
                head.headers_mut()
                    .insert("content-length", HeaderValue::from_static("9"));
            }
            let mut body = respond.send_response(head, false).unwrap();
            body.send_data(Bytes::from_static(b"part"), false).unwrap();
            (peer, body)
        });
        let mut response = response.unwrap().into_body();
        assert_eq!(
            response.frame().await.unwrap().unwrap().into_data().unwrap(),
            "part"
        );
        match how {
            "reset" => body.send_reset(Reason::INTERNAL_ERROR),
            "death" => peer.die(),
            _ => body.send_data(Bytes::new(), true).unwrap(),
        }
        let (seen, error) = until_error(response).await;
        assert_eq!(seen, "");
        assert!(matches!(error, BodyError::Stream(_)), "{how}: {error:?}");
        assert!(error.to_string().len() > "stream broke inside the response body: ".len());
    }
}

// [NET-14] [NET-32]
#[tokio::test]
async fn a_connection_that_died_meanwhile_costs_a_request_nothing() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let (first, peer) = tokio::join!(send(&destination), async {
        let mut peer = upstream.accept().await;
        peer.serve("ok").await;
        peer
    });
    assert_eq!(text(first.unwrap().into_body()).await.unwrap(), "ok");
    peer.die();
    let client = client();
    let request = get();
    let again = async {
        match client.send(&request, &destination, false, CONNECT).await {
            Err(Error::Refused { again: true, .. } | Error::Stale(_)) => {
                client.send(&request, &destination, true, CONNECT).await
            }
            answered => panic!("{answered:?}"),
        }
    };
    let (second, _peer) = tokio::join!(again, async {
        let mut peer = upstream.accept().await;
        peer.serve("alive").await;
        peer
    });
    assert_eq!(text(second.unwrap().into_body()).await.unwrap(), "alive");
}

// [NET-13]
#[tokio::test]
async fn an_upstream_that_speaks_something_else_is_a_bad_response() {
    let upstream = super::Upstream::new().await;
    let destination =
        Arc::new(Destination::new(&[upstream.address()], None, LIMITS, 1).speaking(Protocol::Http2));
    let (response, _peer) = tokio::join!(send(&destination), async {
        let mut peer = upstream.accept().await;
        peer.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .await;
        peer
    });
    assert!(
        matches!(response, Err(Error::BadResponse(Malformed::Http2))),
        "{response:?}"
    );
}

// [NET-6] [NET-7]
#[tokio::test]
async fn fields_and_trailers_pass_as_over_http1() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let headers = HeaderMap::from_iter(
        [
            ("te", "trailers"),
            ("x-a", "1"),
            ("expect", "100-continue"),
            ("content-length", "7"),
        ]
        .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))),
    );
    let body = [Bytes::from_static(b"ab"), Bytes::new(), Bytes::from_static(b"c")];
    let behind = HeaderMap::from_iter(
        [("x-end", "8"), ("host", "evil")]
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))),
    );
    let request = crate::net::Request {
        headers: (&headers).into(),
        trailers: Some(&behind),
        takes_trailers: true,
        ..post(&body)
    };
    let client = client();
    let sending = client.send(&request, &destination, false, CONNECT);
    let (response, _peer) = tokio::join!(sending, async {
        let mut peer = upstream.accept().await;
        let (request, mut respond) = peer.next().await;
        let fields: Vec<_> = request
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str(), value))
            .collect();
        assert_eq!(
            fields,
            [("x-a", "1"), ("te", "trailers"), ("content-length", "3")]
                .map(|(n, v)| (n, HeaderValue::from_static(v)))
                .iter()
                .map(|(n, v)| (*n, v))
                .collect::<Vec<_>>()
        );
        let mut sent = request.into_body();
        let mut seen = Vec::new();
        while let Some(data) = sent.data().await {
            seen.extend_from_slice(&data.unwrap());
        }
        assert_eq!(seen, b"abc");
        let trailers = sent.trailers().await.unwrap().expect("they follow");
        assert_eq!(
            trailers,
            HeaderMap::from_iter([("x-end".parse().unwrap(), HeaderValue::from_static("8"))])
        );
        let mut body = respond.send_response(Response::new(()), false).unwrap();
        body.send_data(Bytes::from_static(b"ok"), false).unwrap();
        let trailers = [("x-sum", "7"), ("content-length", "9")];
        let trailers = trailers.map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)));
        body.send_trailers(HeaderMap::from_iter(trailers)).unwrap();
        peer
    });
    let mut body = response.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "ok");
    let trailers = body.frame().await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(
        trailers,
        HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from_static("7"))])
    );
    assert!(body.is_end_stream());
    assert_eq!(destination.idle(), 1);
}

// [NET-16] [NET-30]
#[tokio::test]
async fn a_refusal_is_heard_while_a_large_body_is_being_sent() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let body = [Bytes::from(vec![b'x'; 32 << 20])];
    let (client, request) = (client(), post(&body));
    let sending = client.send(&request, &destination, false, CONNECT);
    let (response, (_peer, stream)) = tokio::join!(sending, async {
        let mut peer = upstream.accept().await;
        let (request, mut respond) = peer.next().await;
        let head = Response::builder()
            .status(StatusCode::PAYLOAD_TOO_LARGE)
            .body(())
            .unwrap();
        respond.send_response(head, true).unwrap();
        // What is sent is not read, so that the window closes.
        (peer, request.into_body())
    });
    assert_eq!(response.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
    drop(destination);
    drop(stream);
}

// [NET-17]
#[tokio::test]
async fn a_sweep_closes_shared_connections_that_are_over_in_time_or_age() {
    for limits in [
        Limits {
            idle_timeout: Duration::from_secs(1),
            ..LIMITS
        },
        Limits {
            max_age: Some(Duration::from_secs(1)),
            ..LIMITS
        },
    ] {
        let upstream = Upstream::new().await;
        let destination = upstream.limited(limits);
        let (response, peer) = tokio::join!(send(&destination), async {
            let mut peer = upstream.accept().await;
            peer.serve("ok").await;
            peer
        });
        assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "ok");
        destination.sweep();
        assert_eq!(destination.idle(), 1);
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::time::resume();
        destination.sweep();
        assert_eq!(destination.idle(), 0);
        assert!(peer.task.await.unwrap().is_ok(), "it ends in good order");
        eventually(|| destination.open() == 0).await;
    }
}

// [NET-18]
#[tokio::test]
async fn a_purge_lets_the_streams_of_a_shared_connection_finish() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let (response, (_peer, mut body)) = tokio::join!(send(&destination), async {
        let mut peer = upstream.accept().await;
        let body = peer.answer().await;
        (peer, body)
    });
    destination.purge();
    let (other, _other) = tokio::join!(send(&destination), async {
        let mut peer = upstream.accept().await;
        peer.serve("new").await;
        peer
    });
    assert_eq!(text(other.unwrap().into_body()).await.unwrap(), "new");
    body.send_data(Bytes::from_static(b"whole"), true).unwrap();
    assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "whole");
    eventually(|| destination.open() == 1).await;
}
