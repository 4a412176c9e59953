//! The two requests that the demo makes: a streamed chat, and a look at lb's state.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use super::MODEL;
use super::report::{find, kernel_watches};

/// How a request ended for its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Whole, up to `[DONE]`.
    Answered,
    /// Its first token came, its last did not.
    Cut,
    /// No token came.
    Failed,
}

/// What a client saw of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sample {
    /// The provider that answered, from the `x-lb-provider` header; empty where there is none.
    pub(super) provider: String,
    /// From the beginning of the request to its first event.
    pub(super) first_token: Option<Duration>,
    pub(super) ending: Ending,
}

/// The body of the demo's chat request, also for the `curl` line it prints.
pub(super) fn chat_body() -> String {
    // Spelled out, since people read it: JSON built from a map would have its members in another order.
    format!(r#"{{"model":"{MODEL}","stream":true,"messages":[{{"role":"user","content":"hello"}}]}}"#)
}

/// Streams one chat through lb.
pub(super) async fn chat(lb: SocketAddr) -> Sample {
    let begun = Instant::now();
    let mut seen = Vec::new();
    let mut first_token = None;
    let exchange = async {
        let mut stream = send(lb, "POST /v1/chat/completions", &chat_body()).await?;
        while !seen.ends_with(LAST_CHUNK) && stream.read_buf(&mut seen).await? > 0 {
            if first_token.is_none() && contains(&seen, b"\ndata: ") {
                first_token = Some(begun.elapsed());
            }
        }
        io::Result::Ok(())
    };
    // How it ended is read off the bytes: an error and a silent end are the same to a client that wants its answer.
    drop(timeout(LIMIT, exchange).await);
    let ending = match first_token {
        Some(_) if contains(&seen, b"data: [DONE]") => Ending::Answered,
        Some(_) => Ending::Cut,
        None => Ending::Failed,
    };
    Sample {
        provider: header(&seen, "x-lb-provider"),
        first_token,
        ending,
    }
}

/// lb's own state, from its admin address.
pub(super) async fn state(admin: SocketAddr) -> io::Result<Value> {
    let answer = async {
        let mut answer = Vec::new();
        send(admin, "GET /api/v1/state", "")
            .await?
            .read_to_end(&mut answer)
            .await?;
        io::Result::Ok(answer)
    };
    let answer = timeout(LIMIT, answer).await??;
    let body = answer
        .windows(4)
        .position(|end| end == b"\r\n\r\n")
        .map_or(&[][..], |at| &answer[at + 4..]);
    serde_json::from_slice(body).map_err(io::Error::other)
}

/// How lb found a provider dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Noticed {
    /// From the death to lb's state showing it.
    pub(super) after: Duration,
    /// lb's word for the cause.
    pub(super) cause: String,
}

/// Looks at lb's state until it shows that the provider's endpoint is out. If streams that were cut have put it out and
/// the kernel is watching, its word of the death is waited for as well. In the order they came; empty if the endpoint
/// did not go.
pub(super) async fn noticed(admin: SocketAddr, provider: &str) -> Vec<Noticed> {
    let begun = Instant::now();
    let mut patience = NOTICED;
    let mut found: Vec<Noticed> = Vec::new();
    while begun.elapsed() < patience {
        let state = state(admin).await.unwrap_or_default();
        let endpoint = &find(&state["providers"], provider)["endpoints"][0];
        if let Some(cause) = endpoint["cause"].as_str()
            && found.last().is_none_or(|last| last.cause != cause)
        {
            let after = begun.elapsed();
            patience = after + KERNEL_WORD;
            found.push(Noticed {
                after,
                cause: cause.to_owned(),
            });
        }
        let complete = |last: &Noticed| last.cause.starts_with("kernel_") || !kernel_watches(&state);
        if found.last().is_some_and(complete) {
            break;
        }
        sleep(LOOK).await;
    }
    found
}

async fn send(address: SocketAddr, line: &str, body: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

fn header(answer: &[u8], name: &str) -> String {
    let head = answer
        .split(|&byte| byte == b'\n')
        .take_while(|line| !line.trim_ascii().is_empty());
    let mut lines = head.filter_map(|line| str::from_utf8(line).ok()?.split_once(':'));
    let found = lines.find(|(found, _)| found.eq_ignore_ascii_case(name));
    found
        .map(|(_, value)| value.trim().to_owned())
        .unwrap_or_default()
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

/// The end of a chunked body.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";
/// A killed provider is out by then, or it is not told when it goes.
const NOTICED: Duration = Duration::from_secs(2);
/// The kernel's word of it has come by then after the first cause, or is not told.
const KERNEL_WORD: Duration = Duration::from_millis(250);
/// How often is looked whether it is.
const LOOK: Duration = Duration::from_millis(2);
/// No answer of the demo takes longer.
const LIMIT: Duration = Duration::from_secs(20);
