//! Reloads, sockets of the service manager, and successors: what is open goes on through all of it.

#![cfg(test)]

mod bench;
mod inherited;
mod kernel;
mod listeners;
mod matrix;
mod state;
mod takeover;
mod watch;
