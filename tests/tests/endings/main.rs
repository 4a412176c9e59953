//! Every timer and every ending of a request, for each way in which a client and a provider can be connected.
//!
//! The rows are in `ends`, `timers` and `cancel`; the columns are clients of HTTP/1.1 and HTTP/2 times plain and TLS,
//! times the same of providers.

#![cfg(test)]

mod cancel;
mod client;
mod column;
mod ends;
mod gateway;
mod terminator;
mod timers;
