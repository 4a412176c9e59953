//! One attempt on one destination.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::Response;
use tokio::time::Instant;

use super::body::Lease;
use super::dial::{SocketHook, dial};
use super::exchange::{Answer, Exchange, Fault};
use super::outgoing::Outgoing;
use super::{Destination, Error, Incoming, Request};
use crate::policy::connection::{Phase, Remedy};

/// A reused connection that breaks this soon after the first request byte was closed before the request reached the
/// upstream. Later than that the upstream may have worked on the request. (spec: resilience)
pub const STALE_WITHIN: Duration = Duration::from_millis(250);

/// Sends requests for one worker.
#[derive(Clone)]
pub struct Client {
    worker: usize,
    hook: Option<SocketHook>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("worker", &self.worker)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// For the worker of this number, counted from 0 and below the number that the destinations were made for: it
    /// takes idle connections from its own shard only, so a number belongs to one runtime.
    pub fn new(worker: usize, hook: Option<SocketHook>) -> Self {
        Self { worker, hook }
    }

    /// Makes one attempt: sends `request` and waits for the final response's head. Nothing is repeated here.
    ///
    /// `fresh` leaves idle connections alone. `connect_limit` bounds connecting, TLS included; how long the answer may
    /// take is the caller's to bound, by dropping the future, which closes the connection.
    pub async fn send(
        &self,
        request: &Request<'_>,
        destination: &Arc<Destination>,
        fresh: bool,
        connect_limit: Duration,
    ) -> Result<Response<Incoming>, Error> {
        // Read once, for the pool and for what is stale; connecting counts for neither.
        let begun = Instant::now();
        let pooled = if fresh {
            None
        } else {
            destination.pool.take(self.worker, begun)
        };
        let reused = pooled.is_some();
        let mut connection = match pooled {
            Some(connection) => connection,
            // Boxed, so that requests on idle connections do not carry the room for a TLS handshake.
            None => Box::pin(dial(destination, self.hook.as_ref(), connect_limit)).await?,
        };
        connection.enter(Phase::Waiting);
        let mut exchange = Exchange::new(Outgoing::new(request), request.method);
        // An answer that is there counts, whatever the kernel plane thought of the connection before.
        let answer = poll_fn(|cx| match exchange.poll(&mut connection.stream, cx) {
            Poll::Ready(answer) => Poll::Ready(answer.map_err(|fault| classify(fault, reused, begun))),
            Poll::Pending => connection
                .poll_remedy(Remedy::FailOver, cx)
                .map(|()| Err(Error::Signalled)),
        });
        let answer = answer.await?;
        connection.enter(Phase::Streaming);
        let lease = Lease {
            connection,
            destination: Arc::clone(destination),
            worker: self.worker,
        };
        Ok(respond(lease, answer, reused, exchange.into_outgoing()))
    }
}

fn respond(lease: Lease, mut answer: Answer, reused: bool, outgoing: Outgoing) -> Response<Incoming> {
    let mut unsent = None;
    if !outgoing.is_sent() {
        if answer.head.status.is_success() {
            // It is being answered while it is read: stopping would cut it.
            unsent = Some(Box::new(outgoing));
        } else {
            // Refused: the rest is not wanted, and the connection ends in the middle of a request.
            answer.head.keep_alive = false;
        }
    }
    let (body, status, headers) = Incoming::new(lease, answer, reused, unsent);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn classify(fault: Fault, reused: bool, begun: Instant) -> Error {
    match fault {
        Fault::Malformed(fault) => Error::BadResponse(fault),
        Fault::NotSent(error) if reused => Error::Stale(error),
        Fault::NotSent(error) => Error::Connect(error),
        Fault::Unanswered(error) if reused && begun.elapsed() < STALE_WITHIN => Error::Stale(error),
        Fault::Unanswered(error) => Error::Unanswered(error),
    }
}
