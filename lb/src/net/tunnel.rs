//! Upstreams behind a proxy that is asked by CONNECT for a tunnel to them.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::Method;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{Error, scratch};
use crate::wire::http1::HeadReader;

/// What a proxy is asked for. Endpoints in the clear go through a tunnel as well: it sees none of their requests.
#[derive(Clone)]
pub struct Proxy {
    /// `host:port` of the upstream.
    target: Box<str>,
    /// The value of `proxy-authorization`.
    credentials: Option<Arc<SecretString>>,
}

impl Proxy {
    /// A tunnel to `target` (`host:port`), with the user and password that the proxy wants to see.
    pub fn new(target: &str, user: Option<(&str, &str)>) -> Self {
        let basic = |(name, password): (&str, &str)| {
            let encoded = BASE64.encode(format!("{name}:{password}"));
            Arc::new(SecretString::from(format!("Basic {encoded}")))
        };
        Self {
            target: target.into(),
            credentials: user.map(basic),
        }
    }

    /// Asks for the tunnel on a connection to the proxy. What the proxy refuses is a connection that was not made.
    pub(super) async fn open(&self, stream: &mut TcpStream) -> Result<(), Error> {
        let mut head = format!("CONNECT {0} HTTP/1.1\r\nhost: {0}\r\n", self.target);
        if let Some(credentials) = &self.credentials {
            head.push_str("proxy-authorization: ");
            head.push_str(credentials.expose_secret());
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await.map_err(Error::Connect)?;
        let mut reader = HeadReader::new(&Method::CONNECT);
        loop {
            let read = poll_fn(|cx| scratch::poll_read(&mut *stream, cx, |raw| Bytes::copy_from_slice(raw)));
            let raw = read.await.map_err(Error::Connect)?;
            if raw.is_empty() {
                return Err(refused("the proxy closed the connection".to_owned()));
            }
            match reader.feed(&raw) {
                Ok(None) => {}
                // The tunnel's other end speaks when it has been spoken to.
                Ok(Some((head, used))) if head.status.is_success() && used == raw.len() => return Ok(()),
                Ok(Some((head, _))) if head.status.is_success() => {
                    return Err(refused("the proxy sent more than its answer".to_owned()));
                }
                Ok(Some((head, _))) => {
                    return Err(refused(format!("the proxy answered {}", head.status.as_u16())));
                }
                Err(fault) => return Err(refused(format!("the proxy's answer: {fault}"))),
            }
        }
    }
}

fn refused(why: String) -> Error {
    Error::Connect(io::Error::other(why))
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy")
            .field("target", &self.target)
            .field("credentials", &self.credentials.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests;
