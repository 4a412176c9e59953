//! Every timer and every ending of a request, for each way in which a client and a provider can be connected.
//!
//! The rows are in `ends`, `timers` and `cancel`; the columns are clients of HTTP/1.1 and HTTP/2 times plain and TLS,
//! times providers over plain and TLS.

#![cfg(test)]

mod cancel;
mod client;
mod column;
mod ends;
mod terminator;
mod timers;
