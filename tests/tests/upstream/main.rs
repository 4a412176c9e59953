//! Upstreams of every kind, through the daemon: HTTP/2, TLS, sockets, proxies, names.

#![cfg(test)]

mod answers;
mod counted;
mod endings;
mod http2;
mod origin;
mod reach;
