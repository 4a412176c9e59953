use std::future::poll_fn;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::{Answer, LARGE, Written};
use crate::proxy::activity::Activity;
use crate::proxy::body::Body;
use crate::proxy::http1::link::Link;
use crate::proxy::socket::{Downstream, Socket};
use crate::wire::http1::ResponseBody;

/// A link and the client at its other end.
async fn pair() -> (Link, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let client = TcpStream::connect(listener.local_addr().expect("bound"));
    let (client, accepted) = tokio::join!(client, listener.accept());
    let activity = Arc::new(Activity::new(Instant::now()));
    let (socket, _watched) = Socket::new(accepted.expect("accepted").0, &activity);
    (Link::new(Downstream::Plain(socket)), client.expect("connected"))
}

/// What the client gets of a body of this length that is framed so, and how it went.
async fn sent(framing: ResponseBody, length: usize) -> (String, Written) {
    let (link, mut client) = pair().await;
    let body = Body::full(Bytes::from("x".repeat(length)));
    let mut answer = Answer::new(b"head ".to_vec(), body, framing, Vec::new());
    let answered = async {
        let written = poll_fn(|cx| answer.poll(&link, cx)).await.expect("written");
        drop(link);
        written
    };
    let mut got = String::new();
    let (written, read) = tokio::join!(answered, client.read_to_string(&mut got));
    read.expect("read to the end");
    (got, written)
}

#[tokio::test]
async fn a_body_is_framed_whatever_its_length() {
    for length in [1, 10, LARGE - 1, LARGE, 3_000_000] {
        let text = "x".repeat(length);
        for (framing, expected) in [
            (
                ResponseBody::Chunked,
                format!("head {length:x}\r\n{text}\r\n0\r\n\r\n"),
            ),
            (ResponseBody::Length(length as u64), format!("head {text}")),
            (ResponseBody::UntilClose, format!("head {text}")),
        ] {
            let (got, written) = sent(framing, length).await;
            assert!(matches!(written, Written::Whole), "{framing:?} of {length}");
            assert!(got == expected, "{framing:?} of {length}: {} bytes", got.len());
        }
    }
}

#[tokio::test]
async fn what_is_not_as_long_as_it_was_promised_is_cut() {
    let (got, written) = sent(ResponseBody::Length(11), 10).await;
    assert_eq!((got.as_str(), written), ("head xxxxxxxxxx", Written::Cut));
    // What is too much could be taken for the next response.
    let (got, written) = sent(ResponseBody::Length(9), 10).await;
    assert_eq!((got.as_str(), written), ("head ", Written::Cut));
}

#[tokio::test]
async fn a_response_without_a_body_asks_for_none() {
    let (got, written) = sent(ResponseBody::None, 10).await;
    assert_eq!((got.as_str(), written), ("head ", Written::Whole));
}
