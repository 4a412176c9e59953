//! Upstream connections: our own HTTP/1.1 client.
//!
//! It exists because a proxy needs less than a general client has, and some things that none has: one write for head
//! and body, no connection task and no channel, no buffer while a connection waits, bodies read only when polled, the
//! socket known before it connects, idle connections that can be purged by endpoint, and no retry that the caller
//! does not see. The framing is pure and lives in [`crate::wire::http1`].
//!
//! ```text
//!  Client::send ── take an idle connection, or dial ── write, and read the head ──▶ Response<Incoming>
//!        │                       │                              │                        │
//!        │                 Error::{Dns, Connect,          Error::{Stale,           read to its end: pooled
//!        │                 ConnectTimeout, Tls,           Unanswered,              anything else: closed
//!        │                 Abandoned, Full, Local}:       BadResponse, Signalled}
//!        │                 nothing was sent
//! ```
//!
//! # Cancel safety
//! Whatever is dropped closes its connection at once: the future of [`Client::send`] in any phase, or an
//! [`Incoming`] before its end. A connection is either idle in a pool, or owned by one of these two; its guard
//! counts it in [`Destination::open`] in both places.
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
mod outgoing;
mod pool;
mod request;
mod scratch;
mod stream;
pub mod tls;

#[cfg(test)]
mod tests;

pub use body::Incoming;
pub use client::{Client, STALE_WITHIN};
pub use destination::{Destination, Limits};
pub use dial::{SocketHook, reach};
pub use error::{BodyError, Error};
pub use fate::{Fates, Followed};
pub use request::{Field, Fields, Request};
pub use tls::Tls;
