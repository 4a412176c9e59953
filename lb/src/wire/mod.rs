//! What stands on the wire, read from bytes alone.
//!
//! Every parser here is fed slices and answers with values: none reads a socket, a clock or a random number, and none
//! changes a byte of what passes. So a test can cut the same bytes in every possible place and ask for the same
//! answer, which is the one promise that all of them make.
//!
//! | module | reads | for |
//! |---|---|---|
//! | [`sse`] | the framing of an event stream | which events passed, and where each ended |
//! | [`openai`] | the data of one event | whether it is a first frame, an error in disguise, or the end |
//! | [`envelope`] | a JSON request body | the model that is meant, without building a document |
//! | [`usage`] | events and the end of a JSON answer | the tokens it took |
//! | [`multipart`] | a form as a request body | the same |
//! | [`rename`] | a response on its way | it, with another name for the model |
//! | [`retry_after`] | response headers | how long a provider asks to be left alone |

#![forbid(unsafe_code)]
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "wire is pure: time and randomness are arguments, so that any test can give them"
)]

pub mod envelope;
pub mod http1;
pub mod multipart;
pub mod openai;
pub mod rename;
pub mod retry_after;
pub mod sse;
#[cfg(test)]
mod tests;
pub mod usage;
