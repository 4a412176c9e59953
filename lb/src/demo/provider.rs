//! A simulated OpenAI-compatible provider whose first-token time depends on its load.
//!
//! The plant is a model server with continuous batching in its simplest form: every request in the batch slows the
//! prefill of the next one, so that the first token takes `prefill · (1 + in flight / batch)`. That is the curve a
//! share controller is made for: flat at low load, steep near the limit, and it answers at once to less load. A client
//! that leaves gives up its place in the batch at once, as good model servers see to.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;

/// How a provider answers under load.
#[derive(Debug)]
pub(super) struct Plant {
    prefill: Duration,
    batch: AtomicU32,
    in_flight: AtomicU32,
}

impl Plant {
    /// A plant whose first token takes `prefill` when it is alone, and twice that with `batch` others in flight.
    pub(super) fn new(prefill: Duration, batch: u32) -> Self {
        Self {
            prefill,
            batch: AtomicU32::new(batch),
            in_flight: AtomicU32::new(0),
        }
    }

    /// Takes a place in the batch, and tells how long the first token takes from here.
    fn enter(&self) -> (Place<'_>, Duration) {
        let others = self.in_flight.fetch_add(1, Ordering::Relaxed);
        let batch = self.batch.load(Ordering::Relaxed);
        (Place(self), self.prefill + self.prefill * others / batch)
    }
}

/// A place in a plant's batch, free again when dropped.
struct Place<'a>(&'a Plant);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A provider on a loopback port of its own.
#[derive(Debug)]
pub(super) struct Provider {
    name: &'static str,
    address: SocketAddr,
    plant: Arc<Plant>,
    server: JoinHandle<()>,
}

impl Provider {
    pub(super) async fn start(name: &'static str, plant: Plant) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let plant = Arc::new(plant);
        let server = tokio::spawn(accept(listener, name, Arc::clone(&plant)));
        Ok(Self {
            name,
            address,
            plant,
            server,
        })
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The base URL of its API.
    pub(super) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Changes its capacity.
    pub(super) fn resize(&self, batch: u32) {
        self.plant.batch.store(batch, Ordering::Relaxed);
    }

    /// Closes the port and every connection, as the death of a process does.
    pub(super) async fn kill(&mut self) {
        self.server.abort();
        // The sockets are closed when the task has been dropped, which is later than now.
        drop((&mut self.server).await);
    }

    /// Brings a killed provider back on the same port.
    pub(super) async fn revive(&mut self) -> io::Result<()> {
        let listener = TcpListener::bind(self.address).await?;
        self.server = tokio::spawn(accept(listener, self.name, Arc::clone(&self.plant)));
        Ok(())
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn accept(listener: TcpListener, name: &'static str, plant: Arc<Plant>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let plant = Arc::clone(&plant);
        connections.spawn(async move {
            let mut connection = Connection {
                stream,
                ahead: Vec::new(),
            };
            // An error is the client's leaving, and the connection ends with it.
            drop(connection.serve(name, &plant).await);
        });
        while connections.try_join_next().is_some() {}
    }
}

struct Connection {
    stream: TcpStream,
    ahead: Vec<u8>,
}

impl Connection {
    async fn serve(&mut self, name: &str, plant: &Plant) -> io::Result<()> {
        loop {
            let request = self.request().await?;
            let (_place, first_token) = plant.enter();
            self.unless_left(sleep(first_token)).await?;
            if request["stream"] == true {
                self.stream(name).await?;
            } else {
                self.complete(name).await?;
            }
        }
    }

    /// The next request's body as JSON.
    async fn request(&mut self) -> io::Result<Value> {
        let head = loop {
            if let Some(at) = self.ahead.windows(4).position(|end| end == b"\r\n\r\n") {
                break self.ahead.drain(..at + 4).collect::<Vec<_>>();
            }
            self.read().await?;
        };
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length = length
            .map_or(Ok(0), |length| length.trim().parse())
            .map_err(io::Error::other)?;
        while self.ahead.len() < length {
            self.read().await?;
        }
        let body = self.ahead.drain(..length).collect::<Vec<_>>();
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }

    async fn stream(&mut self, name: &str) -> io::Result<()> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        self.stream.write_all(head.as_bytes()).await?;
        for word in WORDS {
            self.event(&chunk(name, &json!({"content": word}), &Value::Null))
                .await?;
            self.unless_left(sleep(TOKEN_GAP)).await?;
        }
        self.event(&chunk(name, &json!({}), &json!("stop"))).await?;
        self.event("[DONE]").await?;
        self.stream.write_all(b"0\r\n\r\n").await
    }

    async fn event(&mut self, data: &str) -> io::Result<()> {
        let event = format!("data: {data}\n\n");
        self.stream
            .write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())
            .await
    }

    async fn complete(&mut self, name: &str) -> io::Result<()> {
        let tokens = u32::try_from(WORDS.len()).expect("a short text");
        self.unless_left(sleep(TOKEN_GAP * tokens)).await?;
        let message = json!({"role": "assistant", "content": WORDS.concat()});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        let body = json!({
            "id": "demo", "object": "chat.completion", "created": 0, "model": name, "choices": [choice],
            "usage": {"prompt_tokens": 1, "completion_tokens": tokens, "total_tokens": tokens + 1},
        });
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.stream.write_all([head, body].concat().as_bytes()).await
    }

    /// Waits for `event`, but no longer than the client stays.
    async fn unless_left(&mut self, event: impl Future<Output = ()>) -> io::Result<()> {
        tokio::pin!(event);
        loop {
            tokio::select! {
                biased;
                read = self.read() => read?,
                () = &mut event => return Ok(()),
            }
        }
    }

    async fn read(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.ahead).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn chunk(name: &str, delta: &Value, finish: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk = json!({
        "id": "demo", "object": "chat.completion.chunk", "created": 0, "model": name, "choices": [choice],
    });
    chunk.to_string()
}

/// What every answer says.
const WORDS: [&str; 8] = ["All ", "of ", "this ", "was ", "said ", "by ", "no ", "model."];
/// The time between two tokens.
const TOKEN_GAP: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests;
