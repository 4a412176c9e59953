//! The PROXY protocol: what a proxy in front, which passes only bytes, says about the client behind it.
//!
//! The header is read from the socket byte for byte and nothing behind it, so that whoever serves the connection finds
//! the client's first byte: it may be TLS, a preface, or a request.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use proxy_header::{ParseConfig, ProxyHeader};
use rustix::net::RecvFlags;
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::TcpStream;

use crate::config::ProxyProtocol;

/// How the binary form begins.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The binary form up to the length of the rest.
const FIXED: usize = 16;

/// The longest header of the text form, its line end included.
const MAX_TEXT: usize = 107;

/// The longest header of the binary form that is read: addresses, and room for what a proxy adds to them.
const MAX_BINARY: usize = 4096;

/// Reads the header, and says whom the connection is from: `None` where the proxy speaks for itself, as its health
/// checks do. A header of another form than `form`, none, or none within `limit` is an error.
pub(super) async fn read(
    stream: &mut TcpStream,
    form: ProxyProtocol,
    limit: Duration,
) -> io::Result<Option<IpAddr>> {
    let reading = async {
        let length = length(stream, form).await?;
        let mut header = vec![0; length];
        stream.read_exact(&mut header).await?;
        parse(&header, form)
    };
    tokio::time::timeout(limit, reading).await?
}

/// Waits until the length is known, by looking at the bytes where they lie.
async fn length(stream: &TcpStream, form: ProxyProtocol) -> io::Result<usize> {
    loop {
        let ready = stream.ready(Interest::READABLE).await?;
        let looked = stream.try_io(Interest::READABLE, || {
            let mut bytes = [0; MAX_TEXT];
            let (seen, _) = rustix::net::recv(stream, &mut bytes[..], RecvFlags::PEEK)?;
            // Uses the readiness up, so that the next one means that more has come.
            measure(&bytes[..seen], form)?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
        });
        match looked {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && ready.is_read_closed() => {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            told => return told,
        }
    }
}

/// How long the header is whose first bytes these are; `None` while they do not say.
fn measure(bytes: &[u8], form: ProxyProtocol) -> io::Result<Option<usize>> {
    let common = |expected: &[u8]| {
        let common = bytes.len().min(expected.len());
        bytes[..common] == expected[..common]
    };
    if bytes.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let (text, binary) = (
        matches!(form, ProxyProtocol::V1 | ProxyProtocol::Any),
        matches!(form, ProxyProtocol::V2 | ProxyProtocol::Any),
    );
    if binary && common(SIGNATURE) {
        let Some(fixed) = bytes.first_chunk::<FIXED>() else {
            return Ok(None);
        };
        let length = FIXED + usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
        return if length <= MAX_BINARY {
            Ok(Some(length))
        } else {
            Err(bad("too long"))
        };
    }
    if text && common(b"PROXY ") {
        return match memchr::memchr(b'\n', bytes) {
            Some(end) => Ok(Some(end + 1)),
            None if bytes.len() < MAX_TEXT => Ok(None),
            None => Err(bad("too long")),
        };
    }
    Err(bad("missing"))
}

fn parse(header: &[u8], form: ProxyProtocol) -> io::Result<Option<IpAddr>> {
    let accepted = ParseConfig {
        include_tlvs: false,
        allow_v1: form != ProxyProtocol::V2,
        allow_v2: form != ProxyProtocol::V1,
    };
    match ProxyHeader::parse(header, accepted) {
        Ok((parsed, length)) if length == header.len() => {
            let address = parsed.proxied_address();
            Ok(address.map(|address| address.source.ip().to_canonical()))
        }
        _ => Err(bad("malformed")),
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the PROXY protocol header is {what}"),
    )
}

#[cfg(test)]
mod tests;
