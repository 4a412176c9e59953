//! The client against upstreams that do exactly what a test says, over real sockets.

mod cancel;
mod dial;
mod early;
mod failures;
mod fate;
mod http2;
mod pool;
mod responses;
mod streamed;

use std::net::SocketAddr;
use std::ops::DerefMut;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Response};
use http_body_util::BodyExt as _;
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::{BodyError, Client, Destination, Error, Incoming, Limits, Request};

static TARGET: LazyLock<PathAndQuery> = LazyLock::new(|| PathAndQuery::from_static("/v1/x?a=b"));
static HOST: LazyLock<HeaderValue> = LazyLock::new(|| HeaderValue::from_static("up.example"));
static HEADERS: LazyLock<HeaderMap> = LazyLock::new(HeaderMap::new);

pub(super) const CONNECT: Duration = Duration::from_secs(5);

pub(super) const LIMITS: Limits = Limits {
    idle_timeout: Duration::from_secs(4),
    max_age: None,
    max_idle: 64,
    max_open: 0,
    max_streams: 64,
};

pub(super) fn post(body: &[Bytes]) -> Request<'_> {
    Request {
        method: &Method::POST,
        target: &TARGET,
        host: &HOST,
        headers: (&*HEADERS).into(),
        body: Some(body),
        trailers: None,
        takes_trailers: false,
        interims: None,
        upgrade: None,
    }
}

pub(super) fn get() -> Request<'static> {
    Request {
        method: &Method::GET,
        target: &TARGET,
        host: &HOST,
        headers: (&*HEADERS).into(),
        body: None,
        trailers: None,
        takes_trailers: false,
        interims: None,
        upgrade: None,
    }
}

pub(super) fn client() -> Client {
    Client::new(0, None)
}

/// One GET by a connection from the pool, or a new one.
pub(super) async fn send(destination: &Arc<Destination>) -> Result<Response<Incoming>, Error> {
    client().send(&get(), destination, false, CONNECT).await
}

/// The whole body as text, or how it broke.
pub(super) async fn text(body: Incoming) -> Result<String, BodyError> {
    let bytes = body.collect().await?.to_bytes();
    Ok(String::from_utf8(bytes.to_vec()).expect("tests send text"))
}

/// Payload until the first error, and the error.
pub(super) async fn until_error(mut body: Incoming) -> (String, BodyError) {
    let mut payload = Vec::new();
    loop {
        match body.frame().await.expect("the body breaks before it ends") {
            Ok(frame) => payload.extend_from_slice(frame.data_ref().expect("no trailers here")),
            Err(error) => return (String::from_utf8(payload).unwrap(), error),
        }
    }
}

/// Yields until something holds that only the runtime's I/O can bring about.
pub(super) async fn eventually(mut holds: impl FnMut() -> bool) {
    let all = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), all)
        .await
        .expect("it holds within ten seconds");
}

/// What comes of a future that has to be ready.
pub(super) fn now<T>(future: Pin<impl DerefMut<Target: Future<Output = T>>>) -> Option<T> {
    let mut future = future;
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

/// A listening upstream.
pub(super) struct Upstream(TcpListener);

impl Upstream {
    pub(super) async fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }

    pub(super) fn destination(&self) -> Arc<Destination> {
        self.limited(LIMITS)
    }

    pub(super) fn limited(&self, limits: Limits) -> Arc<Destination> {
        Arc::new(Destination::new(&[self.address()], None, limits, 1))
    }

    pub(super) async fn accept(&self) -> Peer {
        Peer(self.0.accept().await.unwrap().0)
    }

    /// Accepts, reads a request and sends these bytes.
    pub(super) async fn answer(&self, response: &str) -> Peer {
        let mut peer = self.accept().await;
        peer.answer(response).await;
        peer
    }

    /// A destination with one idle connection, and that connection's other end.
    pub(super) async fn warm(&self) -> (Arc<Destination>, Peer) {
        let destination = self.destination();
        let peer = self.warm_up(&destination).await;
        (destination, peer)
    }

    /// Makes one request on a new connection, which is idle afterwards.
    pub(super) async fn warm_up(&self, destination: &Arc<Destination>) -> Peer {
        let (client, request) = (client(), get());
        let send = client.send(&request, destination, true, CONNECT);
        let (response, peer) = tokio::join!(send, self.answer(EMPTY));
        assert_eq!(text(response.unwrap().into_body()).await.unwrap(), "");
        peer
    }
}

/// A response that leaves the connection idle.
pub(super) const EMPTY: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// The upstream's end of one connection.
pub(super) struct Peer(TcpStream);

impl Peer {
    /// Reads one request, by its content-length.
    pub(super) async fn request(&mut self) -> String {
        let mut request = Vec::new();
        loop {
            let read = self.0.read_buf(&mut request).await.unwrap();
            assert!(
                read > 0,
                "closed inside a request: {:?}",
                String::from_utf8_lossy(&request)
            );
            let text = String::from_utf8_lossy(&request);
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() == length.map_or(0, |length| length.parse().unwrap()) {
                return text.into_owned();
            }
        }
    }

    pub(super) async fn send(&mut self, response: &str) {
        self.0.write_all(response.as_bytes()).await.unwrap();
    }

    pub(super) async fn answer(&mut self, response: &str) {
        self.request().await;
        self.send(response).await;
    }

    /// Closes with a reset.
    pub(super) fn reset(self) {
        SockRef::from(&self.0).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Waits for the client's end of the connection; returns the bytes that came before it.
    pub(super) async fn closed(mut self) -> usize {
        let mut rest = Vec::new();
        // A reset is a close too.
        let _reset = self.0.read_to_end(&mut rest).await;
        rest.len()
    }
}

#[test]
fn requests_and_bodies_are_small_and_go_to_any_thread() {
    fn check<T: Send>(value: &T) -> usize {
        size_of_val(value)
    }
    let destination = Arc::new(Destination::new(&[], None, LIMITS, 1));
    let (client, request) = (client(), get());
    let sending = check(&client.send(&request, &destination, false, CONNECT));
    // A waiting request and an open stream hold these: growth shows here before it shows in memory.
    assert!(sending <= 600, "{sending}");
    assert!(size_of::<Incoming>() <= 256, "{}", size_of::<Incoming>());
}
