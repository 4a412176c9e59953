//! Why an attempt failed, by what the upstream can have seen of it.

use std::io;

use crate::wire::http1::Malformed;

/// How one attempt ended without a response head.
///
/// The kinds are told apart by what may be repeated (spec: what was sent decides): after `Abandoned`, `Connect`,
/// `ConnectTimeout`, `Dns`, `Full`, `Local` and `Tls` nothing was sent, and `Full` and `Local` say nothing of the
/// upstream either; after `Refused` and `Stale` the upstream had given the connection up or turned the request down
/// before it looked at it; after `Cut` it has a part of a request that will never be whole, by no fault of its own; after `Signalled` and `Unanswered` it may have acted on it; after `BadResponse` it has answered
/// something.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection: the kernel plane saw that none would come of it.
    #[error("connect: abandoned on the kernel's signal")]
    Abandoned,
    /// Response bytes came, but no response that can be trusted.
    #[error("bad response: {0}")]
    BadResponse(#[source] Malformed),
    /// No connection, or one that took not a byte of the request.
    #[error("connect: {0}")]
    Connect(#[source] io::Error),
    /// No connection, or no finished TLS handshake, within the time given.
    #[error("connect: timed out")]
    ConnectTimeout,
    /// The source of a streamed body failed: whoever sent it to us has gone or broke the rules.
    #[error("request body: {0}")]
    Cut(#[source] io::Error),
    /// The destination has no address (its name has not been resolved).
    #[error("no address")]
    Dns,
    /// The destination has as many connections as it may have, and none came free within the time to connect.
    #[error("connection limit reached")]
    Full,
    /// This host has no socket to give: it is out of file descriptors, ports or memory.
    #[error("no socket: {0}")]
    Local(#[source] io::Error),
    /// The upstream says by GOAWAY or `REFUSED_STREAM` that it has not looked at the request, or the connection was over
    /// before it could be sent.
    #[error("refused before processing: {source}")]
    Refused {
        /// What it said.
        source: io::Error,
        /// Whether a fresh connection may do, because this was not one.
        again: bool,
    },
    /// The request was sent, at least in part, and the kernel plane saw the connection die before a response came.
    #[error("no response: ended on the kernel's signal")]
    Signalled,
    /// A reused connection broke within [`STALE_WITHIN`](super::STALE_WITHIN) of the first request byte,
    /// without a byte of response: the upstream closed it while it was idle. Another connection may do.
    #[error("stale connection: {0}")]
    Stale(#[source] io::Error),
    /// The TLS handshake failed.
    #[error("TLS: {0}")]
    Tls(#[source] io::Error),
    /// The request was sent, at least in part, and the connection ended without a byte of response.
    #[error("no response: {0}")]
    Unanswered(#[source] io::Error),
}

/// Why a response body ended before its end.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// Its framing is broken.
    #[error("bad response body: {0}")]
    Malformed(#[source] Malformed),
    /// The connection broke.
    #[error("connection broke inside the response body: {0}")]
    Reset(#[source] io::Error),
    /// Its stream was reset, or the connection that it shared with others broke.
    #[error("stream broke inside the response body: {}", describe(.0))]
    Stream(#[source] hyper::Error),
    /// The kernel plane saw the connection die.
    #[error("response body ended on the kernel's signal")]
    Signalled,
    /// The connection was closed in good order (or TLS ended without its `close_notify`) with the body not complete.
    #[error("connection closed inside the response body")]
    Truncated,
}

/// hyper says where, its source says why.
fn describe(error: &hyper::Error) -> String {
    use std::error::Error as _;
    error
        .source()
        .map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}
