//! One connection of a scripted provider.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::script::{Script, Step};
use super::{REQUEST_TIMEOUT, Request, Shared};

/// Why a connection is over.
enum Over {
    ByPeer,
    ByScript,
}

pub(super) async fn serve(stream: TcpStream, number: usize, shared: Arc<Shared>) {
    let mut wire = Wire {
        stream,
        ahead: Vec::new(),
    };
    let over = loop {
        let Ok(Some((head, body, trailers))) = wire.request().await else {
            break Over::ByPeer;
        };
        let script = shared.change(|state| {
            state.requests.push(Request {
                connection: number,
                arrived: Instant::now(),
                head,
                body,
                trailers,
            });
            state.queue.pop_front().unwrap_or_else(|| state.otherwise.clone())
        });
        if let ControlFlow::Break(over) = wire.play(&script).await {
            break over;
        }
    };
    shared.change(|state| {
        let connection = &mut state.connections[number];
        connection.open = false;
        if matches!(over, Over::ByPeer) {
            connection.closed_by_peer = Some(Instant::now());
        }
    });
}

struct Wire {
    stream: TcpStream,
    /// Bytes read and not yet used.
    ahead: Vec<u8>,
}

impl Wire {
    /// The next request's head, payload and trailers; `None` where the peer closed in between.
    async fn request(&mut self) -> io::Result<Option<(String, Bytes, String)>> {
        let Some(head) = self.take_through(b"\r\n\r\n").await? else {
            return Ok(None);
        };
        let head = String::from_utf8_lossy(&head).into_owned();
        let lower = head.to_ascii_lowercase();
        let value = |name: &str| {
            let lines = lower.split("\r\n");
            lines
                .filter_map(|line| line.split_once(':'))
                .find(|(n, _)| *n == name)
                .map(|(_, v)| v.trim())
        };
        let body = if value("transfer-encoding").is_some() {
            timeout(REQUEST_TIMEOUT, self.chunked()).await??
        } else {
            let length = value("content-length")
                .map_or(Ok(0), str::parse)
                .map_err(io::Error::other)?;
            let body = timeout(REQUEST_TIMEOUT, self.take(length)).await??;
            body.map(|body| (body, String::new()))
        };
        Ok(body.map(|(body, trailers)| (head, Bytes::from(body), trailers)))
    }

    async fn chunked(&mut self) -> io::Result<Option<(Vec<u8>, String)>> {
        let mut payload = Vec::new();
        loop {
            let Some(line) = self.take_through(b"\r\n").await? else {
                return Ok(None);
            };
            let size = String::from_utf8_lossy(&line);
            let size = usize::from_str_radix(size.trim_end(), 16).map_err(io::Error::other)?;
            if size == 0 {
                return Ok(self.trailers().await?.map(|trailers| (payload, trailers)));
            }
            let Some(chunk) = self.take(size + 2).await? else {
                return Ok(None);
            };
            payload.extend_from_slice(&chunk[..size]);
        }
    }

    async fn trailers(&mut self) -> io::Result<Option<String>> {
        let mut trailers = String::new();
        loop {
            let Some(line) = self.take_through(b"\r\n").await? else {
                return Ok(None);
            };
            if line == b"\r\n" {
                return Ok(Some(trailers));
            }
            trailers.push_str(&String::from_utf8_lossy(&line));
        }
    }

    async fn take_through(&mut self, end: &[u8]) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(at) = self.ahead.windows(end.len()).position(|window| window == end) {
                return Ok(Some(self.ahead.drain(..at + end.len()).collect()));
            }
            if self.stream.read_buf(&mut self.ahead).await? == 0 {
                return Ok(None);
            }
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Option<Vec<u8>>> {
        while self.ahead.len() < length {
            if self.stream.read_buf(&mut self.ahead).await? == 0 {
                return Ok(None);
            }
        }
        Ok(Some(self.ahead.drain(..length).collect()))
    }

    async fn play(&mut self, script: &Script) -> ControlFlow<Over> {
        for step in script.steps() {
            match step {
                Step::Close => return ControlFlow::Break(Over::ByScript),
                Step::Pause(gap) => self.unless_left(sleep(*gap)).await?,
                Step::Repeat(bytes, times) => {
                    for _ in 0..*times {
                        self.write(bytes).await?;
                    }
                }
                Step::Reset => {
                    // Without lingering, the close that follows is a reset; a peer already gone is no matter.
                    drop(self.stream.set_zero_linger());
                    return ControlFlow::Break(Over::ByScript);
                }
                Step::Send(bytes) => self.write(bytes).await?,
                Step::Stall => self.unless_left(std::future::pending()).await?,
                Step::Wait(signal) => self.unless_left(signal.fired()).await?,
            }
        }
        ControlFlow::Continue(())
    }

    async fn write(&mut self, bytes: &[u8]) -> ControlFlow<Over> {
        match self.stream.write_all(bytes).await {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(Over::ByPeer),
        }
    }

    /// Waits for `event`, but no longer than the peer stays.
    async fn unless_left(&mut self, event: impl Future<Output = ()>) -> ControlFlow<Over> {
        tokio::pin!(event);
        loop {
            tokio::select! {
                biased;
                read = self.stream.read_buf(&mut self.ahead) => match read {
                    // What a peer sends ahead belongs to its next request.
                    Ok(1..) => {}
                    Ok(0) | Err(_) => return ControlFlow::Break(Over::ByPeer),
                },
                () = &mut event => return ControlFlow::Continue(()),
            }
        }
    }
}
