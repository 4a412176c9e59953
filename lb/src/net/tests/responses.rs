//! cases/http-checklist.md, section 3, as an upstream sees it.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;

use super::{CONNECT, EMPTY, Peer, Upstream, client, get, post, send, text, until_error};
use crate::net::{BodyError, Error, Incoming, Request};
use crate::wire::http1::Malformed;

/// One GET on a new connection, answered with these bytes.
async fn answered(raw: &str) -> (Result<http::Response<Incoming>, Error>, Peer, Upstream) {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let (response, peer) = tokio::join!(send(&destination), upstream.answer(raw));
    (response, peer, upstream)
}

#[tokio::test]
async fn a_request_is_sent_as_it_is_and_its_answer_read() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let headers = HeaderMap::from_iter([(http::header::ACCEPT, HeaderValue::from_static("*/*"))]);
    let body = [
        Bytes::from_static(b"{\"a\":"),
        Bytes::new(),
        Bytes::from_static(b"1}"),
    ];
    let request = Request {
        headers: (&headers).into(),
        ..post(&body)
    };
    let serve = async {
        let mut peer = upstream.accept().await;
        let request = peer.request().await;
        peer.send("HTTP/1.1 201 Created\r\nContent-Length: 2\r\nX-A: b\r\n\r\nok")
            .await;
        request
    };
    let client = client();
    let (response, seen) = tokio::join!(client.send(&request, &destination, false, CONNECT), serve);
    assert_eq!(
        seen,
        "POST /v1/x?a=b HTTP/1.1\r\nhost: up.example\r\naccept: */*\r\ncontent-length: 7\r\n\r\n{\"a\":1}"
    );
    let response = response.unwrap();
    assert_eq!(
        (response.status(), response.headers()["x-a"].as_bytes()),
        (StatusCode::CREATED, &b"b"[..])
    );
    assert!(!response.body().reused());
    assert_eq!(response.body().size_hint().exact(), Some(2));
    assert_eq!(text(response.into_body()).await.unwrap(), "ok");
}

// [NET-38]
#[tokio::test]
async fn a_method_that_is_about_a_body_says_that_there_is_none() {
    for (method, says) in [
        (Method::POST, true),
        (Method::PUT, true),
        (Method::PATCH, true),
        (Method::GET, false),
        (Method::DELETE, false),
        (Method::HEAD, false),
    ] {
        let upstream = Upstream::new().await;
        let destination = upstream.destination();
        let request = Request {
            method: &method,
            ..get()
        };
        let client = client();
        let (_response, seen) = tokio::join!(client.send(&request, &destination, false, CONNECT), async {
            upstream.accept().await.request().await
        });
        let length = if says { "content-length: 0\r\n" } else { "" };
        assert_eq!(
            seen,
            format!("{method} /v1/x?a=b HTTP/1.1\r\nhost: up.example\r\n{length}\r\n")
        );
    }
}

// [NET-5]
#[tokio::test]
async fn interim_responses_are_passed_over() {
    let raw = format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{EMPTY}");
    let (response, _peer, _upstream) = answered(&raw).await;
    assert_eq!(response.unwrap().status(), StatusCode::OK);
    let (response, _peer, _upstream) =
        answered("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n").await;
    assert!(matches!(response, Err(Error::BadResponse(Malformed::Upgrade))));
}

// [NET-1] [NET-9]
#[tokio::test]
async fn bytes_behind_a_response_cost_the_connection_and_not_the_response() {
    for raw in [
        "HTTP/1.1 204 No Content\r\n\r\nextra",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nextra",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nextra",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nextra",
    ] {
        let upstream = Upstream::new().await;
        let destination = upstream.destination();
        let (response, peer) = tokio::join!(send(&destination), upstream.answer(raw));
        let response = response.unwrap();
        assert!(response.body().is_end_stream(), "{raw:?}");
        assert_eq!(text(response.into_body()).await.unwrap(), "", "{raw:?}");
        assert_eq!((destination.open(), destination.idle()), (0, 0), "{raw:?}");
        assert_eq!(peer.closed().await, 0);
    }
}

// [NET-1]
#[tokio::test]
async fn the_answer_to_head_has_no_body() {
    let upstream = Upstream::new().await;
    let destination = upstream.destination();
    let request = Request {
        method: &Method::HEAD,
        ..get()
    };
    let client = client();
    let serve = upstream.answer("HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n");
    let (response, _peer) = tokio::join!(client.send(&request, &destination, false, CONNECT), serve);
    let response = response.unwrap();
    assert_eq!(response.headers()["content-length"], "999");
    assert!(response.body().is_end_stream());
    assert_eq!(destination.idle(), 1);
}

