//! The thread that sends spans.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use prometheus::IntCounter;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

use super::Spans;
use super::otlp::{Span, export};
use crate::config::{Host, Url};

/// What the thread is told.
#[derive(Debug)]
pub(super) enum Message {
    /// Those of one request.
    Spans(Vec<Span>),
    Stop,
}

/// The thread.
#[derive(Debug)]
pub struct Exporter {
    queue: mpsc::Sender<Message>,
    thread: JoinHandle<()>,
}

/// Requests whose spans may wait.
const QUEUE: usize = 2048;

/// Spans that are sent at once.
const BATCH: usize = 512;

/// How long the first of a batch waits for others.
const GATHER: Duration = Duration::from_secs(1);

/// How long a collector may take.
const LIMIT: Duration = Duration::from_secs(10);

/// How often the end of the thread is looked for.
const STEP: Duration = Duration::from_millis(2);

impl Spans {
    /// Has `ratio` of all requests traced and sent to the collector at `url`. Spans that are lost are counted in
    /// `dropped`.
    pub fn start(url: Url, ratio: f64, dropped: IntCounter) -> io::Result<(Self, Exporter)> {
        let (queue, spans) = mpsc::channel(QUEUE);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let lost = dropped.clone();
        let thread = std::thread::Builder::new()
            .name("lb-spans".to_owned())
            .spawn(move || runtime.block_on(run(&url, spans, &lost)))?;
        let exporter = Exporter {
            queue: queue.clone(),
            thread,
        };
        Ok((
            Self {
                queue,
                dropped,
                ratio,
            },
            exporter,
        ))
    }
}

impl Exporter {
    /// Sends what is still queued and ends the thread. What takes longer than `limit` is given up.
    pub fn finish(self, limit: Duration) {
        let mut waited = Duration::ZERO;
        let mut told = false;
        while waited < limit && !self.thread.is_finished() {
            told = told || self.queue.try_send(Message::Stop).is_ok();
            std::thread::sleep(STEP);
            waited += STEP;
        }
        if self.thread.is_finished() && self.thread.join().is_err() {
            tracing::error!("the thread of spans panicked");
        }
    }
}

async fn run(url: &Url, mut queue: mpsc::Receiver<Message>, dropped: &IntCounter) {
    let collector = url.authority();
    let mut failing = false;
    let mut open = true;
    while open {
        let (spans, more) = batch(&mut queue).await;
        open = more;
        let count = spans.len();
        if count == 0 {
            continue;
        }
        // Whoever accepts and never answers must not keep what comes after.
        let sent = timeout(LIMIT, send(url, export(&spans))).await;
        let error = match sent {
            Ok(Ok(status)) if status.is_success() => None,
            Ok(Ok(status)) => Some(format!("answered with {status}")),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_elapsed) => Some("no answer".to_owned()),
        };
        if let Some(error) = &error {
            dropped.inc_by(count as u64);
            if !failing {
                tracing::warn!(%error, collector, "spans are not taken");
            }
        } else if failing {
            tracing::info!(collector, "spans are taken again");
        }
        failing = error.is_some();
    }
}

/// Posts an export and gives the answer's status. Each has a connection of its own: there is one a second at most.
async fn send(url: &Url, body: Vec<u8>) -> io::Result<StatusCode> {
    let stream = match url.host() {
        Host::Address(address) => TcpStream::connect((*address, url.port())).await?,
        host => TcpStream::connect((host.to_string(), url.port())).await?,
    };
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("{}/v1/traces", url.path()))
        .header(HOST, url.authority())
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(Full::new(Bytes::from(body)))
        .map_err(io::Error::other)?;
    tokio::select! {
        biased;
        answer = sender.send_request(request) => Ok(answer.map_err(io::Error::other)?.status()),
        ended = connection => {
            ended.map_err(io::Error::other)?;
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

/// The next spans to send, and whether more will follow.
async fn batch(queue: &mut mpsc::Receiver<Message>) -> (Vec<Span>, bool) {
    let mut spans = match queue.recv().await {
        Some(Message::Spans(spans)) => spans,
        Some(Message::Stop) | None => return (Vec::new(), false),
    };
    let end = Instant::now() + GATHER;
    while spans.len() < BATCH {
        match timeout_at(end, queue.recv()).await {
            Ok(Some(Message::Spans(more))) => spans.extend(more),
            Ok(Some(Message::Stop) | None) => return (spans, false),
            Err(_elapsed) => break,
        }
    }
    (spans, true)
}
