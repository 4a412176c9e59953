//! What happens to a request, from the accepted connection to the last byte of the answer.
//!
//! ```text
//! listen ─ connection ─ service ─ receive ─ admit ─ exchange ⟲ ─ relay
//!                                  (body,    (key,   (attempt,    (bytes untouched,
//!                                   model)   chain)   peek)        watched)
//! ```
//!
//! Nothing of the request is kept once its response streams: one header would pin hyper's read buffer for as long as
//! the stream lives. Cancellation is by drop: when the client goes, the connection's future is dropped, and with it
//! the exchange or the relayed body, the upstream connection, and every guard.

mod access;
mod account;
mod activity;
mod alarm;
mod auth;
mod body;
mod bound;
mod connection;
mod error;
mod exchange;
mod h2;
mod headers;
mod insert;
mod listen;
mod meter;
mod models;
mod peek;
mod preface;
mod prepare;
mod receive;
mod relay;
mod service;
mod silence;
mod slots;
mod socket;
mod sources;
mod timer;
mod tls;
mod validate;
mod watch;
mod worker;

pub use access::{AccessLog, Form, TARGET, Writer};
pub use auth::ClientKeys;
pub use bound::{Bound, Sharing, bind, is_listening};
pub use listen::serve;
pub use tls::{Identity, IdentityError};
pub use worker::{Drain, Live, Route, Shared, Worker};
