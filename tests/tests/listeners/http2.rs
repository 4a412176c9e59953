//! HTTP/2 towards clients.

use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};
use http::{Request, Response};
use lb_tests::PATIENCE;
use lb_tests::client::{chat, chat_body, get};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Script, Signal, Step};
use rustix::process::Signal as Unix;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::tls::Secured;
use super::{SHORT, start};

const LIMIT: Duration = Duration::from_millis(SHORT);

/// A client of HTTP/2 on a connection of its own.
struct Client {
    sender: SendRequest<Bytes>,
    connection: JoinHandle<Result<(), h2::Error>>,
}

impl Client {
    /// By prior knowledge.
    async fn plain(lb: &Lb) -> Self {
        Self::over(TcpStream::connect(lb.data()).await.unwrap(), &Builder::new()).await
    }

    async fn over<T>(io: T, builder: &Builder) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, connection) = builder.handshake(io).await.unwrap();
        Self {
            sender,
            connection: tokio::spawn(connection),
        }
    }

    /// Sends a request with this body.
    fn send(&mut self, request: Request<()>, body: String) -> ResponseFuture {
        let (response, mut stream) = self.sender.send_request(request, body.is_empty()).unwrap();
        if !body.is_empty() {
            stream.send_data(body.into(), true).unwrap();
        }
        response
    }

    fn chat(&mut self, stream: bool) -> ResponseFuture {
        self.send(
            request("http://lb.test/v1/chat/completions", &[]),
            chat_body("chat", stream),
        )
    }

    /// Waits for the connection's end.
    async fn end(self) -> Result<(), h2::Error> {
        timeout(PATIENCE, self.connection)
            .await
            .expect("an end in time")
            .unwrap()
    }
}

fn request(uri: &str, headers: &[(&str, &str)]) -> Request<()> {
    let builder = Request::post(uri).version(http::Version::HTTP_2);
    let builder = headers
        .iter()
        .fold(builder, |builder, (name, value)| builder.header(*name, *value));
    builder.body(()).unwrap()
}

async fn head(response: ResponseFuture) -> Response<RecvStream> {
    timeout(PATIENCE, response)
        .await
        .expect("a response in time")
        .unwrap()
}

/// The next bytes of a body, or the reason of its reset; `None` at its clean end.
async fn piece(body: &mut RecvStream) -> Option<Result<String, Option<Reason>>> {
    let data = timeout(PATIENCE, body.data()).await.expect("an end in time")?;
    Some(match data {
        Ok(data) => {
            body.flow_control().release_capacity(data.len()).unwrap();
            Ok(String::from_utf8(data.to_vec()).unwrap())
        }
        Err(error) => Err(error.reason()),
    })
}

/// The whole body, and the reason of its reset if it was.
async fn whole(response: Response<RecvStream>) -> (String, Option<Reason>) {
    let (mut body, mut text) = (response.into_body(), String::new());
    loop {
        match piece(&mut body).await {
            None => return (text, None),
            Some(Ok(data)) => text.push_str(&data),
            Some(Err(reason)) => return (text, reason),
        }
    }
}

// [HTTP-20]
#[tokio::test]
async fn one_plain_port_speaks_both_versions() {
    let (provider, lb) = start(Script::streamed(&["a", "b"]), &[]).await;
    let mut client = Client::plain(&lb).await;
    for _ in 0..2 {
        let response = head(client.chat(true)).await;
        assert_eq!(response.status(), 200);
        let (text, reset) = whole(response).await;
        assert!(text.ends_with("data: [DONE]\n\n") && reset.is_none(), "{text}");
    }
    assert_eq!(lb.ask(get("/v1/models")).await.status(), 200);
    assert_eq!(lb.chat(true).await.status(), 200);
    let seen = provider.request(0).await;
    assert_eq!(seen.all("x-forwarded-proto"), ["http"]);
    assert_eq!(seen.all("x-forwarded-host"), ["lb.test"]);
    assert_eq!(seen.all("host"), [provider.address().to_string()]);

    let (_provider, lb) = start(Script::completion("ok"), &["http2: false"]).await;
    let mut stream = TcpStream::connect(lb.data()).await.unwrap();
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .await
        .unwrap();
    let mut read = Vec::new();
    drop(
        timeout(PATIENCE, stream.read_to_end(&mut read))
            .await
            .expect("closed"),
    );
    assert!(read.is_empty() || read.starts_with(b"HTTP/1.1 400"), "{read:?}");
}

