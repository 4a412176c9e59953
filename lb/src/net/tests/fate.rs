//! What the kernel plane asks for, carried out by the connections.

use std::os::fd::AsRawFd as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt as _;

use super::dial::full_listener;
use super::{CONNECT, EMPTY, LIMITS, Upstream, eventually, get, text, until_error};
use crate::net::{BodyError, Client, Destination, Error, Fates, SocketHook, reach};
use crate::policy::connection::{Phase, Remedy};

/// A client whose every socket is followed; cookies count from 1.
pub(super) struct Rig {
    pub(super) fates: Arc<Fates>,
    hook: SocketHook,
    sockets: Arc<Mutex<u64>>,
}

impl Rig {
    pub(super) fn new() -> Self {
        let (fates, sockets) = (Arc::new(Fates::default()), Arc::new(Mutex::new(0)));
        let hook: SocketHook = {
            let (fates, sockets) = (Arc::clone(&fates), Arc::clone(&sockets));
            Arc::new(move |_, socket| {
                assert!(socket.as_raw_fd() >= 0);
                let mut sockets = sockets.lock().unwrap();
                *sockets += 1;
                Some(fates.follow(*sockets))
            })
        };
        Self { fates, hook, sockets }
    }

    fn client(&self) -> Client {
        Client::new(0, Some(Arc::clone(&self.hook)))
    }

    pub(super) fn sockets(&self) -> u64 {
        *self.sockets.lock().unwrap()
    }

    pub(super) async fn ask(&self, destination: &Arc<Destination>) -> Result<crate::net::Incoming, Error> {
        let (client, request) = (self.client(), get());
        let response = client.send(&request, destination, false, CONNECT).await?;
        Ok(response.into_body())
    }
}

const HALF: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";

// [NET-22]
#[tokio::test]
async fn the_plane_is_told_what_a_connection_is_doing() {
    let (rig, upstream) = (Rig::new(), Upstream::new().await);
    let destination = upstream.destination();
    let phase = || rig.fates.phase(1);
    let (body, mut peer) = tokio::join!(rig.ask(&destination), async {
        let mut peer = upstream.accept().await;
        peer.request().await;
        assert_eq!(phase(), Some(Phase::Waiting));
        peer.send(HALF).await;
        peer
    });
    assert_eq!(phase(), Some(Phase::Streaming));
    peer.send("world").await;
    assert_eq!(text(body.unwrap()).await.unwrap(), "helloworld");
    assert_eq!(phase(), Some(Phase::Idle));
    assert_eq!(rig.fates.phase(2), None);
}

// [NET-22]
#[tokio::test(start_paused = true)]
async fn a_connection_that_has_ended_is_known_for_a_second() {
    let (rig, upstream) = (Rig::new(), Upstream::new().await);
    let destination = upstream.destination();
    let (body, _peer) = tokio::join!(rig.ask(&destination), upstream.answer(HALF));
    drop(body);
    tokio::time::advance(Duration::from_millis(999)).await;
    rig.fates.sweep();
    assert_eq!(rig.fates.phase(1), Some(Phase::Streaming));
    tokio::time::advance(Duration::from_millis(1)).await;
    rig.fates.sweep();
    assert_eq!(rig.fates.phase(1), None);
}

// [NET-23]
#[tokio::test]
async fn an_attempt_without_an_answer_ends_at_once() {
    let (rig, upstream) = (Rig::new(), Upstream::new().await);
    let destination = upstream.destination();
    let (ended, left) = tokio::join!(rig.ask(&destination), async {
        let mut peer = upstream.accept().await;
        peer.request().await;
        // Neither of these is strong enough.
        rig.fates.apply(1, Remedy::Poison);
        rig.fates.apply(1, Remedy::Close);
        tokio::task::yield_now().await;
        rig.fates.apply(1, Remedy::FailOver);
        peer.closed().await
    });
    assert!(matches!(ended, Err(Error::Signalled)), "{ended:?}");
    assert_eq!((left, destination.open()), (0, 0));
}

