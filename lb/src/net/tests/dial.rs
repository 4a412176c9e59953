//! New connections.

use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::io::Errno;
use socket2::{Domain, SockRef, Socket, Type};

use super::{CONNECT, EMPTY, LIMITS, Upstream, get, send};
use crate::net::dial::failed;
use crate::net::{Client, Destination, Error, SocketHook};

/// A listener that answers no SYN, because nobody accepts and its queue is full.
pub(super) struct FullListener {
    pub(super) address: SocketAddr,
    _sockets: Vec<Socket>,
}

pub(super) fn full_listener() -> FullListener {
    let socket = || Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let listener = socket();
    listener
        .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
        .unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut sockets = vec![listener];
    // A queue of length 0 holds one connection; the others' SYNs are dropped.
    for _ in 0..3 {
        let filler = socket();
        filler.set_nonblocking(true).unwrap();
        let _in_progress = filler.connect(&address);
        sockets.push(filler);
    }
    FullListener {
        address: address.as_socket().unwrap(),
        _sockets: sockets,
    }
}

/// An address that refuses connections, for as long as the socket lives.
fn refusing() -> (SocketAddr, Socket) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket
        .bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())
        .unwrap();
    (socket.local_addr().unwrap().as_socket().unwrap(), socket)
}

fn destination(addresses: &[SocketAddr]) -> Arc<Destination> {
    Arc::new(Destination::new(addresses, None, LIMITS, 1))
}

// [NET-13] [NET-19]
#[tokio::test]
async fn without_a_connection_nothing_was_sent() {
    let (address, _socket) = refusing();
    let refused = destination(&[address]);
    assert!(matches!(send(&refused).await, Err(Error::Connect(_))));
    assert!(matches!(send(&destination(&[])).await, Err(Error::Dns)));
    assert_eq!(refused.open(), 0);
}

// [NET-13] [NET-19]
#[tokio::test(start_paused = true)]
async fn a_connection_that_nobody_answers_times_out() {
    let listener = full_listener();
    let silent = destination(&[listener.address]);
    let begun = tokio::time::Instant::now();
    assert!(matches!(send(&silent).await, Err(Error::ConnectTimeout)));
    assert_eq!(begun.elapsed().as_secs(), CONNECT.as_secs());
    assert_eq!(silent.open(), 0);
}

// [NET-13]
#[test]
fn a_host_without_ports_descriptors_or_memory_says_nothing_of_the_upstream() {
    let kind = |errno: Errno| failed(errno.into());
    for errno in [
        Errno::ADDRNOTAVAIL,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
    ] {
        assert!(matches!(kind(errno), Error::Local(_)), "{errno}");
    }
    // The last is a socket file whose queue is full.
    for errno in [
        Errno::HOSTUNREACH,
        Errno::CONNREFUSED,
        Errno::TIMEDOUT,
        Errno::AGAIN,
    ] {
        assert!(matches!(kind(errno), Error::Connect(_)), "{errno}");
    }
}

// [NET-19]
#[tokio::test]
async fn addresses_are_tried_in_their_order() {
    let upstream = Upstream::new().await;
    let (address, _socket) = refusing();
    let destination = destination(&[address, upstream.address()]);
    let (response, _peer) = tokio::join!(send(&destination), upstream.answer(EMPTY));
    assert_eq!(response.unwrap().status(), 200);
}

// [NET-19]
#[tokio::test(start_paused = true)]
async fn an_address_that_does_not_answer_leaves_the_next_its_share_of_the_time() {
    let upstream = Upstream::new().await;
    let listener = full_listener();
    let destination = destination(&[listener.address, upstream.address()]);
    let begun = tokio::time::Instant::now();
    let (response, _peer) = tokio::join!(send(&destination), upstream.answer(EMPTY));
    assert_eq!(response.unwrap().status(), 200);
    assert_eq!(begun.elapsed().as_millis() / 100, CONNECT.as_millis() / 200);
}

// [NET-19]
#[tokio::test]
async fn the_hook_sees_each_socket_with_its_options_before_it_connects() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let calls = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(Mutex::new(None));
    let hook: SocketHook = {
        let (calls, seen, expected) = (
            Arc::clone(&calls),
            Arc::clone(&seen),
            Arc::downgrade(&destination),
        );
        Arc::new(move |destination, socket| {
            assert!(std::ptr::eq(destination, expected.as_ptr()));
            let options = SockRef::from(&socket);
            assert!(options.peer_addr().is_err(), "it is not connected yet");
            assert!(options.tcp_nodelay().unwrap() && options.keepalive().unwrap());
            assert_eq!(options.tcp_keepalive_time().unwrap(), Duration::from_secs(1));
            assert_eq!(options.tcp_keepalive_interval().unwrap(), Duration::from_secs(1));
            *seen.lock().unwrap() = options.tcp_user_timeout().unwrap();
            assert!(socket.as_raw_fd() >= 0);
            calls.fetch_add(1, Ordering::Relaxed);
            None
        })
    };
    let client = Client::new(0, Some(hook));
    let request = get();
    let (response, mut peer) = tokio::join!(
        client.send(&request, &destination, false, CONNECT),
        upstream.answer(EMPTY)
    );
    drop(response.unwrap());
    assert_eq!(*seen.lock().unwrap(), Some(Duration::from_secs(20)));
    let (response, ()) = tokio::join!(
        client.send(&request, &destination, false, CONNECT),
        peer.answer(EMPTY)
    );
    assert!(response.unwrap().body().reused());
    assert_eq!(
        calls.load(Ordering::Relaxed),
        1,
        "once a socket, not once a request"
    );
    assert_eq!(format!("{client:?}"), "Client { worker: 0, .. }");
}
