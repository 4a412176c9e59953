//! A client that sees exactly what came over the wire, when it came, and how it ended.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::PATIENCE;

/// How a response ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As its framing announced.
    Clean,
    /// The connection ended or broke before that.
    Cut,
}

/// A response head.
#[derive(Debug, Clone)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// Status line and header lines as they came.
    pub text: String,
}

impl Head {
    /// All values of a header, in order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        header_values(&self.text, name)
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }
}

/// A whole response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its head.
    pub head: Head,
    /// Its payload, freed of chunk framing.
    pub body: Bytes,
    /// How it ended.
    pub end: End,
    /// The payload by arrival: when, after the request was begun, and how many bytes.
    pub pieces: Vec<(Duration, usize)>,
}

impl Answer {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// The body as text, with what is not UTF-8 replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; panics where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    /// The `code` of an error of the proxy's own.
    pub fn code(&self) -> String {
        self.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// One request under way on a connection of its own.
#[derive(Debug)]
pub struct Exchange {
    stream: TcpStream,
    begun: Instant,
    buffer: Vec<u8>,
    framing: Framing,
}

#[derive(Debug, Clone, Copy)]
enum Framing {
    Unknown,
    Chunked,
    Sized(usize),
    UntilClose,
}

impl Exchange {
    /// Connects and sends these bytes.
    pub async fn begin(address: SocketAddr, request: impl AsRef<[u8]>) -> Self {
        let begun = Instant::now();
        let mut stream = patient("a connection", TcpStream::connect(address))
            .await
            .expect("lb accepts");
        stream.set_nodelay(true).expect("TCP has it");
        patient("a request to go out", stream.write_all(request.as_ref()))
            .await
            .expect("lb reads");
        Self {
            stream,
            begun,
            buffer: Vec::new(),
            framing: Framing::Unknown,
        }
    }

    /// Sends another request on the same connection, after the former's answer was read to its end.
    pub async fn again(&mut self, request: impl AsRef<[u8]>) {
        self.begun = Instant::now();
        self.framing = Framing::Unknown;
        patient("a request to go out", self.stream.write_all(request.as_ref()))
            .await
            .expect("lb reads");
    }

    /// Sends further bytes, which begin no request.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        patient("bytes to go out", self.stream.write_all(bytes.as_ref()))
            .await
            .expect("lb reads");
    }

    /// The response head; panics if the connection ends before it.
    pub async fn head(&mut self) -> Head {
        self.try_head()
            .await
            .expect("a response head before the end of the connection")
    }

    /// The response head, or `None` if the connection ends before it.
    pub async fn try_head(&mut self) -> Option<Head> {
        let text = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                let head = self.buffer.drain(..at + 4).collect::<Vec<_>>();
                break String::from_utf8(head).expect("a head in ASCII");
            }
            if !self.read().await {
                return None;
            }
        };
        let status = text
            .get(9..12)
            .and_then(|digits| digits.parse().ok())
            .expect("a status code");
        let head = Head { status, text };
        self.framing = match (head.header("transfer-encoding"), head.header("content-length")) {
            (Some(_), _) => Framing::Chunked,
            (None, Some(length)) => Framing::Sized(length.parse().expect("a number")),
            (None, None) if status == 204 || status == 304 => Framing::Sized(0),
            (None, None) => Framing::UntilClose,
        };
        Some(head)
    }

    /// The next piece of payload, or how the response ended.
    pub async fn piece(&mut self) -> Result<Bytes, End> {
        match self.framing {
            Framing::Chunked => self.chunk().await,
            Framing::Sized(0) => Err(End::Clean),
            Framing::Sized(left) => {
                let piece = self.some(left).await.ok_or(End::Cut)?;
                self.framing = Framing::Sized(left - piece.len());
                Ok(piece)
            }
            Framing::UntilClose => self.some(usize::MAX).await.ok_or(End::Clean),
            Framing::Unknown => panic!("the head is read first"),
        }
    }

    /// Reads payload until it holds `text`, and returns all of it; panics if it ends before.
    pub async fn until(&mut self, text: &str) -> Vec<u8> {
        let mut seen = Vec::new();
        while find(&seen, text.as_bytes()).is_none() {
            match self.piece().await {
                Ok(piece) => seen.extend_from_slice(&piece),
                Err(end) => panic!(
                    "{end:?} end before {text:?}, after {:?}",
                    String::from_utf8_lossy(&seen)
                ),
            }
        }
        seen
    }

    /// The whole answer from here on; interim responses before it are passed over.
    pub async fn answer(&mut self) -> Answer {
        let mut head = self.head().await;
        while matches!(head.status, 100 | 102..200) {
            head = self.head().await;
        }
        let (mut body, mut pieces) = (Vec::new(), Vec::new());
        loop {
            match self.piece().await {
                Ok(piece) => {
                    body.extend_from_slice(&piece);
                    pieces.push((self.begun.elapsed(), piece.len()));
                }
                Err(end) => {
                    return Answer {
                        head,
                        body: Bytes::from(body),
                        end,
                        pieces,
                    };
                }
            }
        }
    }

    /// Reads and forgets what comes over the wire until `length` more bytes have come; panics if it ends before.
    pub async fn skip(&mut self, length: usize) {
        let mut left = length;
        while left > 0 {
            assert!(
                !self.buffer.is_empty() || self.read().await,
                "an end {left} bytes too early"
            );
            let taken = self.buffer.len().min(left);
            self.buffer.drain(..taken);
            left -= taken;
        }
    }

    /// Whether no byte of an answer has come so far.
    pub fn nothing_yet(&mut self) -> bool {
        let read = self.stream.try_read_buf(&mut self.buffer);
        self.buffer.is_empty() && read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Whether the connection is over, now or soon.
    pub async fn closed(&mut self) -> bool {
        !self.read().await
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        self.stream.set_zero_linger().expect("a TCP socket");
    }

    /// Ends only our sending half, as a client that goes does first.
    pub async fn half_close(&mut self) {
        self.stream.shutdown().await.expect("an open connection");
    }

    async fn chunk(&mut self) -> Result<Bytes, End> {
        let size = loop {
            if let Some(at) = find(&self.buffer, b"\r\n") {
                let line = self.buffer.drain(..at + 2).collect::<Vec<_>>();
                let line = String::from_utf8(line).expect("a chunk size in ASCII");
                break usize::from_str_radix(line.trim_end(), 16).expect("a chunk size");
            }
            if !self.read().await {
                return Err(End::Cut);
            }
        };
        while self.buffer.len() < size + 2 {
            if !self.read().await {
                return Err(End::Cut);
            }
        }
        let mut chunk = self.buffer.drain(..size + 2).collect::<Vec<_>>();
        assert_eq!(chunk.split_off(size), b"\r\n", "a chunk ends with its line end");
        if size == 0 {
            Err(End::Clean)
        } else {
            Ok(Bytes::from(chunk))
        }
    }

    async fn some(&mut self, limit: usize) -> Option<Bytes> {
        if self.buffer.is_empty() && !self.read().await {
            return None;
        }
        let length = self.buffer.len().min(limit);
        Some(self.buffer.drain(..length).collect())
    }

    /// Reads what is there; false at the end or when the connection broke.
    async fn read(&mut self) -> bool {
        let read = patient("bytes from lb", self.stream.read_buf(&mut self.buffer)).await;
        matches!(read, Ok(1..))
    }
}

/// Sends one request and reads the whole answer.
pub async fn ask(address: SocketAddr, request: impl AsRef<[u8]>) -> Answer {
    Exchange::begin(address, request).await.answer().await
}

/// The bytes of a `GET`, by a host name that the admin listener takes for its own.
pub fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n").into_bytes()
}

/// The bytes of a JSON `POST` with these further header lines, each ended by CRLF.
pub fn post(target: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "POST {target} HTTP/1.1\r\nhost: lb.test\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
        body.len(),
    );
    [head.as_bytes(), body].concat()
}

/// The bytes of a chat request for a model.
pub fn chat(model: &str, stream: bool) -> Vec<u8> {
    post("/v1/chat/completions", "", chat_body(model, stream))
}

/// The body of a chat request for a model.
pub fn chat_body(model: &str, stream: bool) -> String {
    json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": "hi"}]}).to_string()
}

/// All values of a header in a head as it came over the wire.
pub(crate) fn header_values<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    let lines = head.split("\r\n").skip(1).filter_map(|line| line.split_once(':'));
    lines
        .filter(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
        .collect()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

async fn patient<T>(what: &str, event: impl Future<Output = T>) -> T {
    timeout(PATIENCE, event)
        .await
        .unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain for {what}"))
}
