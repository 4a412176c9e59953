//! Dropping a request wherever it waits.
//!
//! A client's going drops its connection's future between two polls. So each way that a request can take is taken again
//! and again, and ended after one poll more each time: there is no place at which it waits that is not tried. Whatever
//! it held has to be back afterwards.

mod http2;
mod waits;

use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use http::HeaderValue;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::auth::ClientKeys;
use super::connection::{self, Limits, Terms};
use super::headers::Peer;
use super::service::Rules;
use super::worker::{Drain, Live, Route, Shared, Worker};
use super::{Budget, Via};
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::metrics::Metrics;
use crate::net::{self, Client, Destination, Protocol};
use crate::policy::draw::Draw;
use crate::upstream::{Context as Building, Table, sites};

/// What a client says, with a pause between the parts, and what a provider answers to whatever it is asked.
struct Way {
    name: &'static str,
    client: Vec<Vec<u8>>,
    provider: &'static [&'static [u8]],
    turn: Turn,
    /// What the client has to have seen when nothing was dropped.
    seen: &'static str,
}

/// Which of a provider's connections answer.
#[derive(Clone, Copy, PartialEq)]
enum Turn {
    /// All, at once.
    All,
    /// All, once there are two.
    BothOfTwo,
    /// The first, once there is a second.
    FirstOfTwo,
    /// The second.
    SecondOfTwo,
}

/// Counts who has been asked, and says whose turn it is to answer.
struct Turns(watch::Sender<usize>, Turn);

impl Turns {
    /// One more has been asked; whether it is to answer, as soon as it is.
    async fn mine(&self) -> bool {
        let Self(asked, turn) = self;
        let mut others = asked.subscribe();
        let mut number = 0;
        asked.send_modify(|asked| {
            *asked += 1;
            number = *asked;
        });
        let answers = match turn {
            Turn::All | Turn::BothOfTwo => true,
            Turn::FirstOfTwo => number == 1,
            Turn::SecondOfTwo => number == 2,
        };
        answers && (*turn == Turn::All || others.wait_for(|asked| *asked > 1).await.is_ok())
    }
}

fn post(path: &str, fields: &str, body: &str) -> Vec<Vec<u8>> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: a\r\n{fields}content-length: {}\r\n\r\n",
        body.len()
    );
    let (one, two) = body.split_at(body.len() / 2);
    [head.as_str(), one, two]
        .map(|part| part.as_bytes().to_vec())
        .to_vec()
}

const STREAM: &[&[u8]] = &[
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
    b"6\r\n: hi\n\n\r\n",
    b"9\r\ndata: {}\n\r\n1\r\n\n\r\n",
    b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
];

fn ways() -> Vec<Way> {
    let chat = "/v1/chat/completions";
    let plain: &[&[u8]] = &[b"HTTP/1.1 200 OK\r\ncontent-", b"length: 4\r\n\r\n{\"", b"\"}"];
    let form = "--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nchat\r\n--b--\r\n";
    let upgrade =
        "GET /v1/realtime?model=chat HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n";
    let long = format!("{{\"model\":\"chat\",\"x\":\"{}\"}}", "y".repeat(3000));
    vec![
        Way {
            name: "an answer in one piece",
            client: post(chat, "", "{\"model\":\"chat\"}"),
            provider: plain,
            turn: Turn::All,
            seen: "{\"\"}",
        },
        Way {
            name: "a stream",
            client: post(chat, "", "{\"model\":\"chat\",\"stream\":true}"),
            provider: STREAM,
            turn: Turn::All,
            seen: "[DONE]",
        },
        Way {
            name: "a form",
            client: post(chat, "content-type: multipart/form-data; boundary=b\r\n", form),
            provider: plain,
            turn: Turn::All,
            seen: "{\"\"}",
        },
        Way {
            name: "a body that is streamed",
            client: post(chat, "", &long),
            provider: plain,
            turn: Turn::All,
            seen: "{\"\"}",
        },
        Way {
            name: "a renamed stream",
            client: post(chat, "", "{\"model\":\"renamed\",\"stream\":true}"),
            provider: STREAM,
            turn: Turn::All,
            seen: "[DONE]",
        },
        Way {
            name: "straight to a provider",
            client: post("/else", "", "anything"),
            provider: plain,
            turn: Turn::All,
            seen: "{\"\"}",
        },
        Way {
            name: "a second target",
            client: post(chat, "", "{\"model\":\"chat\"}"),
            provider: &[b"HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\n", b"no"],
            turn: Turn::All,
            seen: "no",
        },
        Way {
            name: "a tunnel",
            client: vec![upgrade.as_bytes().to_vec(), b"ping".to_vec()],
            provider: &[
                b"HTTP/1.1 101 Go\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
                b"pong",
            ],
            turn: Turn::All,
            seen: "pong",
        },
    ]
}

fn races() -> [Way; 3] {
    let busy: &[&[u8]] = &[b"HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\n", b"no"];
    [
        hedged("a hedge that answers", STREAM, Turn::SecondOfTwo, "[DONE]"),
        hedged("a hedge that is outrun", STREAM, Turn::FirstOfTwo, "[DONE]"),
        hedged("a hedge that fails like the first", busy, Turn::BothOfTwo, "no"),
    ]
}

