//! A plane in a namespace, a server behind a router, and connections between them.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use lb::clock::Clock;
use lb::kernel::signal::{Endpoint, Evidence, Phase, Reaction, Sighting, Verdict};
use lb::kernel::{Attach, Mode, Plane, Settings, Started, Watch, start};
use lb_tests::PATIENCE;
use lb_tests::netns::{Family, Network};
use lb_tests::patience::Patience;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

/// What was seen, and when the observer handed it over.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) sighting: Sighting,
    pub(crate) reaction: Reaction,
}

impl Seen {
    pub(crate) fn ejects(&self) -> bool {
        matches!(self.reaction.verdict, Verdict::Eject { .. })
    }
}

/// The proxy's side of a test.
pub(crate) struct Bench {
    pub(crate) plane: Plane,
    pub(crate) slot: u16,
    watch: Watch,
    phases: Arc<Mutex<BTreeMap<u64, Phase>>>,
    seen: UnboundedReceiver<Seen>,
}

/// The moment of a fault.
pub(crate) struct Fault {
    at: Instant,
    patience: Patience,
}

impl Fault {
    pub(crate) fn now() -> Self {
        let patience = Patience::begin(None);
        let at = Instant::now();
        Self { at, patience }
    }
}

/// A followed connection.
pub(crate) struct Line {
    stream: tokio::net::TcpStream,
    pub(crate) cookie: u64,
}

/// Runs `body` at the proxy's end of `network` on a runtime of its own.
pub(crate) fn run(network: &Network, body: impl AsyncFnOnce() + Send) {
    network.at_proxy(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(body());
    });
}

impl Bench {
    /// A plane that sees what goes to `destinations`, with one endpoint.
    pub(crate) fn new(attach: Attach, destinations: &[IpAddr]) -> Self {
        let settings = Settings {
            mode: Mode::Required,
            attach,
            ..Settings::default()
        };
        let started = start(&settings, lb::kernel::embedded(), destinations);
        let Ok(Started::On(plane, gaps)) = started else {
            panic!("no plane: {started:?}")
        };
        assert!(gaps.is_empty(), "{gaps:?}");
        let endpoint = Endpoint {
            provider: 1,
            max_ejection: Duration::from_secs(30),
        };
        let slot = plane.claim(endpoint).expect("the first of many slots");
        let watch = plane.watch().expect("the map is there");
        let observer = plane.observer(Clock::start()).expect("the first one");
        let phases: Arc<Mutex<BTreeMap<u64, Phase>>> = Arc::default();
        let (sender, seen) = unbounded_channel();
        let known = Arc::clone(&phases);
        tokio::spawn(observer.run(
            move |cookie| {
                known
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get(&cookie)
                    .copied()
            },
            move |sighting, reaction| {
                // Nobody listens any more at the end of a test.
                drop(sender.send(Seen {
                    at: Instant::now(),
                    sighting: *sighting,
                    reaction,
                }));
            },
        ));
        Self {
            plane,
            slot,
            watch,
            phases,
            seen,
        }
    }

    pub(crate) fn set(&self, cookie: u64, phase: Phase) {
        self.phases
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(cookie, phase);
    }

    /// A socket as the proxy makes them, not connected.
    pub(crate) fn socket(&self, server: SocketAddr) -> (TcpSocket, u64) {
        let socket = if server.is_ipv4() {
            TcpSocket::new_v4()
        } else {
            TcpSocket::new_v6()
        };
        let socket = socket.expect("a socket");
        let options = SockRef::from(&socket);
        let second = Duration::from_secs(1);
        options.set_tcp_nodelay(true).expect("an option of TCP");
        let keepalive = TcpKeepalive::new().with_time(second).with_interval(second);
        options.set_tcp_keepalive(&keepalive).expect("an option of TCP");
        let cookie = self
            .watch
            .follow(socket.as_fd(), self.slot)
            .expect("room in the map");
        self.set(cookie, Phase::Connecting);
        (socket, cookie)
    }

