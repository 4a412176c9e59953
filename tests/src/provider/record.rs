//! What a scripted provider saw.

use std::time::Instant;

use bytes::Bytes;
use serde_json::Value;

use crate::client::header_values;

/// One request as it came over the wire.
#[derive(Debug, Clone)]
pub struct Request {
    /// The number of the connection it came on, from 0.
    pub connection: usize,
    /// When its last byte had been read.
    pub arrived: Instant,
    /// Request line and header lines as sent, with the empty line.
    pub head: String,
    /// The payload, freed of its chunk framing where it had one.
    pub body: Bytes,
    /// The lines behind the last chunk, as sent.
    pub trailers: String,
}

impl Request {
    /// The method and the target of the request line.
    pub fn line(&self) -> (&str, &str) {
        let mut words = self.head.split(' ');
        (words.next().unwrap_or_default(), words.next().unwrap_or_default())
    }

    /// All values of a header, in order.
    pub fn all(&self, name: &str) -> Vec<&str> {
        header_values(&self.head, name)
    }

    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.all(name).first().copied()
    }

    /// The body as JSON; `null` where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// What is remembered of one connection.
#[derive(Debug, Clone)]
pub struct Connection {
    /// When the peer was seen to close or reset it; `None` while it is open or where the script closed it.
    pub closed_by_peer: Option<Instant>,
    /// Whether it is still served.
    pub open: bool,
}
