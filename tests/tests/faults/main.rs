//! Faults that users of comparable proxies met in the field, each shown through the real daemon.
//!
//! Every test is about a kind of fault; the comment above it names the field report it answers. U1 is the preferred
//! provider `gpu`, U2 the alternate `alt`.

#![cfg(test)]

mod endings;
mod framing;
mod parsing;
mod retries;
mod secrets;
mod timers;
