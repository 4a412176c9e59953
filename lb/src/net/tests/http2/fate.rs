//! What the kernel plane asks for, where requests share the connection it speaks of.

use bytes::Bytes;

use super::super::fate::Rig;
use super::{Upstream, eventually, text, until_error};
use crate::net::{BodyError, Error};
use crate::policy::connection::{Phase, Remedy};

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

// [NET-22]
#[tokio::test]
async fn a_shared_connection_does_what_its_most_delicate_stream_does() {
    let (rig, upstream) = (Rig::new(), Upstream::new().await);
    let destination = upstream.destination();
    let phase = || rig.fates.phase(1);
    let (first, (mut sending, mut peer)) = tokio::join!(rig.ask(&destination), async {
        let mut peer = upstream.accept().await;
        (peer.answer().await, peer)
    });
    assert_eq!(phase(), Some(Phase::Streaming));
    let (second, ()) = tokio::join!(rig.ask(&destination), async {
        let (_, mut respond) = peer.next().await;
        assert_eq!(phase(), Some(Phase::Waiting), "though another streams");
        let mut body = respond.send_response(http::Response::new(()), false).unwrap();
        body.send_data(bytes("two"), true).unwrap();
    });
    assert_eq!(text(second.unwrap()).await.unwrap(), "two");
    assert_eq!(phase(), Some(Phase::Streaming));
    sending.send_data(bytes("one"), true).unwrap();
    assert_eq!(text(first.unwrap()).await.unwrap(), "one");
    assert_eq!(phase(), Some(Phase::Idle));
    // Idle: closed at once.
    rig.fates.apply(1, Remedy::Close);
    eventually(|| destination.open() == 0).await;
    destination.sweep();
    assert_eq!((rig.sockets(), destination.idle()), (1, 0));
}

// [NET-23]
#[tokio::test]
async fn a_shared_connection_that_is_not_trusted_takes_no_stream_and_finishes_those_it_has() {
    for remedy in [Remedy::Poison, Remedy::Close] {
        let (rig, upstream) = (Rig::new(), Upstream::new().await);
        let destination = upstream.destination();
        let (first, (mut sending, mut peer)) = tokio::join!(rig.ask(&destination), async {
            let mut peer = upstream.accept().await;
            (peer.answer().await, peer)
        });
        let (waiting, (next, _other)) = tokio::join!(rig.ask(&destination), async {
            let (_, mut respond) = peer.next().await;
            rig.fates.apply(1, remedy);
            // The connection's own task carries it out.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            let (asked, other) = tokio::join!(rig.ask(&destination), async {
                let mut other = upstream.accept().await;
                other.serve("new").await;
                other
            });
            let mut body = respond.send_response(http::Response::new(()), false).unwrap();
            body.send_data(bytes("late"), true).unwrap();
            (asked, other)
        });
        assert_eq!(text(next.unwrap()).await.unwrap(), "new", "{remedy:?}");
        assert_eq!(text(waiting.unwrap()).await.unwrap(), "late", "{remedy:?}");
        sending.send_data(bytes("one"), true).unwrap();
        assert_eq!(text(first.unwrap()).await.unwrap(), "one", "{remedy:?}");
        assert_eq!(rig.sockets(), 2, "{remedy:?}");
        eventually(|| destination.open() == 1).await;
    }
}

// [NET-23]
#[tokio::test]
async fn streams_without_a_head_fail_over_and_the_others_finish() {
    let (rig, upstream) = (Rig::new(), Upstream::new().await);
    let destination = upstream.destination();
    let (first, (mut sending, mut peer)) = tokio::join!(rig.ask(&destination), async {
        let mut peer = upstream.accept().await;
        (peer.answer().await, peer)
    });
    let (waiting, _respond) = tokio::join!(rig.ask(&destination), async {
        let stream = peer.next().await;
        rig.fates.apply(1, Remedy::FailOver);
        stream
    });
    assert!(matches!(waiting, Err(Error::Signalled)), "{waiting:?}");
    sending.send_data(bytes("one"), true).unwrap();
    assert_eq!(text(first.unwrap()).await.unwrap(), "one");
    destination.sweep();
    eventually(|| destination.open() == 0).await;
}

// [NET-23]
#[tokio::test]
async fn the_end_of_a_shared_connection_ends_all_its_streams_as_broken() {
    let (rig, upstream) = (Rig::new(), Upstream::new().await);
    let destination = upstream.destination();
    let (first, (mut sending, mut peer)) = tokio::join!(rig.ask(&destination), async {
        let mut peer = upstream.accept().await;
        (peer.answer().await, peer)
    });
    sending.send_data(bytes("half"), false).unwrap();
    let (waiting, _respond) = tokio::join!(rig.ask(&destination), async {
        let stream = peer.next().await;
        rig.fates.apply(1, Remedy::End);
        stream
    });
    assert!(matches!(waiting, Err(Error::Signalled)), "{waiting:?}");
    let (_, error) = until_error(first.unwrap()).await;
    assert!(matches!(error, BodyError::Signalled), "{error:?}");
    eventually(|| destination.open() == 0).await;
}
