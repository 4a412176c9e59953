//! What happens to a request, from the accepted connection to the last byte of the answer.
//!
//! ```text
//! listen ─ connection ─ service ─ receive ─ admit ─ exchange ⟲ ─ relay
//!                                  (body,    (key,   (attempt,    (bytes untouched,
//!                                   model)   chain)   peek)        watched)
//! ```
//!
//! Nothing of the request is kept once its response streams: one header would keep the whole head for as long as the
//! stream lives. Cancellation is by drop: when the client goes, the connection's future is dropped, and with it
//! the exchange or the relayed body, the upstream connection, and every guard.

mod access;
mod account;
mod activity;
mod alarm;
mod answering;
mod aside;
mod asked;
mod auth;
mod body;
mod bound;
mod budget;
mod connection;
mod error;
mod exchange;
mod h2;
mod headers;
mod http1;
mod incoming;
mod insert;
mod interims;
mod listen;
mod meter;
mod models;
mod named;
mod pace;
mod peek;
mod pieces;
mod point;
mod preface;
mod prepare;
mod proxy_protocol;
mod receive;
mod relay;
mod rename;
mod route;
mod service;
mod silence;
mod slots;
mod socket;
mod sources;
mod spans;
mod streaming;
mod target;
mod timer;
mod tls;
mod tunnel;
mod validate;
mod via;
mod watch;
mod worker;

#[cfg(test)]
mod tests;

pub use access::{AccessLog, Form, TARGET, Writer};
pub use auth::{ClientKey, ClientKeys};
pub use bound::{Bound, Sharing, bind, is_listening};
pub use budget::Budget;
pub use listen::serve;
pub use spans::{Exporter, Spans};
pub use tls::{Identity, IdentityError};
pub use via::Via;
pub use worker::{Drain, Live, Route, Shared, Worker};
