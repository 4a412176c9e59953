//! Upstream connections: our own HTTP/1.1 client, and hyper's HTTP/2.
//!
//! The former exists because a proxy needs less than a general client has, and some things that none has: one write for
//! head and body, no connection task and no channel, no buffer while a connection waits, bodies read only when polled,
//! the socket known before it connects, idle connections that can be purged by endpoint, and no retry that the caller
//! does not see. The framing is pure and lives in [`crate::wire::http1`]. HTTP/2 needs the task and the buffers anyway;
//! what is ours there is who shares which connection, and for how long ([`http2`]).
//!
//! ```text
//!  Client::send ── take a connection, or dial ── write, and read the head ──▶ Response<Incoming>
//!        │                  │                              │                        │
//!        │            Error::{Dns, Connect,          Error::{Stale, Refused,  read to its end: the connection
//!        │            ConnectTimeout, Tls,           Unanswered, Cut,         or its place is free again
//!        │            Abandoned, Full, Local}:       BadResponse, Signalled}  anything else: closed, or reset
//!        │            nothing was sent
//! ```
//!
//! # Cancel safety
//! Whatever is dropped closes its connection at once, or resets its stream where others share the connection: the future
//! of [`Client::send`] in any phase, or an [`Incoming`] before its end. A connection of HTTP/1.1 is either idle in a
//! pool, or owned by one of these two; one of HTTP/2 belongs to hyper's task. Its guard counts it in
//! [`Destination::open`] for as long as its socket is open.
//!
//! # Workers
//! A tokio socket belongs to the runtime that made it, so every worker has a shard of idle connections of its own
//! and takes only from there. Limits and counts are the process's: they are atomics of the [`Destination`], which
//! the workers share.

mod body;
mod client;
mod destination;
mod dial;
mod error;
mod exchange;
mod fate;
mod http2;
mod outgoing;
mod place;
mod pool;
mod request;
pub(crate) mod scratch;
mod source;
mod stream;
mod streamed;
pub mod tls;
mod tunnel;
mod upgraded;

#[cfg(test)]
mod tests;

pub use body::Incoming;
pub use client::{Client, STALE_WITHIN};
pub use destination::{Destination, Limits, Protocol};
pub use dial::{SocketHook, reach};
pub use error::{BodyError, Error};
pub use fate::{Fates, Followed};
pub use request::{Field, Fields, Interims, Request};
pub use streamed::{SourceError, Streamed};
pub use tls::Tls;
pub use tunnel::Proxy;
pub use upgraded::Upgraded;
