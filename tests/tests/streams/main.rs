//! How a stream passes through lb: withheld until it is decided, then untouched, until its end or its client's going.

#![cfg(test)]

mod bytes;
mod cancel;
mod chaos;
mod cost;
mod heads;
mod peek;
mod share;
