//! Idle connections.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;

use super::{CONNECT, EMPTY, LIMITS, Upstream, client, eventually, get, now, send, text};
use crate::net::{Client, Destination, Error, Limits};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// [NET-10]
#[tokio::test]
async fn a_connection_whose_body_was_read_to_its_end_is_used_again() {
    let upstream = Upstream::new().await;
    let (destination, mut peer) = upstream.warm().await;
    for _ in 0..3 {
        let (response, ()) = tokio::join!(send(&destination), peer.answer(OK));
        let response = response.unwrap();
        assert!(response.body().reused());
        assert_eq!(text(response.into_body()).await.unwrap(), "ok");
        assert_eq!((destination.open(), destination.idle()), (1, 1));
    }
}

// [NET-10]
#[tokio::test]
async fn a_connection_is_back_before_the_last_frame_is_looked_at() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let (response, _peer) = tokio::join!(send(&destination), upstream.answer(OK));
    let response = response.unwrap();
    assert_eq!(destination.idle(), 1);
    assert_eq!(text(response.into_body()).await.unwrap(), "ok");
}

// [NET-10]
#[tokio::test]
async fn a_connection_is_closed_where_either_side_says_so() {
    for raw in [
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ] {
        let upstream = Upstream::new().await;
        let destination = upstream.destination();
        let (response, peer) = tokio::join!(send(&destination), upstream.answer(raw));
        assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "ok");
        assert_eq!((destination.open(), destination.idle()), (0, 0));
        assert_eq!(peer.closed().await, 0);
    }
}

// [NET-15]
#[tokio::test]
async fn a_fresh_connection_is_asked_for_and_given() {
    let upstream = Upstream::new().await;
    let (destination, _idle) = upstream.warm().await;
    let client = client();
    let request = get();
    let (response, _peer) = tokio::join!(
        client.send(&request, &destination, true, CONNECT),
        upstream.answer(OK)
    );
    assert!(!response.unwrap().body().reused());
    assert_eq!((destination.open(), destination.idle()), (2, 2));
}

// [NET-17]
#[tokio::test]
async fn the_newest_idle_connection_is_taken_first() {
    let upstream = Upstream::new().await;
    let (destination, mut older) = upstream.warm().await;
    let mut newer = upstream.warm_up(&destination).await;
    let first = send(&destination);
    let (first, ()) = tokio::join!(
        first,
        newer.answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
    );
    let (second, ()) = tokio::join!(send(&destination), older.answer(OK));
    assert!(first.unwrap().body().reused() && second.unwrap().body().reused());
}

// [NET-17]
#[tokio::test]
async fn a_connection_that_closed_or_spoke_while_it_was_idle_is_not_taken() {
    for unasked in ["", "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"] {
        let upstream = Upstream::new().await;
        let (destination, mut peer) = upstream.warm().await;
        peer.send(unasked).await;
        if unasked.is_empty() {
            drop(peer);
        }
        eventually(|| {
            destination.sweep();
            destination.idle() == 0
        })
        .await;
        assert_eq!(destination.open(), 0);
    }
}

// [NET-17]
#[tokio::test]
async fn a_dead_connection_is_passed_over_for_a_live_one_below_it() {
    let upstream = Upstream::new().await;
    let (destination, mut older) = upstream.warm().await;
    let newer = upstream.warm_up(&destination).await;
    drop(newer);
    // Lets the runtime look at its sockets, as it does between any two requests.
    tokio::task::yield_now().await;
    let (response, ()) = tokio::join!(send(&destination), older.answer(OK));
    assert!(response.unwrap().body().reused());
    assert_eq!(destination.open(), 1);
}

// [NET-17]
#[tokio::test]
async fn a_connection_that_waited_too_long_is_not_taken() {
    let upstream = Upstream::new().await;
    let (destination, peer) = upstream.warm().await;
    tokio::time::pause();
    tokio::time::advance(LIMITS.idle_timeout.saturating_sub(Duration::from_millis(2))).await;
    destination.sweep();
    assert_eq!(destination.idle(), 1);
    tokio::time::advance(Duration::from_millis(2)).await;
    tokio::time::resume();
    let (response, _peer) = tokio::join!(send(&destination), upstream.answer(OK));
    assert!(!response.unwrap().body().reused());
    assert_eq!(peer.closed().await, 0);
}

// [NET-17]
#[tokio::test]
async fn a_sweep_closes_what_is_over_in_time_or_age() {
    let upstream = Upstream::new().await;
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
        let destination = upstream.limited(limits);
        let peer = upstream.warm_up(&destination).await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::time::resume();
        assert_eq!(destination.idle(), 1, "nothing but the sweep closes it");
        destination.sweep();
        assert_eq!((destination.open(), destination.idle()), (0, 0));
        assert_eq!(peer.closed().await, 0);
    }
}

// [NET-17]
#[tokio::test]
async fn an_aged_connection_is_not_kept_after_its_response() {
    let upstream = Upstream::new().await;
    let destination = upstream.limited(Limits {
        max_age: Some(Duration::from_secs(1)),
        ..LIMITS
    });
    let (response, mut peer) = tokio::join!(
        send(&destination),
        upstream.answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfi")
    );
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(1)).await;
    tokio::time::resume();
    peer.send("ne").await;
    assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "fine");
    assert_eq!((destination.open(), destination.idle()), (0, 0));
}