fn hedged(name: &'static str, provider: &'static [&'static [u8]], turn: Turn, seen: &'static str) -> Way {
    Way {
        name,
        client: post(
            "/v1/chat/completions",
            "",
            "{\"model\":\"hedged\",\"stream\":true}",
        ),
        provider,
        turn,
        seen,
    }
}

/// A future that is dropped before it is polled once too often; gives how often it was, if it ended by then.
struct Dropped<F>(Option<Pin<Box<F>>>, usize, usize);

impl<F: Future<Output = ()>> Future for Dropped<F> {
    type Output = Option<usize>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        let Self(future, polls, limit) = &mut *self;
        if *polls == *limit {
            *future = None;
            return Poll::Ready(None);
        }
        *polls += 1;
        let Some(running) = future else {
            return Poll::Ready(None);
        };
        running.as_mut().poll(cx).map(|()| Some(*polls))
    }
}

fn config(address: std::net::SocketAddr) -> Config {
    parsed(&format!(
        "version: 1\nlisteners: [{{ name: a, address: \"127.0.0.1:0\" }}]\nserver: {{ replay_bytes: 1000 }}\n\
         routes: [{{ match: {{ path_prefix: /v1/ }}, to: models }}, {{ match: {{}}, to: {{ provider: one }} }}]\n\
         providers:\n  one: {{ endpoints: [{{ url: \"http://{address}/v1\" }}] }}\n  two: {{ endpoints: [{{ url: \
         \"http://{address}/v1\" }}] }}\n  three: {{ retries: {{ hedge_after_ms: 1 }}, endpoints: [{{ url: \"http://{address}/v1\" }}, {{ url: \"http://{address}/v2\" }}] }}\nmodels:\n  chat: {{ targets: [{{ provider: one, upstream_model: up }}, {{ provider: two \
         }}] }}\n  renamed: {{ rewrite_response_model: true, targets: [{{ provider: one }}] }}\n  hedged: {{ targets: [{{ provider: three }}] }}\n"
    ))
}

fn parsed(text: &str) -> Config {
    match config::parse(text, "lb.yaml", &|_| None) {
        Ok(checked) => checked.config,
        Err(failure) => panic!("{failure:?}"),
    }
}

fn worker(config: &Config, address: std::net::SocketAddr, protocol: Protocol) -> Arc<Worker> {
    let clock = Clock::start();
    let metrics = Arc::new(Metrics::new(&[Duration::from_secs(1)]));
    let mut building = Building {
        metrics: &metrics,
        keys: &[None, None, None],
        sites: &sites(config, |_, _, _| Vec::new()),
        now: clock.now(),
        before: None,
        draw: &mut || Draw::new(0.0),
    };
    let table = Table::build(config, &mut building);
    let limits = net::Limits {
        idle_timeout: Duration::from_mins(1),
        max_age: None,
        max_idle: 0,
        max_open: 0,
        max_streams: 1,
    };
    let route = || Route {
        destination: Arc::new(Destination::new(&[address], None, limits, 1).speaking(protocol)),
        host: HeaderValue::from_static("origin"),
        files: [0; 32],
    };
    let endpoints = table.providers().iter().flat_map(|provider| &provider.endpoints);
    let live = Live {
        server: config.server.clone(),
        keys: ClientKeys::default(),
        routes: endpoints.map(|_| route()).collect(),
        table,
    };
    let shared = Shared {
        live: ArcSwap::from_pointee(live),
        metrics,
        clock,
        buffers: Arc::new(Budget::new(1 << 20)),
        via: Via::new(1),
        access: None,
        spans: None,
        drain: watch::Sender::new(Drain::No),
        started: 0,
    };
    Arc::new(Worker::new(Arc::new(shared), Client::new(0, None)))
}

fn terms() -> Terms {
    let limit = Duration::from_mins(1);
    Terms {
        limits: Limits {
            rules: Rules {
                max_body_bytes: 1 << 20,
                body_timeout: limit,
                body_grace: limit,
            },
            header_timeout: limit,
            first_byte_timeout: limit,
            idle_timeout: limit,
            write_timeout: limit,
        },
        http2: true,
        tls: None,
    }
}

async fn pause() {
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
}

/// Answers every connection whose turn it is with these parts.
async fn provide(listener: TcpListener, parts: &'static [&'static [u8]], turns: Arc<Turns>) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let turns = Arc::clone(&turns);
        tokio::spawn(async move {
            let mut buffer = [0; 8192];
            let mut all = Vec::new();
            // Far enough into the request: all of a short one, the beginning of a long one.
            while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                all.extend_from_slice(&buffer[..length]);
                if !all.starts_with(b"POST")
                    || all.ends_with(b"}")
                    || all.ends_with(b"--\r\n")
                    || all.ends_with(b"anything")
                {
                    break;
                }
            }
            if !turns.mine().await {
                drop(stream.read(&mut buffer).await);
                return;
            }
            for part in parts {
                pause().await;
                if stream.write_all(part).await.is_err() {
                    return;
                }
            }
            drop(stream.read(&mut buffer).await);
        });
    }
}

