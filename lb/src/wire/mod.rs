//! What the bytes on the wire mean: pure functions and small machines, no sockets, no clock.

pub mod http1;
