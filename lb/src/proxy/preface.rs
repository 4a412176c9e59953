//! Tells HTTP/2 by prior knowledge from HTTP/1 on a plain connection, by its first bytes.
//!
//! The bytes are looked at where they lie in the socket: whoever serves the connection reads them again. That costs
//! one system call a connection, and nothing has to be carried along.

use std::io;

use rustix::net::RecvFlags;
use tokio::io::Interest;
use tokio::net::TcpStream;

use super::connection::Version;

/// How a client of HTTP/2 begins (RFC 9113, 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Waits until the first bytes tell. A `POST` tells by its second one.
///
/// The caller limits the time: a client may send nothing, or half a preface, and no more.
pub(super) async fn spoken(stream: &TcpStream) -> io::Result<Version> {
    loop {
        let ready = stream.ready(Interest::READABLE).await?;
        match stream.try_io(Interest::READABLE, || look(stream)) {
            // Nothing more will come: whatever this is, it is no preface.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && ready.is_read_closed() => {
                return Ok(Version::Http1);
            }
            // The readiness is used up, so the next one means that more has come.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            told => return told,
        }
    }
}

fn look(stream: &TcpStream) -> io::Result<Version> {
    let mut bytes = [0; PREFACE.len()];
    let (length, _) = rustix::net::recv(stream, &mut bytes[..], RecvFlags::PEEK)?;
    judge(&bytes[..length])
}

fn judge(bytes: &[u8]) -> io::Result<Version> {
    if bytes.is_empty() || !PREFACE.starts_with(bytes) {
        Ok(Version::Http1)
    } else if bytes.len() == PREFACE.len() {
        Ok(Version::Http2)
    } else {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

#[cfg(test)]
mod tests;
