use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::config;
use crate::run::dns::Resolver;
use crate::run::{Daemon, Inherited};
use crate::upstream::ProviderState;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// An upstream at one of the addresses.
struct Upstream {
    address: SocketAddr,
    requests: AtomicU32,
    connections: watch::Sender<u32>,
    fails: watch::Sender<bool>,
    /// Streams wait in their middle until this is true.
    released: watch::Sender<bool>,
}

impl Upstream {
    async fn start(last: u8, port: u16) -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), port)).await?;
        let upstream = Arc::new(Self {
            address: listener.local_addr()?,
            requests: AtomicU32::new(0),
            connections: watch::Sender::new(0),
            fails: watch::Sender::new(false),
            released: watch::Sender::new(false),
        });
        let serving = Arc::clone(&upstream);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let one = Arc::clone(&serving);
                tokio::spawn(async move {
                    one.connections.send_modify(|open| *open += 1);
                    one.serve(socket).await;
                    one.connections.send_modify(|open| *open -= 1);
                });
            }
        });
        Ok(upstream)
    }

    async fn serve(&self, mut socket: TcpStream) {
        while let Some(request) = read_request(&mut socket).await {
            self.requests.fetch_add(1, Ordering::Relaxed);
            if *self.fails.borrow() {
                let answer = "HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n";
                socket.write_all(answer.as_bytes()).await.unwrap();
            } else if request.contains("\"stream\"") {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                let first = "a\r\ndata: {}\n\n\r\n";
                socket.write_all([head, first].concat().as_bytes()).await.unwrap();
                let mut released = self.released.subscribe();
                released.wait_for(|released| *released).await.unwrap();
                let last = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";
                socket.write_all(last.as_bytes()).await.unwrap();
            } else {
                let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    }

    fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Until so many connections are open.
    async fn until_open(&self, count: u32) {
        let mut open = self.connections.subscribe();
        let waited = tokio::time::timeout(PATIENCE, open.wait_for(|open| *open == count)).await;
        assert!(
            waited.is_ok(),
            "{} and not {count} are open",
            *self.connections.borrow()
        );
    }
}

/// Head and body; `None` at the end of the connection.
async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Some(text);
            }
        }
        if socket.read_buf(&mut read).await.ok()? == 0 {
            return None;
        }
    }
}

/// Three upstreams on one port, a daemon that knows them by a name, and what that name leads to.
struct Stage {
    upstreams: [Arc<Upstream>; 3],
    zone: Arc<Mutex<Vec<SocketAddr>>>,
    looked_up: Arc<AtomicU32>,
    daemon: Daemon,
}