// [NET-2]
#[tokio::test]
async fn framing_that_is_not_clear_is_a_bad_response_and_closes_the_connection() {
    for (raw, fault) in [
        (
            "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            Malformed::ContentLength,
        ),
        (
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            Malformed::Ambiguous,
        ),
        ("Transfer-Encoding: gzip\r\n\r\n", Malformed::TransferEncoding),
    ] {
        let (response, peer, _upstream) = answered(&format!("HTTP/1.1 200 OK\r\n{raw}")).await;
        assert!(
            matches!(response, Err(Error::BadResponse(found)) if found == fault),
            "{raw:?}"
        );
        peer.closed().await;
    }
}

// [NET-10]
#[tokio::test]
async fn a_body_may_end_with_its_connection() {
    let (response, mut peer, _upstream) = answered("HTTP/1.1 200 OK\r\n\r\nfirst ").await;
    peer.send("second").await;
    drop(peer);
    let response = response.unwrap();
    assert_eq!(response.body().size_hint().exact(), None);
    assert_eq!(text(response.into_body()).await.unwrap(), "first second");
}

// [NET-12]
#[tokio::test]
async fn a_body_that_is_cut_short_never_ends_cleanly() {
    for (raw, payload) in [
        ("Content-Length: 9\r\n\r\nshort", "short"),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", "short"),
        ("Transfer-Encoding: chunked\r\n\r\n9\r\nshort", "short"),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\n", "short"),
        (
            "Transfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n0\r\nx-t: 1\r\n",
            "short",
        ),
    ] {
        let (response, peer, _upstream) = answered(&format!("HTTP/1.1 200 OK\r\n{raw}")).await;
        drop(peer);
        let (seen, error) = until_error(response.unwrap().into_body()).await;
        assert_eq!(seen, payload, "{raw:?}");
        assert!(matches!(error, BodyError::Truncated), "{raw:?}: {error:?}");
    }
}

// [NET-12]
#[tokio::test]
async fn a_reset_is_an_error_even_where_a_close_would_be_the_end() {
    for raw in [
        "HTTP/1.1 200 OK\r\n\r\npart",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart",
    ] {
        let (response, peer, _upstream) = answered(raw).await;
        peer.reset();
        let (seen, error) = until_error(response.unwrap().into_body()).await;
        assert_eq!(seen, "part");
        assert!(matches!(error, BodyError::Reset(_)), "{error:?}");
    }
}

// [NET-12]
#[tokio::test]
async fn broken_chunks_end_the_body_behind_what_was_good() {
    let raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngood\r\nbroken";
    let (response, peer, _upstream) = answered(raw).await;
    let (seen, error) = until_error(response.unwrap().into_body()).await;
    assert_eq!(seen, "good");
    assert!(
        matches!(error, BodyError::Malformed(Malformed::ChunkSize)),
        "{error:?}"
    );
    peer.closed().await;
    let (response, _peer, _upstream) =
        answered("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nbroken").await;
    let (seen, error) = until_error(response.unwrap().into_body()).await;
    assert_eq!(
        (seen.as_str(), error.to_string().as_str()),
        ("", "bad response body: bad chunk size")
    );
}

// [NET-7]
#[tokio::test]
async fn trailers_come_as_a_frame_of_their_own() {
    let raw = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n\
               2\r\nok\r\n0\r\nX-Sum: 7\r\nContent-Length: 9\r\n\r\n";
    let (response, _peer, _upstream) = answered(raw).await;
    let mut body = response.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "ok");
    assert!(!body.is_end_stream());
    let trailers = body.frame().await.unwrap().unwrap().into_trailers().unwrap();
    assert_eq!(
        trailers,
        HeaderMap::from_iter([("x-sum".parse().unwrap(), HeaderValue::from_static("7"))])
    );
    assert!(body.is_end_stream());
    assert!(body.frame().await.is_none());
}

// [NET-4]
#[tokio::test]
async fn a_head_over_the_limits_is_a_bad_response() {
    let fields = "X-A: b\r\n".repeat(101);
    let (response, _peer, _upstream) = answered(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).await;
    assert!(matches!(
        response,
        Err(Error::BadResponse(Malformed::HeadTooLarge))
    ));
}

#[tokio::test]
async fn the_body_of_a_compressed_response_is_left_as_it_is() {
    let (response, _peer, _upstream) =
        answered("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc").await;
    let response = response.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert_eq!(text(response.into_body()).await.unwrap(), "abc");
}

// [NET-8]
#[tokio::test]
async fn each_read_is_one_frame_and_is_there_at_once() {
    let (response, mut peer, _upstream) =
        answered("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
    let mut body = response.unwrap().into_body();
    for event in ["data: 1\n\n", "data: 2\n\n"] {
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        peer.send(&chunk).await;
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), event);
    }
    peer.send("2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n").await;
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "abcd");
    assert!(body.is_end_stream());
}
