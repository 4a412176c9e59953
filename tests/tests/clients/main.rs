//! Real clients through the real daemon: the openai packages for Python, over HTTP/1.1 and over TLS with HTTP/2, and for
//! Node.js; and curl.

#![cfg(test)]

mod curl;
mod door;
mod errors;
mod failover;
mod values;
