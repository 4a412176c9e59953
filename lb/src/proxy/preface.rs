//! Tells HTTP/2 by prior knowledge from HTTP/1 on a plain connection, by its first bytes.
//!
//! The bytes are looked at where they lie in the socket: whoever serves the connection reads them again. That costs
//! one system call a connection, and nothing has to be carried along.

use std::io;

use rustix::net::RecvFlags;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::activity::Activity;
use super::connection::{Limits, Version};

/// How a client of HTTP/2 begins (RFC 9113, 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Waits until the first bytes tell. A `POST` tells by its second one.
///
/// Silence is an error after `first_byte_timeout`. Bytes that could still become a preface, and do not for
/// `header_timeout`, are taken for the beginning of a slow head of HTTP/1, which they are as well.
pub(super) async fn spoken(stream: &TcpStream, activity: &Activity, limits: &Limits) -> io::Result<Version> {
    let mut due = Instant::now() + limits.first_byte_timeout;
    let mut begun = false;
    loop {
        let ready = match timeout_at(due, stream.ready(Interest::READABLE)).await {
            Ok(ready) => ready?,
            Err(_elapsed) if begun => return Ok(Version::Http1),
            Err(elapsed) => return Err(elapsed.into()),
        };
        let mut undecided = false;
        let looked = stream.try_io(Interest::READABLE, || {
            let version = look(stream)?;
            undecided = version.is_none();
            // Uses the readiness up, so that the next one means that more has come.
            version.ok_or_else(|| io::ErrorKind::WouldBlock.into())
        });
        match looked {
            // Nothing more will come: whatever this is, it is no preface.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && ready.is_read_closed() => {
                return Ok(Version::Http1);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if undecided && !begun {
                    begun = true;
                    activity.read();
                    due = Instant::now() + limits.header_timeout;
                }
            }
            told => return told,
        }
    }
}

/// What the bytes that are there say; `None` while they may still become either.
fn look(stream: &TcpStream) -> io::Result<Option<Version>> {
    let mut bytes = [0; PREFACE.len()];
    let (length, _) = rustix::net::recv(stream, &mut bytes[..], RecvFlags::PEEK)?;
    Ok(judge(&bytes[..length]))
}

fn judge(bytes: &[u8]) -> Option<Version> {
    if bytes.is_empty() || !PREFACE.starts_with(bytes) {
        Some(Version::Http1)
    } else if bytes.len() == PREFACE.len() {
        Some(Version::Http2)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