// [NET-23]
#[tokio::test]
async fn a_response_under_way_goes_on_until_it_is_to_end() {
    let (rig, upstream) = (Rig::new(), Upstream::new().await);
    let destination = upstream.destination();
    let (body, mut peer) = tokio::join!(rig.ask(&destination), upstream.answer(HALF));
    let mut body = body.unwrap();
    // What was meant for the attempt before its answer came says no more than not to use the connection again.
    rig.fates.apply(1, Remedy::FailOver);
    peer.send("wor").await;
    for expected in ["hello", "wor"] {
        let frame = body.frame().await.unwrap().unwrap();
        assert_eq!(frame.data_ref().unwrap(), expected);
    }
    let (ended, ()) = tokio::join!(until_error(body), async {
        tokio::task::yield_now().await;
        rig.fates.apply(1, Remedy::End);
    });
    assert!(matches!(ended.1, BodyError::Signalled), "{ended:?}");
    peer.closed().await;
}

// [NET-23]
#[tokio::test]
async fn a_connection_that_is_not_trusted_is_not_used_again() {
    let (rig, upstream) = (Rig::new(), Upstream::new().await);
    let destination = upstream.destination();
    let (body, peer) = tokio::join!(rig.ask(&destination), upstream.answer(EMPTY));
    assert_eq!(text(body.unwrap()).await.unwrap(), "");
    // Idle: it is closed before anyone takes it.
    rig.fates.apply(1, Remedy::Close);
    destination.sweep();
    assert_eq!((peer.closed().await, destination.idle()), (0, 0));

    let (body, peer) = tokio::join!(rig.ask(&destination), upstream.answer(HALF));
    let mut peer = peer;
    rig.fates.apply(2, Remedy::Poison);
    peer.send("world").await;
    assert_eq!(text(body.unwrap()).await.unwrap(), "helloworld");
    assert_eq!((peer.closed().await, destination.open()), (0, 0));
    assert_eq!(rig.sockets(), 2);
}

// [NET-24]
#[tokio::test]
async fn an_address_that_the_plane_gives_up_leaves_the_next_one_all_of_its_time() {
    let (rig, upstream, silent) = (Rig::new(), Upstream::new().await, full_listener());
    let addresses = [silent.address, upstream.address()];
    let destination = Arc::new(Destination::new(&addresses, None, LIMITS, 1));
    let (body, _peer, ()) = tokio::join!(rig.ask(&destination), upstream.answer(EMPTY), async {
        eventually(|| rig.fates.phase(1) == Some(Phase::Connecting)).await;
        rig.fates.apply(1, Remedy::FailOver);
    });
    assert!(body.is_ok(), "{body:?}");
    assert_eq!(rig.sockets(), 2);

    let alone = Arc::new(Destination::new(&[silent.address], None, LIMITS, 1));
    let (ended, ()) = tokio::join!(rig.ask(&alone), async {
        eventually(|| rig.fates.phase(3).is_some()).await;
        rig.fates.apply(3, Remedy::FailOver);
    });
    assert!(matches!(ended, Err(Error::Abandoned)), "{ended:?}");
    assert_eq!(alone.open(), 0);
}

// [NET-24]
#[tokio::test]
async fn reaching_a_destination_is_a_followed_connection_and_nothing_else() {
    let (rig, upstream) = (Rig::new(), Upstream::new().await);
    let destination = upstream.destination();
    let reached = reach(&destination, Some(&rig.hook), CONNECT);
    let (reached, peer) = tokio::join!(reached, upstream.accept());
    assert!(reached.is_ok(), "{reached:?}");
    assert_eq!(peer.closed().await, 0);
    assert_eq!((rig.sockets(), destination.open()), (1, 0));
    let nowhere = Destination::new(&[], None, LIMITS, 1);
    assert!(matches!(reach(&nowhere, None, CONNECT).await, Err(Error::Dns)));
}

#[test]
fn a_destination_keeps_its_number() {
    let destination = Destination::new(&[], None, LIMITS, 1);
    assert_eq!(destination.slot(), None);
    destination.follow_as(7);
    destination.follow_as(8);
    assert_eq!(destination.slot(), Some(7));
}
