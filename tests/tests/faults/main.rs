//! Faults that users of comparable proxies met in the field, each shown through the real daemon.
//!
//! Every test is about a kind of fault; the comment above it names the field report it answers. U1 is the preferred
//! provider `gpu`, U2 the alternate `alt`.

//!
//! Where the kinds of faults of connections, departures, framing and operation are shown:
//!
//! | fault | what is shown | test |
//! |---|---|---|
//! | C2 | an idle connection is closed before its peer does so; one that is dead is left | `net::tests::pool`, `kernel/faults`, `kernel/daemon` |
//! | C3 | not sent, not answered, answered in part | `connections`, `framing`, `front/routes`, `net::tests::failures` |
//! | C4 | a connection that timed out is retired | `upstream/http2`, `net::tests::http2` |
//! | C6 | a stream reset before its head costs the attempt, not the connection | `upstream/http2` |
//! | C8 | an address that is gone takes no new request; the last good set is kept | `net::tests::pool`, `net::place::tests`, `upstream/reach` |
//! | D1, D2 | a client's going ends its request upstream, in each phase | `streams/cancel`, `endings/cancel`, `front/tunnel`, `upstream/http2` |
//! | D4 | a request that is gone or refused holds no slot | `streams/cancel` |
//! | D5 | cancellation by drop; an endpoint that leaves while a request waits | `connections`, `net::tests::cancel` |
//! | H1, H4 | lengths that lie; connections not read to their end | `framing`, `endings/ends` |
//! | H2 | lengths after a rewrite, hop-by-hop fields | `framing`, `secrets`, `front/bodies` |
//! | H5 | label and bytes of an encoding stay together | `parsing` |
//! | H6 | event streams ask proxies not to hold them back | `streams/heads` |
//! | H8 | bodies too large to hold are streamed once | `front/bodies` |
//! | X1, X2 | each attempt has its own credentials, and nobody else's | `secrets`, `upstream/http2` |
//! | X3 | aliases in requests and, where wanted, in answers | `secrets`, `front/rename` |
//! | X6 | a reload checks, builds and swaps, or changes nothing | `reload/matrix`, `reload/state` |
//! | X10 | a drain on SIGTERM | `process` |

#![cfg(test)]

mod connections;
mod endings;
mod framing;
mod health;
mod parsing;
mod retries;
mod secrets;
mod timers;