/// Everything that a request can hold and that is not back.
fn held(worker: &Worker) -> Vec<(String, String)> {
    let shared = &worker.shared;
    let live = shared.live.load();
    let mut held = vec![("buffers".to_owned(), shared.buffers.held().to_string())];
    for provider in live.table.providers() {
        held.push((
            format!("slots of {}", provider.name),
            provider.in_flight().to_string(),
        ));
        for endpoint in &provider.endpoints {
            held.push((
                format!("requests on {}", endpoint.name),
                endpoint.in_flight().to_string(),
            ));
        }
    }
    for route in &live.routes {
        held.push(("connections".to_owned(), route.destination.open().to_string()));
    }
    let page = shared.metrics.exposition();
    let gauges = page.lines().filter_map(|line| line.rsplit_once(' '));
    let gauges = gauges.filter(|(name, _)| {
        [
            "lb_inflight_requests",
            "lb_aimd_in_flight",
            "lb_endpoint_in_flight",
        ]
        .iter()
        .any(|gauge| name.starts_with(gauge))
    });
    held.extend(gauges.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert!(held.len() > 8, "the gauges are there: {held:?}");
    held.retain(|(_, count)| count != "0");
    held
}

/// A client's end of a connection, and what serves the other.
async fn connected(worker: &Arc<Worker>) -> (TcpStream, impl Future<Output = ()> + use<>) {
    let front = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let client = TcpStream::connect(front.local_addr().expect("bound"));
    let client = client.await.expect("accepted");
    let (stream, _) = front.accept().await.expect("a connection");
    let worker = Arc::clone(worker);
    let running = async move {
        let peer = Arc::new(Peer::new(Ipv4Addr::LOCALHOST.into(), false, false));
        let drain = watch::Sender::new(Drain::No);
        connection::run(worker, &terms(), peer, stream, drain.subscribe()).await;
    };
    (client, running)
}

/// A request on a connection that is dropped after so many polls, and its answer, which holds `seen` if the connection
/// ended before; whether it did.
async fn converse(name: &str, worker: &Arc<Worker>, request: &[Vec<u8>], seen: &str, polls: usize) -> bool {
    let (mut client, running) = connected(worker).await;
    let running = Dropped(Some(Box::pin(running)), 0, polls);
    let asking = async {
        say(&mut client, request).await;
        let answer = hear(&mut client, seen).await;
        drop(client);
        answer
    };
    let (ended, answer) = tokio::join!(running, asking);
    if ended.is_some() {
        assert!(answer.contains(seen), "{name}: {answer}");
    }
    ended.is_some()
}

async fn say(client: &mut TcpStream, request: &[Vec<u8>]) {
    for part in request {
        if client.write_all(part).await.is_err() {
            break;
        }
        pause().await;
    }
}

/// What comes until it holds `seen`, or ends.
async fn hear(client: &mut TcpStream, seen: &str) -> String {
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = client.read(&mut buffer).await {
        answer.extend_from_slice(&buffer[..length]);
        if String::from_utf8_lossy(&answer).contains(seen) {
            break;
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

/// One request whose connection is dropped after so many polls; whether it had ended before.
async fn once(way: &Way, protocol: Protocol, polls: usize) -> bool {
    let parts = way.provider;
    let origin = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = origin.local_addr().expect("bound");
    let turns = Arc::new(Turns(watch::Sender::new(0), way.turn));
    let worker = worker(&config(address), address, protocol);
    let provider = tokio::spawn(async move {
        match protocol {
            Protocol::Http2 => http2::provide(origin, parts, turns).await,
            Protocol::Auto | Protocol::Http1 => provide(origin, parts, turns).await,
        }
    });
    let ended = converse(way.name, &worker, &way.client, way.seen, polls).await;
    if protocol == Protocol::Http2 {
        http2::let_go(&worker).await;
    }
    let left = held(&worker);
    assert!(
        left.is_empty(),
        "{} dropped after {polls} polls leaves {left:?}",
        way.name
    );
    provider.abort();
    ended
}

// [STREAM-14] [TABLE-2] [HEDGE-6]
#[tokio::test]
async fn a_request_that_is_dropped_wherever_it_waits_gives_back_all_it_held() {
    for way in ways().into_iter().chain(races()) {
        drop_everywhere(&way, Protocol::Http1).await;
        // Upgrades go by HTTP/1.1 whatever is set.
        if way.seen != "pong" {
            drop_everywhere(&way, Protocol::Http2).await;
        }
    }
}

async fn drop_everywhere(way: &Way, protocol: Protocol) {
    let mut polls = 0;
    while !once(way, protocol, polls).await {
        polls += 1;
        assert!(polls < 300, "{} never ends over {protocol:?}", way.name);
    }
    assert!(polls > 5, "{} waits nowhere over {protocol:?}?", way.name);
}
