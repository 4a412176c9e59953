//! Every way to have no response, by what the upstream can have seen of the request.

use std::time::Duration;

use super::{Upstream, send, text};
use crate::net::{Error, STALE_WITHIN};
use crate::wire::http1::Malformed;

// [NET-13]
#[tokio::test]
async fn a_new_connection_that_closes_without_a_word_leaves_the_request_unanswered() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let serve = async {
        let mut peer = upstream.accept().await;
        peer.request().await;
    };
    let (response, ()) = tokio::join!(send(&destination), serve);
    assert!(matches!(response, Err(Error::Unanswered(_))), "{response:?}");
    let serve = async {
        let mut peer = upstream.accept().await;
        peer.request().await;
        peer.reset();
    };
    let (response, ()) = tokio::join!(send(&destination), serve);
    assert!(matches!(response, Err(Error::Unanswered(_))), "{response:?}");
    assert_eq!((destination.open(), destination.idle()), (0, 0));
}

// [NET-14]
#[tokio::test]
async fn a_reused_connection_that_breaks_at_once_is_stale() {
    for reset in [false, true] {
        let upstream = Upstream::new().await;
        let (destination, mut peer) = upstream.warm().await;
        let serve = async {
            peer.request().await;
            if reset {
                peer.reset();
            }
        };
        let (response, ()) = tokio::join!(send(&destination), serve);
        assert!(matches!(response, Err(Error::Stale(_))), "{response:?}");
        assert_eq!((destination.open(), destination.idle()), (0, 0));
    }
}

/// How a request ends whose reused connection closes after this time.
async fn closed_after(wait: Duration) -> Error {
    let upstream = Upstream::new().await;
    let (destination, mut peer) = upstream.warm().await;
    tokio::time::pause();
    let serve = async {
        peer.request().await;
        tokio::time::advance(wait).await;
        drop(peer);
    };
    let (response, ()) = tokio::join!(send(&destination), serve);
    tokio::time::resume();
    response.unwrap_err()
}

// [NET-14]
#[tokio::test]
async fn a_reused_connection_that_breaks_later_leaves_the_request_unanswered() {
    let just = STALE_WITHIN.saturating_sub(Duration::from_millis(1));
    assert!(matches!(closed_after(just).await, Error::Stale(_)));
    assert!(matches!(closed_after(STALE_WITHIN).await, Error::Unanswered(_)));
}

// [NET-13]
#[tokio::test]
async fn a_connection_that_breaks_behind_the_first_response_byte_is_a_bad_response_and_never_stale() {
    for part in ["H", "HTTP/1.1 200 OK\r\nX-A", "HTTP/1.1 100 Continue\r\n\r\n"] {
        let upstream = Upstream::new().await;
        let (destination, mut peer) = upstream.warm().await;
        let serve = async {
            peer.answer(part).await;
            drop(peer);
        };
        let (response, ()) = tokio::join!(send(&destination), serve);
        assert!(
            matches!(response, Err(Error::BadResponse(Malformed::HeadCut))),
            "{part:?}: {response:?}"
        );
    }
}

// [NET-13]
#[tokio::test]
async fn what_is_not_http_is_a_bad_response() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let (response, peer) = tokio::join!(send(&destination), upstream.answer("SSH-2.0-OpenSSH_9.2\r\n"));
    assert!(
        matches!(response, Err(Error::BadResponse(Malformed::Head))),
        "{response:?}"
    );
    peer.closed().await;
}

// [NET-15]
#[tokio::test]
async fn nothing_is_repeated() {
    let upstream = Upstream::new().await;
    let (destination, mut peer) = upstream.warm().await;
    let serve = async {
        peer.request().await;
        drop(peer);
    };
    let (response, ()) = tokio::join!(send(&destination), serve);
    assert!(response.is_err());
    // The next connection to come is the next call's.
    let (response, peer) = tokio::join!(
        send(&destination),
        upstream.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
    );
    assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "hi");
    drop(destination);
    assert_eq!(peer.closed().await, 0, "and no other request was on it");
}

#[tokio::test]
async fn errors_say_what_happened() {
    let error = Error::Unanswered(std::io::ErrorKind::ConnectionReset.into());
    assert_eq!(error.to_string(), "no response: connection reset");
    assert_eq!(
        Error::BadResponse(Malformed::HeadCut).to_string(),
        "bad response: connection closed inside the response head"
    );
}