impl Stage {
    async fn new(first: &[usize]) -> Self {
        let upstreams = upstreams().await;
        let addresses = first.iter().map(|place| upstreams[*place].address).collect();
        let zone: Arc<Mutex<Vec<SocketAddr>>> = Arc::new(Mutex::new(addresses));
        let looked_up = Arc::new(AtomicU32::new(0));
        let (asked, counted) = (Arc::clone(&zone), Arc::clone(&looked_up));
        let resolver: Resolver = Arc::new(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
            let found = asked.lock().unwrap().clone();
            Box::pin(async move {
                if found.is_empty() {
                    return Err(io::Error::other("nobody knows"));
                }
                Ok(found)
            })
        });
        let text = format!(
            "version: 1\nserver: {{ workers: 1 }}\nkernel: {{ mode: off }}\nlog: {{ access: false }}\nadmin: {{ address: '127.0.0.1:0' \
             }}\nlisteners: [{{ name: l, address: '127.0.0.1:0' }}]\nproviders:\n  gpu: {{ endpoints: [{{ url: \
             'http://gpu.test:{}/v1' }}], dns: {{ refresh_ms: 100, failure_refresh_ms: 100 }}, health: {{ \
             consecutive_failures: 2 }} }}\nmodels:\n  chat: {{ targets: [{{ provider: gpu }}] }}\n",
            upstreams[0].address.port()
        );
        let checked = config::parse(&text, "test.yaml", &|_| None).expect("a valid file");
        let daemon = Daemon::resolving(&checked.config, Inherited::default(), resolver);
        Self {
            upstreams,
            zone,
            looked_up,
            daemon: daemon.expect("nothing is in the way"),
        }
    }

    fn resolve(&self, places: &[usize]) {
        *self.zone.lock().unwrap() = places
            .iter()
            .map(|place| self.upstreams[*place].address)
            .collect();
    }

    /// Sends a request and returns its connection.
    async fn send(&self, body: &str) -> TcpStream {
        let mut socket = TcpStream::connect(self.daemon.data()[0]).await.unwrap();
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: lb\r\nconnection: close\r\ncontent-type: application/json";
        let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        socket.write_all(request.as_bytes()).await.unwrap();
        socket
    }

    /// The status of an answer that came to its end.
    async fn ask(&self) -> u16 {
        let mut socket = self.send("{\"model\":\"chat\"}").await;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        let status = answer.split(' ').nth(1).expect("a status line").parse().unwrap();
        assert!(status != 200 || answer.ends_with("\r\n\r\n{}"), "{answer}");
        status
    }

    fn provider(&self) -> ProviderState {
        let shared = &self.daemon.shared;
        let live = shared.live.load();
        live.table.state(shared.clock.now()).providers.swap_remove(0)
    }

    /// Each endpoint's address, by its place here, and its state.
    fn endpoints(&self) -> Vec<(usize, &'static str)> {
        let endpoints = self.provider().endpoints.into_iter();
        let one = |endpoint: crate::upstream::EndpointState| {
            let is_it = |upstream: &Arc<Upstream>| endpoint.address == Some(upstream.address.to_string());
            (self.upstreams.iter().position(is_it).unwrap(), endpoint.state)
        };
        endpoints.map(one).collect()
    }

    async fn until(&self, endpoints: &[(usize, &'static str)]) {
        let same = async {
            while self.endpoints() != endpoints {
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, same).await;
        assert!(waited.is_ok(), "{:?} and not {endpoints:?}", self.endpoints());
    }

    /// Runs `scene` while the daemon does what its main thread does.
    async fn play(&self, scene: impl Future<Output = ()>) {
        tokio::select! {
            () = self.daemon.follow_names() => {}
            () = scene => {}
        }
    }
}

/// On three loopback addresses, all with the same port.
async fn upstreams() -> [Arc<Upstream>; 3] {
    loop {
        let first = Upstream::start(1, 0).await.unwrap();
        let port = first.address.port();
        // Somebody may have the port on the others.
        if let (Ok(second), Ok(third)) = (Upstream::start(2, port).await, Upstream::start(3, port).await) {
            return [first, second, third];
        }
    }
}

// [NET-35] [NET-36] [RELOAD-17] field fault C8
#[tokio::test]
async fn addresses_come_and_go_under_load_and_nothing_is_dropped_or_forgotten() {
    let stage = Stage::new(&[0, 1]).await;
    let [goes, stays, comes] = &stage.upstreams;
    let scene = async {
        stage.until(&[(0, "healthy"), (1, "healthy")]).await;
        for _ in 0..40 {
            assert_eq!(stage.ask().await, 200);
        }
        assert!(goes.requests() > 0 && stays.requests() > 0, "both get their part");
        stays.fails.send_replace(true);
        while stage.endpoints() != [(0, "healthy"), (1, "ejected")] {
            stage.ask().await;
        }
        let mut held = stage.send("{\"model\":\"chat\",\"stream\":true}").await;
        let mut streamed = Vec::new();
        while !String::from_utf8_lossy(&streamed).contains("data: {}") {
            assert_ne!(held.read_buf(&mut streamed).await.unwrap(), 0);
        }
        let (done, over) = watch::channel(false);
        let change = async {
            stage.resolve(&[1, 2]);
            stage.until(&[(1, "ejected"), (2, "healthy")]).await;
            let before = (goes.requests(), stays.requests());
            for _ in 0..20 {
                assert_eq!(stage.ask().await, 200);
            }
            assert!(comes.requests() >= 20);
            done.send_replace(true);
            before
        };
        let (before, first, second) = tokio::join!(change, load(&stage, &over), load(&stage, &over));
        assert!(first + second > 0);
        // Whoever was on the way when the address went may have reached it still, and nobody later.
        assert!(
            goes.requests() <= before.0 + 2,
            "{} after {}",
            goes.requests(),
            before.0
        );
        assert_eq!(stays.requests(), before.1, "what was ejected is still");
        goes.until_open(1).await;
        goes.released.send_replace(true);
        held.read_to_end(&mut streamed).await.unwrap();
        let streamed = String::from_utf8(streamed).unwrap();
        assert!(streamed.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n"), "{streamed}");
        goes.until_open(0).await;
        assert_eq!(stage.provider().in_flight, 0);
    };
    stage.play(scene).await;
    stage.daemon.stop();
}

async fn load(stage: &Stage, over: &watch::Receiver<bool>) -> u32 {
    let mut answered = 0;
    while !*over.borrow() {
        assert_eq!(stage.ask().await, 200);
        answered += 1;
    }
    answered
}

// [NET-35] [RELOAD-17]
#[tokio::test]
async fn a_failed_look_up_keeps_the_last_good_set_and_one_that_comes_back_starts_fresh() {
    let stage = Stage::new(&[0, 1]).await;
    let scene = async {
        stage.upstreams[1].fails.send_replace(true);
        while stage.endpoints() != [(0, "healthy"), (1, "ejected")] {
            stage.ask().await;
        }
        stage.resolve(&[]);
        let asked = stage.looked_up.load(Ordering::Relaxed);
        while stage.looked_up.load(Ordering::Relaxed) < asked + 3 {
            assert_eq!(stage.ask().await, 200);
        }
        assert_eq!(stage.endpoints(), [(0, "healthy"), (1, "ejected")]);
        stage.resolve(&[0]);
        stage.until(&[(0, "healthy")]).await;
        stage.resolve(&[0, 1]);
        stage.until(&[(0, "healthy"), (1, "healthy")]).await;
    };
    stage.play(scene).await;
    stage.daemon.stop();
}
