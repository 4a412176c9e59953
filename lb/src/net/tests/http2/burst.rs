//! More requests at a time than one connection has streams for.

use std::sync::Arc;
use std::time::Duration;

use http::Response;

use super::super::now;
use super::{CONNECT, Destination, Error, LIMITS, Limits, Peer, Protocol, Upstream, client, get, send, text};
use crate::net::tests::Upstream as Listener;
use crate::net::tunnel::Proxy;
use crate::net::{Client, Incoming};

/// Behind a proxy, whose answer each connection waits for.
fn proxied(proxy: &Listener, max_streams: usize) -> Arc<Destination> {
    let limits = Limits {
        max_streams,
        ..LIMITS
    };
    let destination = Destination::new(&[proxy.address()], None, limits, 1);
    let through = Proxy::new("up.example:80", None);
    Arc::new(destination.speaking(Protocol::Http2).through(through))
}

/// Takes a connection, and says nothing yet.
async fn asked(proxy: &Listener) -> crate::net::tests::Peer {
    let mut peer = proxy.accept().await;
    assert!(peer.request().await.starts_with("CONNECT "));
    peer
}

async fn established(mut peer: crate::net::tests::Peer) -> Peer {
    peer.send("HTTP/1.1 200 Established\r\n\r\n").await;
    // A proxy that goes on at once is refused.
    peer.0.readable().await.unwrap();
    Peer::drive(h2::server::handshake(peer.0).await.unwrap())
}

/// All of them at once, in this order.
async fn all<T: Send + 'static>(
    futures: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = futures.map(tokio::spawn).collect();
    let mut ends = Vec::new();
    for task in tasks {
        ends.push(task.await.unwrap());
    }
    ends
}

/// Requests that begin at the same time.
fn burst(
    destination: &Arc<Destination>,
    count: usize,
    fresh: bool,
    limit: Duration,
) -> impl Future<Output = Vec<Result<Response<Incoming>, Error>>> + use<> {
    let destination = Arc::clone(destination);
    all((0..count).map(move |_| {
        let destination = Arc::clone(&destination);
        async move { client().send(&get(), &destination, fresh, limit).await }
    }))
}

/// Requests that begin at the same time and read what they get.
fn read(destination: &Arc<Destination>, count: usize) -> impl Future<Output = Vec<String>> + use<> {
    let destination = Arc::clone(destination);
    all((0..count).map(move |_| {
        let destination = Arc::clone(&destination);
        async move { whole(send(&destination).await).await }
    }))
}

async fn whole(response: Result<Response<Incoming>, Error>) -> String {
    text(response.unwrap().into_body()).await.unwrap()
}

// [NET-28]
#[tokio::test]
async fn as_many_connections_are_made_at_once_as_those_who_wait_can_fill() {
    let proxy = Listener::new().await;
    let destination = proxied(&proxy, 2);
    let asking = read(&destination, 15);
    let serving = async {
        // None of them is answered before all of them are there.
        let mut peers = Vec::new();
        for _ in 0..8 {
            peers.push(asked(&proxy).await);
        }
        all(peers.into_iter().map(async |peer| {
            let mut peer = established(peer).await;
            while let Some((_, mut respond)) = peer.streams.recv().await {
                let mut body = respond.send_response(Response::new(()), false).unwrap();
                body.send_data("ok".into(), true).unwrap();
            }
        }))
        .await
    };
    let answers = tokio::select! {
        answers = asking => answers,
        _ = serving => panic!("the connections stay"),
    };
    assert_eq!(answers, vec!["ok"; 15]);
    assert_eq!(destination.open(), 8);
}

// [NET-21] [NET-28]
#[tokio::test]
async fn who_ran_out_of_time_waiting_for_others_blames_the_upstream_only_if_it_gave_nobody_a_connection() {
    let limit = Duration::from_millis(300);
    let proxy = Listener::new().await;
    let destination = proxied(&proxy, 2);
    let asking = burst(&destination, 4, false, limit);
    let serving = async {
        let first = asked(&proxy).await;
        let silent = asked(&proxy).await;
        let mut first = established(first).await;
        let streams = [first.answer().await, first.answer().await];
        (first, streams, silent)
    };
    let (answers, _served) = tokio::join!(asking, serving);
    let ends: Vec<_> = answers.iter().map(|answer| answer.as_ref().err()).collect();
    // Two have streams, one makes a connection and gets none, and one waits for that.
    assert!(
        matches!(
            ends[..],
            [None, None, Some(Error::ConnectTimeout), Some(Error::Full)]
        ),
        "{ends:?}"
    );
    let destination = proxied(&proxy, 2);
    let asking = burst(&destination, 2, false, limit);
    let (answers, _silent) = tokio::join!(asking, asked(&proxy));
    for answer in answers {
        assert!(matches!(answer, Err(Error::ConnectTimeout)), "{answer:?}");
    }
}

// [NET-21]
#[tokio::test]
async fn at_the_limit_on_connections_a_stream_that_ends_makes_room() {
    let upstream = Upstream::new().await;
    let destination = upstream.limited(Limits {
        max_open: 1,
        max_streams: 2,
        ..LIMITS
    });
    let asking = read(&destination, 8);
    let serving = async {
        let mut peer = upstream.accept().await;
        for _ in 0..4 {
            let pair = [peer.answer().await, peer.answer().await];
            assert!(peer.streams.try_recv().is_err(), "no third at a time");
            for mut stream in pair {
                stream.send_data("ok".into(), true).unwrap();
            }
        }
        peer
    };
    let (answers, _peer) = tokio::join!(asking, serving);
    assert_eq!(answers, vec!["ok"; 8]);
}

// [NET-21]
#[tokio::test]
async fn at_the_limit_on_connections_one_without_streams_makes_room_for_another_workers() {
    let upstream = Upstream::new().await;
    let limits = Limits {
        max_open: 1,
        ..LIMITS
    };
    let address = upstream.0.local_addr().unwrap();
    let destination = Destination::new(&[address], None, limits, 2).speaking(Protocol::Http2);
    let destination = Arc::new(destination);
    let (busy, (_peer, mut stream)) = tokio::join!(send(&destination), async {
        let mut peer = upstream.accept().await;
        let stream = peer.answer().await;
        (peer, stream)
    });
    let (other, request) = (Client::new(1, None), get());
    let mut waiting = std::pin::pin!(other.send(&request, &destination, false, CONNECT));
    assert!(now(waiting.as_mut()).is_none());
    stream.send_data("done".into(), true).unwrap();
    assert_eq!(whole(busy).await, "done");
    let (answer, _peer) = tokio::join!(waiting, async {
        let mut peer = upstream.accept().await;
        peer.serve("ok").await;
        peer
    });
    assert_eq!(whole(answer).await, "ok");
}

// [NET-15] [NET-28]
#[tokio::test]
async fn those_who_want_a_fresh_connection_share_one_that_came_up_after_they_did() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let (first, mut old) = tokio::join!(send(&destination), async {
        let mut peer = upstream.accept().await;
        peer.serve("ok").await;
        peer
    });
    assert_eq!(whole(first).await, "ok");
    let asking = burst(&destination, 4, true, CONNECT);
    let (answers, _peer) = tokio::join!(asking, async {
        let mut peer = upstream.accept().await;
        for _ in 0..4 {
            peer.serve("fresh").await;
        }
        peer
    });
    for answer in answers {
        assert!(!answer.as_ref().unwrap().body().reused());
        assert_eq!(whole(answer).await, "fresh");
    }
    assert_eq!(destination.open(), 2);
    assert!(old.streams.try_recv().is_err());
}