// [TLS-2]
#[tokio::test]
async fn over_tls_alpn_decides() {
    let secured = Secured::start(Script::streamed(&["a"]), &[]).await;
    let stream = secured.connect(&["h2", "http/1.1"]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let mut client = Client::over(stream, &Builder::new()).await;
    let (text, reset) = whole(head(client.chat(true)).await).await;
    assert!(text.ends_with("data: [DONE]\n\n") && reset.is_none(), "{text}");
    assert_eq!(
        secured.provider.request(0).await.all("x-forwarded-proto"),
        ["https"]
    );
}

// [HTTP-40]
#[tokio::test]
async fn a_reset_stream_ends_its_upstream_request_at_once_and_no_other() {
    let more = Signal::new();
    let (provider, lb) = start(Script::stream().token("a").then(Step::Stall), &[]).await;
    let mut client = Client::plain(&lb).await;
    // One that streams already, and one that waits for its head.
    let (response, mut stream) = client
        .sender
        .send_request(request("http://lb.test/v1/chat/completions", &[]), false)
        .unwrap();
    stream.send_data(chat_body("chat", true).into(), true).unwrap();
    let mut body = head(response).await.into_body();
    assert!(piece(&mut body).await.is_some_and(|data| data.is_ok()));
    provider.next(Script::silent().then(Step::Stall));
    let silent = client.chat(true);
    provider.request(1).await;
    provider.next(Script::stream().token("a").wait(&more).token("b").finish());
    let mut other = head(client.chat(true)).await.into_body();
    let gone = Instant::now();
    stream.send_reset(Reason::CANCEL);
    drop(silent);
    for number in [0, 1] {
        let after = provider.left(number).await.saturating_duration_since(gone);
        assert!(after < Duration::from_secs(1), "{number}: {after:?}");
    }
    more.fire();
    let mut text = String::new();
    while let Some(data) = piece(&mut other).await {
        text.push_str(&data.expect("the other stream goes on"));
    }
    assert!(text.contains("[DONE]"));
    lb.idle().await;
}

// [HTTP-40]
#[tokio::test]
async fn a_client_that_goes_ends_all_its_streams() {
    let (provider, lb) = start(Script::stream().token("a").then(Step::Stall), &[]).await;
    let mut client = Client::plain(&lb).await;
    let mut bodies = Vec::new();
    for _ in 0..3 {
        bodies.push(head(client.chat(true)).await.into_body());
    }
    provider.otherwise(Script::silent().then(Step::Stall));
    let waiting = client.chat(false);
    provider.request(3).await;
    let gone = Instant::now();
    client.connection.abort();
    for number in 0..4 {
        let after = provider.left(number).await.saturating_duration_since(gone);
        assert!(after < Duration::from_secs(1), "{number}: {after:?}");
    }
    drop((waiting, bodies));
    lb.idle().await;
}

// [HTTP-41]
#[tokio::test]
async fn a_truncated_answer_is_a_reset_behind_what_came_of_it() {
    let (provider, lb) = start(Script::stream().token("a").token("b").then(Step::Close), &[]).await;
    let mut client = Client::plain(&lb).await;
    // Not often enough for the breaker.
    for _ in 0..5 {
        let (text, reset) = whole(head(client.chat(true)).await).await;
        assert_eq!(text.matches("data:").count(), 2, "{text}");
        assert_eq!(reset, Some(Reason::INTERNAL_ERROR));
    }
    provider.otherwise(
        Script::head(200, &[("content-length", "100")])
            .bytes("half")
            .then(Step::Reset),
    );
    let (text, reset) = whole(head(client.chat(false)).await).await;
    assert!("half".starts_with(&text), "{text}");
    assert_eq!(reset, Some(Reason::INTERNAL_ERROR));
    provider.otherwise(Script::completion("ok"));
    assert_eq!(
        head(client.chat(false)).await.status(),
        200,
        "the connection goes on"
    );
}

// [HTTP-36]
#[tokio::test]
async fn what_a_head_may_not_say_over_http2_is_answered_with_400_and_the_connection_goes_on() {
    let (provider, lb) = start(Script::completion("ok"), &[]).await;
    let mut client = Client::plain(&lb).await;
    let path = "http://lb.test/v1/chat/completions";
    let cases = [
        request(path, &[("host", "other.test")]),
        request(path, &[("x", " padded")]),
        request(path, &[("x", "padded\t")]),
        request("http://user@lb.test/v1/chat/completions", &[]),
    ];
    for case in cases {
        let shown = format!("{case:?}");
        let response = head(client.send(case, chat_body("chat", false))).await;
        assert_eq!(response.status(), 400, "{shown}");
        let (text, _) = whole(response).await;
        assert!(text.contains("bad_request"), "{text}");
    }
    assert_eq!(provider.requests().len(), 0);
    let good = request(path, &[("host", "lb.test"), ("cookie", "a=1"), ("cookie", "b=2")]);
    assert_eq!(
        head(client.send(good, chat_body("chat", false))).await.status(),
        200
    );
}

// [HTTP-25]
#[tokio::test]
async fn an_idle_connection_is_closed_however_much_it_pings() {
    let (_provider, lb) = start(
        Script::completion("ok"),
        &["idle_timeout_ms: 600", "first_byte_timeout_ms: 300"],
    )
    .await;
    let io = TcpStream::connect(lb.data()).await.unwrap();
    let (mut sender, mut connection) = Builder::new().handshake::<_, Bytes>(io).await.unwrap();
    let mut pings = connection.ping_pong().unwrap();
    let connection = tokio::spawn(connection);
    // Before the answer, since lb has seen its end before this client does.
    let begun = Instant::now();
    let (response, mut stream) = sender
        .send_request(request("http://lb.test/v1/chat/completions", &[]), false)
        .unwrap();
    stream.send_data(chat_body("chat", false).into(), true).unwrap();
    whole(head(response).await).await;
    let pinging = async { while pings.ping(h2::Ping::opaque()).await.is_ok() {} };
    timeout(PATIENCE, pinging).await.expect("closed in time");
    assert!(begun.elapsed() >= 2 * LIMIT, "{:?}", begun.elapsed());
    drop(connection.await);
}

// [HTTP-42]
#[tokio::test]
async fn streams_and_header_lists_have_limits() {
    let (provider, lb) = start(Script::completion("ok"), &[]).await;
    let mut client = Client::plain(&lb).await;
    assert_eq!(head(client.chat(false)).await.status(), 200);
    assert_eq!(client.sender.current_max_send_streams(), 128);
    let large = "x".repeat(100_000);
    let response = client.send(
        request("http://lb.test/v1/chat/completions", &[("x", &large)]),
        String::new(),
    );
    match timeout(PATIENCE, response).await.expect("an answer in time") {
        Ok(response) => assert_eq!(response.status(), 431),
        Err(error) => assert!(error.is_reset() || error.is_go_away(), "{error}"),
    }
    assert_eq!(provider.requests().len(), 1);
}

// [HTTP-26]
#[tokio::test]
async fn a_client_that_opens_and_resets_without_end_is_cut() {
    let (provider, lb) = start(Script::silent().then(Step::Stall), &[]).await;
    let mut client = Client::plain(&lb).await;
    let flood = async {
        for _ in 0..100_000 {
            let Ok(ready) = client.sender.clone().ready().await else {
                return;
            };
            client.sender = ready;
            let sent = client.sender.send_request(
                request("http://lb.test/v1/chat/completions?model=chat", &[]),
                true,
            );
            let Ok((response, mut stream)) = sent else { return };
            stream.send_reset(Reason::CANCEL);
            drop(response);
            tokio::task::yield_now().await;
        }
        panic!("nobody stopped it");
    };
    timeout(PATIENCE, flood).await.expect("cut in time");
    assert!(client.end().await.is_err());
    assert!(provider.requests().len() < 2000);
    lb.idle().await;
}

// [HTTP-26]
#[tokio::test]
async fn a_client_that_gives_up_much_is_told_to_take_another_connection_and_loses_no_stream() {
    let more = Signal::new();
    let (provider, lb) = start(Script::silent().then(Step::Stall), &[]).await;
    provider.next(Script::stream().token("a").wait(&more).token("b").finish());
    let mut client = Client::plain(&lb).await;
    let mut body = head(client.chat(true)).await.into_body();
    assert!(piece(&mut body).await.is_some());
    let mut asked = 0;
    let told = loop {
        let mut given_up = Vec::new();
        for _ in 0..100 {
            let Ok(ready) = client.sender.clone().ready().await else {
                break;
            };
            client.sender = ready;
            given_up.push(client.chat(false));
        }
        if given_up.len() < 100 {
            break true;
        }
        // They are under way when they are given up.
        asked += 100;
        provider.request(asked).await;
        if asked >= 3000 {
            break false;
        }
    };
    assert!(told && asked > 1000, "GOAWAY after {asked}: {told}");
    more.fire();
    let mut text = String::new();
    while let Some(data) = piece(&mut body).await {
        text.push_str(&data.expect("the stream finishes"));
    }
    assert!(text.contains("[DONE]"), "{text}");
    assert_eq!(client.end().await.map_err(|error| error.to_string()), Ok(()));
    lb.idle().await;
}

// [HTTP-25]
#[tokio::test]
async fn an_idle_connection_is_told_before_it_is_closed() {
    let (_provider, lb) = start(Script::completion("ok"), &["idle_timeout_ms: 300"]).await;
    let mut stream = TcpStream::connect(lb.data()).await.unwrap();
    let settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(settings).await.unwrap();
    // A GET of / whose END_STREAM and END_HEADERS are set: `:method: GET`, `:scheme: http`, `:path: /`, `:authority: a`.
    let fields = b"\x82\x86\x84\x41\x01a";
    stream
        .write_all(&[&[0, 0, 6, 1, 5, 0, 0, 0, 1][..], fields].concat())
        .await
        .unwrap();
    let mut read = Vec::new();
    let end = timeout(PATIENCE, stream.read_to_end(&mut read)).await;
    assert!(end.expect("closed in time").is_ok());
    let (mut kinds, mut at) = (Vec::new(), 0);
    while let Some([a, b, c, kind]) = read.get(at..at + 4) {
        kinds.push(*kind);
        at += 9 + usize::from(*a) * 65536 + usize::from(*b) * 256 + usize::from(*c);
    }
    assert!(kinds.contains(&7), "GOAWAY among {kinds:?}");
}

// [HTTP-42]
#[tokio::test]
async fn a_head_in_continuations_without_end_is_cut() {
    let (_provider, lb) = start(Script::completion("ok"), &[]).await;
    let mut stream = TcpStream::connect(lb.data()).await.unwrap();
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    // HEADERS without END_HEADERS, then CONTINUATION after CONTINUATION of one literal field each.
    let field = b"\x00\x01x\x01y";
    let frame = |kind: u8| [&[0, 0, 5, kind, 0, 0, 0, 0, 1][..], field].concat();
    stream.write_all(&frame(1)).await.unwrap();
    let flood = frame(9).repeat(1000);
    let cut = async {
        for _ in 0..1000 {
            if stream.write_all(&flood).await.is_err() {
                return;
            }
        }
        panic!("a million frames were taken");
    };
    timeout(PATIENCE, cut).await.expect("cut in time");
    assert_eq!(lb.ask(get("/v1/models")).await.status(), 200);
}

// [HTTP-43]
#[tokio::test]
async fn a_drain_says_goaway_and_lets_streams_finish() {
    let more = Signal::new();
    let (_provider, mut lb) = start(Script::stream().token("a").wait(&more).token("b").finish(), &[]).await;
    let mut client = Client::plain(&lb).await;
    let mut body = head(client.chat(true)).await.into_body();
    assert!(piece(&mut body).await.is_some());
    lb.signal(Unix::TERM);
    lb.logged(&["draining"]).await;
    let refused = async {
        while let Ok(ready) = client.sender.clone().ready().await {
            client.sender = ready;
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, refused).await.expect("GOAWAY in time");
    more.fire();
    let mut text = String::new();
    while let Some(data) = piece(&mut body).await {
        text.push_str(&data.expect("the stream finishes"));
    }
    assert!(text.contains("[DONE]"), "{text}");
    drop(client);
    assert_eq!(lb.exit().await.code(), Some(0));
}

// [HTTP-44]
#[tokio::test]
async fn a_stream_that_is_not_taken_is_reset_and_others_go_on() {
    let large = Script::head(
        200,
        &[
            ("content-type", "application/octet-stream"),
            ("content-length", "1000000000"),
        ],
    )
    .then(Step::Repeat(Bytes::from(vec![b'x'; 65536]), 15_000));
    let (provider, lb) = start(large, &["write_timeout_ms: 300"]).await;
    let io = TcpStream::connect(lb.data()).await.unwrap();
    let mut client = Client::over(io, Builder::new().initial_connection_window_size(1 << 24)).await;
    let begun = Instant::now();
    // Its window is never opened again.
    let stalled = head(client.chat(false)).await.into_body();
    let before = lb.resident_kib();
    let left = provider.left(0).await;
    assert!(left.duration_since(begun) >= LIMIT);
    assert!(
        lb.resident_kib() < before + 8 * 1024,
        "what is not taken is not read"
    );
    provider.otherwise(Script::completion("ok"));
    assert_eq!(head(client.chat(false)).await.status(), 200);
    drop(stalled);
    lb.idle().await;
}

// [HTTP-23]
#[tokio::test]
async fn a_quiet_stream_is_not_idle() {
    let (_provider, lb) = start(
        Script::stream()
            .token("a")
            .then(Step::Pause(4 * LIMIT))
            .token("b")
            .finish(),
        &[
            "idle_timeout_ms: 300",
            "write_timeout_ms: 300",
            "first_byte_timeout_ms: 300",
            "header_timeout_ms: 300",
        ],
    )
    .await;
    let mut client = Client::plain(&lb).await;
    let (text, reset) = whole(head(client.chat(true)).await).await;
    assert!(text.contains("[DONE]") && reset.is_none(), "{text}");
    let answer = lb.ask(chat("chat", true)).await;
    assert!(answer.text().contains("[DONE]"), "{}", answer.text());
}
