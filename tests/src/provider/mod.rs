//! An upstream provider that does exactly what its scripts say, and remembers exactly what it was sent.
//!
//! A raw server rather than an HTTP library, because what has to be shown are the endings that a library would not let
//! through: resets between two bytes, lengths that lie, heads without a body, silence. Each request takes the next
//! queued [`Script`], or the default one where the queue is empty.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

mod connection;
mod record;
mod script;
#[cfg(test)]
mod tests;

pub use record::{Connection, Request};
pub use script::{Script, Signal, Step, token};

use crate::PATIENCE;

/// A provider, as a rule on a loopback port of its own; dropped, it and all its connections are gone.
#[derive(Debug)]
pub struct Provider {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

impl Provider {
    /// Starts a provider that gives every request this answer until it is told otherwise.
    pub async fn start(otherwise: Script) -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), otherwise).await
    }

    /// Starts such a provider at this address, on a port of its own if that is 0.
    pub async fn at(address: SocketAddr, otherwise: Script) -> Self {
        let listener = TcpListener::bind(address).await.expect("the address is free");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared::new(otherwise));
        let server = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            server,
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL of its API.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Queues an answer for one request.
    pub fn next(&self, script: Script) {
        self.shared.state().queue.push_back(script);
    }

    /// Changes the answer that is given when nothing is queued.
    pub fn otherwise(&self, script: Script) {
        self.shared.state().otherwise = script;
    }

    /// Everything it has been asked so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// The `n`th request, from 0, once it is there.
    pub async fn request(&self, n: usize) -> Request {
        self.shared
            .until("a request", |state| state.requests.get(n).cloned())
            .await
    }

    /// All connections so far.
    pub fn connections(&self) -> Vec<Connection> {
        self.shared.state().connections.clone()
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.shared
            .state()
            .connections
            .iter()
            .filter(|connection| connection.open)
            .count()
    }

    /// When the peer closed the connection of the `n`th request, once it has.
    pub async fn left(&self, n: usize) -> Instant {
        let connection = self.request(n).await.connection;
        let closed = |state: &State| state.connections[connection].closed_by_peer;
        self.shared.until("the peer to close", closed).await
    }

    /// As [`Provider::kill`], without waiting until it has happened; for a provider in another runtime, which does it at
    /// once.
    pub fn stop(&self) {
        self.server.abort();
        while !self.server.is_finished() {
            std::thread::yield_now();
        }
    }

    /// Closes the port and all connections, as the death of a process does.
    pub async fn kill(&mut self) {
        self.server.abort();
        // The listening socket is closed when the task has been dropped, not when it is told to end.
        assert!(
            (&mut self.server).await.is_err(),
            "the accept loop never ends by itself"
        );
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A port that refuses connections, kept from others for as long as this lives.
#[derive(Debug)]
pub struct Refusing(TcpSocket);

impl Refusing {
    /// Takes a port and never listens on it.
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().expect("IPv4 is there");
        socket
            .bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .expect("loopback has a free port");
        Self(socket)
    }

    /// The base URL at which nobody listens.
    pub fn url(&self) -> String {
        format!(
            "http://{}/v1",
            self.0.local_addr().expect("a bound socket has an address")
        )
    }
}

impl Default for Refusing {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Script>,
    otherwise: Script,
    requests: Vec<Request>,
    connections: Vec<Connection>,
}

impl Shared {
    fn new(otherwise: Script) -> Self {
        let state = State {
            queue: VecDeque::new(),
            otherwise,
            requests: Vec::new(),
            connections: Vec::new(),
        };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    /// Changes the state and wakes whoever waits for it.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state());
        self.changed.notify_waiters();
        result
    }

    async fn until<T>(&self, what: &str, look: impl Fn(&State) -> Option<T>) -> T {
        let found = async {
            loop {
                // Made before the look, so that a change between the look and the wait is not missed.
                let changed = self.changed.notified();
                if let Some(found) = look(&self.state()) {
                    return found;
                }
                changed.await;
            }
        };
        timeout(PATIENCE, found)
            .await
            .unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain for {what}"))
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        // Out of descriptors, or a peer that left at once: the next accept decides.
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        // Steps are written one by one, and none is to wait for the acknowledgement of the one before.
        stream.set_nodelay(true).expect("TCP has it");
        let number = shared.change(|state| {
            state.connections.push(Connection {
                closed_by_peer: None,
                open: true,
            });
            state.connections.len() - 1
        });
        connections.spawn(connection::serve(stream, number, Arc::clone(&shared)));
        while connections.try_join_next().is_some() {}
    }
}

/// How long a peer may take between two parts of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
