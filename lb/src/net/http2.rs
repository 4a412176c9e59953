//! HTTP/2 towards upstreams: hyper's connections, shared by the requests of one worker.
//!
//! ```text
//!   Pool ──Slot──▶ Multiplexed ──requests──▶ hyper's tasks ──▶ Io ──▶ socket
//!                       └──────────── Wire ───────────────────┘
//! ```
//!
//! hyper runs a connection in tasks of its own, on the worker's runtime; what they and the requests have to know of
//! each other is in the `wire`. A connection is *retired* where it takes no new stream and lets the others finish:
//! after a GOAWAY, at its age, when its address is gone, when an attempt was given up on it, on the kernel plane's
//! word. Nothing is repeated here: hyper's connections do not retry, and no pool of hyper's is used.
//!
//! The windows are what keeps one stalled stream from blocking the others: a stream may have [`STREAM_WINDOW`] bytes
//! under way that its reader has not taken, and the connection has room for that of every stream at once.

mod connection;
mod exchange;
mod sending;
mod wire;

pub(super) use connection::{Multiplexed, Slot};
pub(super) use exchange::{How, send};

/// Bytes of one response that may be under way or held without being read. Enough for 40 Mbit/s over 50 ms, and what a
/// client that stops reading can cost.
pub(super) const STREAM_WINDOW: u32 = 256 * 1024;