// [NET-17]
#[tokio::test]
async fn the_limit_on_idle_connections_holds_for_all_workers_together() {
    let upstream = Upstream::new().await;
    let limits = Limits {
        max_idle: 2,
        ..LIMITS
    };
    let destination = Arc::new(Destination::new(&[upstream.address()], None, limits, 2));
    let mut peers = Vec::new();
    for worker in [0, 0, 1, 0, 1] {
        let client = Client::new(worker, None);
        let request = get();
        let (response, peer) = tokio::join!(
            client.send(&request, &destination, true, CONNECT),
            upstream.answer(EMPTY)
        );
        drop(response.unwrap());
        peers.push(peer);
    }
    assert_eq!((destination.open(), destination.idle()), (2, 2));
    // The first worker's newest two: its oldest made room, and the other worker had nothing to give.
    let kept = [1, 3];
    for (number, mut peer) in peers.into_iter().enumerate().rev() {
        if kept.contains(&number) {
            let (response, ()) = tokio::join!(send(&destination), peer.answer("HTTP/1.1 200 OK\r\n\r\n"));
            assert!(response.unwrap().body().reused());
        } else {
            assert_eq!(peer.closed().await, 0);
        }
    }
}

// [NET-17]
#[tokio::test]
async fn a_worker_takes_no_connection_of_another() {
    let upstream = Upstream::new().await;
    let destination = Arc::new(Destination::new(&[upstream.address()], None, LIMITS, 2));
    let _idle = upstream.warm_up(&destination).await;
    let (client, request) = (Client::new(1, None), get());
    let (response, _peer) = tokio::join!(
        client.send(&request, &destination, false, CONNECT),
        upstream.answer(OK)
    );
    assert!(!response.unwrap().body().reused());
}

// [NET-18]
#[tokio::test]
async fn a_purge_closes_idle_connections_now_and_busy_ones_after_their_response() {
    let upstream = Upstream::new().await;
    let (destination, idle) = upstream.warm().await;
    let client = client();
    let request = get();
    let serve = upstream.answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfi");
    let (busy, mut peer) = tokio::join!(client.send(&request, &destination, true, CONNECT), serve);
    destination.purge();
    assert_eq!((destination.open(), destination.idle()), (1, 0));
    assert_eq!(idle.closed().await, 0);
    peer.send("ne").await;
    assert_eq!(text(busy.unwrap().into_body()).await.unwrap(), "fine");
    assert_eq!(destination.open(), 0);
    let _later = upstream.warm_up(&destination).await;
    assert_eq!(destination.idle(), 1, "connections made after the purge are kept");
}

// [NET-18]
#[tokio::test]
async fn connections_to_an_address_that_is_gone_take_no_new_request() {
    let (stays, goes) = (Upstream::new().await, Upstream::new().await);
    let destination = goes.destination();
    let gone = goes.warm_up(&destination).await;
    destination.set_addresses(&[stays.address(), goes.address()]);
    assert_eq!(
        destination.idle(),
        1,
        "an address more is no reason to close anything"
    );
    let mut kept = stays.warm_up(&destination).await;
    destination.set_addresses(&[stays.address()]);
    assert_eq!(gone.closed().await, 0);
    let (response, ()) = tokio::join!(send(&destination), kept.answer(OK));
    assert!(response.unwrap().body().reused());
    assert_eq!(
        (destination.open(), destination.idle()),
        (1, 1),
        "and what stayed can be used again and again"
    );
}

// [NET-21]
#[tokio::test]
async fn at_the_limit_on_connections_an_idle_one_makes_room_and_busy_ones_do_not() {
    let upstream = Upstream::new().await;
    let limits = Limits {
        max_open: 1,
        ..LIMITS
    };
    let destination = Arc::new(Destination::new(&[upstream.address()], None, limits, 2));
    let idle = upstream.warm_up(&destination).await;
    let (client, request) = (Client::new(1, None), get());
    let serve = upstream.answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    let (busy, _peer) = tokio::join!(client.send(&request, &destination, false, CONNECT), serve);
    let mut busy = busy.unwrap().into_body();
    assert_eq!(
        idle.closed().await,
        0,
        "the other worker's idle connection made room"
    );
    assert!(matches!(send(&destination).await, Err(Error::Full)));
    assert_eq!(destination.open(), 1);
    assert!(
        tokio::time::timeout(Duration::ZERO, busy.frame()).await.is_err(),
        "the busy one goes on"
    );
}

// [NET-21]
#[tokio::test]
async fn of_two_places_that_come_free_at_once_two_who_wait_are_told() {
    let upstream = Upstream::new().await;
    let pool = &upstream
        .limited(Limits {
            max_open: 2,
            ..LIMITS
        })
        .pool;
    let places = [pool.reserve(), pool.reserve()];
    assert!(places.iter().all(Option::is_some));
    // On two threads both may listen, look and find nothing before either waits.
    let (one, other) = (pool.freed(), pool.freed());
    assert!(pool.reserve().is_none());
    drop(places);
    assert!(now(one).is_some() && now(other).is_some());
}

// [NET-28]
#[test]
fn connections_are_made_for_those_who_wait_and_one_alone_before_it_is_known_whether_they_can_be_shared() {
    let destination = Destination::new(&[], None, LIMITS, 1);
    let waiting = [(); 5].map(|()| destination.pool.wait(0));
    let first = waiting[0].turn(2, true);
    assert!(first.is_some() && waiting[1].turn(2, true).is_none());
    let more = [1, 2].map(|at| waiting[at].turn(2, false));
    assert!(more.iter().all(Option::is_some), "three have room for five");
    assert!(waiting[3].turn(2, false).is_none());
    drop(first);
    assert!(waiting[3].turn(2, false).is_some());
    // As fewer wait, fewer are made.
    let [one, ..] = waiting;
    drop(one);
}
