//! What a scripted provider says, as a list of steps.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// One step of an answer.
#[derive(Debug, Clone)]
pub enum Step {
    /// Closes the connection in order (FIN).
    Close,
    /// Lets real time pass; only for gaps that a timer of the proxy has to see.
    Pause(Duration),
    /// Writes these bytes so many times: bodies larger than a test wants to hold.
    Repeat(Bytes, usize),
    /// Closes the connection with a reset (RST).
    Reset,
    /// Writes these bytes as they are.
    Send(Bytes),
    /// Says nothing more until the peer closes.
    Stall,
    /// Says nothing until the test fires the signal.
    Wait(Signal),
}

/// Something the test lets happen; stays fired once fired.
#[derive(Debug, Clone)]
pub struct Signal(Arc<Semaphore>);

impl Signal {
    /// A signal that has not been fired.
    pub fn new() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }

    /// Lets everything that waits for it go on, now and later.
    pub fn fire(&self) {
        self.0.close();
    }

    /// Waits until it has been fired.
    pub async fn fired(&self) {
        // A semaphore without permits answers only when it is closed.
        assert!(self.0.acquire().await.is_err(), "a signal has no permits to give");
    }
}

impl Default for Signal {
    fn default() -> Self {
        Self::new()
    }
}

/// How the bytes of a body are laid on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Chunked,
    Plain,
}

/// An answer to one request; a connection whose script ends without closing it waits for the next request.
#[derive(Debug, Clone)]
pub struct Script {
    steps: Vec<Step>,
    framing: Framing,
}

impl Script {
    /// An answer that is spelled out byte by byte.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::silent().bytes(bytes)
    }

    /// No byte yet.
    pub fn silent() -> Self {
        Self {
            steps: Vec::new(),
            framing: Framing::Plain,
        }
    }

    /// A response head with these header lines, ended, whose body follows as it is.
    pub fn head(status: u16, headers: &[(&str, &str)]) -> Self {
        let mut head = format!("HTTP/1.1 {status} Scripted\r\n");
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").expect("a String takes everything");
        }
        head.push_str("\r\n");
        Self::raw(head)
    }

    /// A whole JSON answer with a `Content-Length`, and with these headers besides.
    pub fn json(status: u16, headers: &[(&str, &str)], body: &Value) -> Self {
        let body = body.to_string();
        let length = body.len().to_string();
        let own = [
            ("content-type", "application/json"),
            ("content-length", length.as_str()),
        ];
        Self::head(status, &[&own, headers].concat()).bytes(body)
    }

    /// A whole error answer as providers give it.
    pub fn error(status: u16) -> Self {
        let error =
            json!({"error": {"message": format!("scripted {status}"), "type": "scripted", "code": status}});
        Self::json(status, &[], &error)
    }

    /// A whole chat completion that says `text`.
    pub fn completion(text: &str) -> Self {
        let choice =
            json!({"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}});
        let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
        let body = json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted",
            "choices": [choice], "usage": usage,
        });
        Self::json(200, &[], &body)
    }

    /// The head of a chunked event stream.
    pub fn stream() -> Self {
        Self::silent().streams()
    }

    /// The head of a chunked event stream with these headers besides.
    pub fn stream_with(headers: &[(&str, &str)]) -> Self {
        let own = [
            ("content-type", "text/event-stream"),
            ("transfer-encoding", "chunked"),
        ];
        Self {
            framing: Framing::Chunked,
            ..Self::head(200, &[&own, headers].concat())
        }
    }

    /// A whole streamed chat completion: one event a token, a finish event, `[DONE]`.
    pub fn streamed(tokens: &[&str]) -> Self {
        tokens
            .iter()
            .fold(Self::stream(), |script, token| script.token(token))
            .finish()
    }

    /// Adds one step.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Adds the head of a chunked event stream, for scripts that begin with silence.
    #[must_use]
    pub fn streams(self) -> Self {
        let mut script = self;
        script.steps.extend(Self::stream_with(&[]).steps);
        script.framing = Framing::Chunked;
        script
    }

    /// Adds body bytes, as one chunk where the body is chunked.
    #[must_use]
    pub fn bytes(self, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        let framed = match self.framing {
            Framing::Chunked => {
                let size = format!("{:x}\r\n", bytes.len());
                Bytes::from([size.as_bytes(), &bytes, b"\r\n"].concat())
            }
            Framing::Plain => bytes,
        };
        self.then(Step::Send(framed))
    }

    /// Adds one event with these data.
    #[must_use]
    pub fn data(self, data: &str) -> Self {
        self.bytes(format!("data: {data}\n\n"))
    }

    /// Adds the event of one generated token.
    #[must_use]
    pub fn token(self, text: &str) -> Self {
        self.data(&token(text))
    }

    /// Adds the finish event, `[DONE]` and the last chunk.
    #[must_use]
    pub fn finish(self) -> Self {
        self.data(&delta(&json!({}), &json!("stop"))).data("[DONE]").end()
    }

    /// Adds the last chunk: the clean end of a chunked body.
    #[must_use]
    pub fn end(self) -> Self {
        self.then(Step::Send(Bytes::from_static(b"0\r\n\r\n")))
    }

    /// Waits for `signal`.
    #[must_use]
    pub fn wait(self, signal: &Signal) -> Self {
        self.then(Step::Wait(signal.clone()))
    }

    /// Lets `milliseconds` of real time pass.
    #[must_use]
    pub fn pause(self, milliseconds: u64) -> Self {
        self.then(Step::Pause(Duration::from_millis(milliseconds)))
    }

    /// Falls silent for good.
    #[must_use]
    pub fn stall(self) -> Self {
        self.then(Step::Stall)
    }

    /// Closes in order.
    #[must_use]
    pub fn close(self) -> Self {
        self.then(Step::Close)
    }

    /// Closes with a reset.
    #[must_use]
    pub fn reset(self) -> Self {
        self.then(Step::Reset)
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

/// The data of a chunk that carries one generated token.
pub fn token(text: &str) -> String {
    delta(&json!({"content": text}), &Value::Null)
}

fn delta(delta: &Value, finish: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk = json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
        "choices": [choice],
    });
    chunk.to_string()
}