    pub(crate) async fn connect(&self, server: SocketAddr) -> io::Result<Line> {
        let (socket, cookie) = self.socket(server);
        let stream = socket.connect(server).await?;
        self.set(cookie, Phase::Idle);
        Ok(Line { stream, cookie })
    }

    /// Waits for a sighting that is `wanted`, which must come within `limit` of the fault; how long after it that came.
    /// What the machine kept from those who take part is added to the limit.
    pub(crate) async fn expect(
        &mut self,
        fault: &Fault,
        limit: Duration,
        wanted: impl Fn(&Seen) -> bool,
    ) -> Duration {
        let mut others = Vec::new();
        loop {
            match timeout_at(fault.at + limit + PATIENCE, self.seen.recv()).await {
                Ok(Some(seen)) if wanted(&seen) => {
                    let took = seen.at - fault.at;
                    let in_time = took <= limit || took <= limit + fault.patience.end().all;
                    assert!(in_time, "seen after {took:?}, not {limit:?}; before: {others:?}");
                    return took;
                }
                Ok(Some(seen)) => others.push((seen.at - fault.at, seen)),
                Ok(None) => panic!("the observer has ended; seen: {others:?}"),
                Err(Elapsed { .. }) => panic!("never seen; seen: {others:?}"),
            }
        }
    }

    /// What has been seen so far and was not waited for.
    pub(crate) fn rest(&mut self) -> Vec<Seen> {
        std::iter::from_fn(|| self.seen.try_recv().ok()).collect()
    }
}

impl Line {
    /// Sends a command with `payload` bytes; does not wait for anything.
    pub(crate) async fn send(&mut self, command: u8, payload: u32) -> io::Result<()> {
        let mut bytes = vec![command];
        bytes.extend(payload.to_be_bytes());
        bytes.resize(bytes.len() + payload as usize, b'x');
        self.stream.write_all(&bytes).await
    }

    /// The next byte of a response.
    pub(crate) async fn byte(&mut self) -> io::Result<u8> {
        self.stream.read_u8().await
    }

    /// Our port.
    pub(crate) fn port(&self) -> u16 {
        self.stream.local_addr().expect("it is connected").port()
    }

    /// A whole request and its one-byte response.
    pub(crate) async fn ask(&mut self, payload: u32) -> io::Result<()> {
        self.send(ECHO, payload).await?;
        self.byte().await.map(drop)
    }
}

/// Answered with one byte.
pub(crate) const ECHO: u8 = b'E';
/// Answered with a byte every 20 ms, for ever.
pub(crate) const STREAM: u8 = b'S';
/// Read and not answered.
pub(crate) const WAIT: u8 = b'W';

/// A server at the far end of `network`, on a port of its own; lives as long as the process.
pub(crate) fn server(network: &Network, family: Family) -> SocketAddr {
    let (sender, address) = mpsc::channel();
    network.spawn_at_server(move || {
        let listener = TcpListener::bind((family.server(), 0)).expect("an address of this namespace");
        let address = listener.local_addr().expect("it is bound");
        sender.send(address).expect("the test waits for it");
        for connection in listener.incoming().flatten() {
            thread::spawn(move || serve(connection));
        }
    });
    address.recv().expect("the server says where it listens")
}

/// Until the connection breaks.
fn serve(mut connection: TcpStream) -> io::Result<()> {
    connection.set_nodelay(true)?;
    loop {
        let mut head = [0; 5];
        connection.read_exact(&mut head)?;
        let [command, length @ ..] = head;
        io::copy(
            &mut (&connection).take(u32::from_be_bytes(length).into()),
            &mut io::sink(),
        )?;
        match command {
            ECHO => connection.write_all(b"e")?,
            STREAM => loop {
                connection.write_all(b"s")?;
                thread::sleep(Duration::from_millis(20));
            },
            _ => {}
        }
    }
}

/// Whether it is loss, of whatever form.
pub(crate) fn is_loss(seen: &Seen) -> bool {
    matches!(seen.sighting.evidence, Evidence::Loss(_))
}
