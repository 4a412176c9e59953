//! One attempt on one destination.

mod connect;

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::Response;
use tokio::time::Instant;

use super::body::{Http1, Lease};
use super::dial::SocketHook;
use super::exchange::{Answer, Exchange, Fault};
use super::http2::{self, How};
use super::outgoing::Outgoing;
use super::pool::Connection;
use super::{Destination, Error, Incoming, Interims, Request, Streamed};
use crate::policy::connection::{Phase, Remedy};
use connect::{Link, Needs};

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
    /// `fresh` leaves connections alone that were there before it. `connect_limit` bounds connecting: a wait for a free place, a
    /// proxy and TLS included. How long the answer may take is the caller's to bound, by dropping the future, which
    /// closes the connection or resets the stream.
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
        let (mut connection, reused_at) = match pooled {
            Some(connection) => (connection, Some(begun)),
            // Boxed, so that requests on idle connections do not carry the room for a TLS handshake or a stream.
            None => match Box::pin(self.open(request, &mut None, destination, fresh, connect_limit)).await? {
                Opened::Connection(connection, reused_at) => (connection, reused_at),
                Opened::Answered(response) => return Ok(*response),
            },
        };
        let mut exchange = Exchange::new(Outgoing::new(request), request);
        let answer = answered(&mut exchange, &mut connection, request.interims, reused_at).await?;
        Ok(self.respond(destination, connection, exchange, answer, reused_at.is_some()))
    }

    /// As [`Self::send`], with a body that is sent as it comes; `request` itself has none.
    ///
    /// `body` is taken once there is a connection that takes bytes of the request; what fails before that leaves it where
    /// it is, for another attempt. Since it cannot be sent twice, HTTP/1.1 gets a fresh connection for it: one that was idle might turn out
    /// to be stale. An answer is heard while the body is still being sent: a refusal stops it, and drops it; a success
    /// lets it go on while the response is read.
    pub async fn send_streamed(
        &self,
        request: &Request<'_>,
        body: &mut Option<Streamed>,
        destination: &Arc<Destination>,
        fresh: bool,
        connect_limit: Duration,
    ) -> Result<Response<Incoming>, Error> {
        let opening = self.open(request, body, destination, fresh, connect_limit);
        let mut connection = match Box::pin(opening).await? {
            Opened::Connection(connection, _) => connection,
            Opened::Answered(response) => return Ok(*response),
        };
        let outgoing = match body.take() {
            Some(body) => Outgoing::streaming(request, body),
            None => Outgoing::new(request),
        };
        let mut exchange = Exchange::new(outgoing, request);
        match answered(&mut exchange, &mut connection, request.interims, None).await {
            Ok(answer) => Ok(self.respond(destination, connection, exchange, answer, false)),
            Err(error) => {
                *body = exchange.into_outgoing().into_unread();
                Err(error)
            }
        }
    }

    /// A connection of HTTP/1.1, new but for one that came free while its place was waited for, or the answer from one that is shared.
    async fn open(
        &self,
        request: &Request<'_>,
        body: &mut Option<Streamed>,
        destination: &Arc<Destination>,
        fresh: bool,
        limit: Duration,
    ) -> Result<Opened, Error> {
        let needs = Needs {
            fresh,
            // A body that is sent once must not meet a connection that may be stale.
            untouched: fresh || body.is_some(),
            http1: request.upgrade.is_some(),
        };
        match self.connect(destination, needs, limit).await? {
            Link::Own(connection, reused_at) => Ok(Opened::Connection(connection, reused_at)),
            Link::Shared { slot, reused } => {
                let how = How::new(destination, reused, fresh);
                let response = http2::send(slot, request, body, how).await?;
                Ok(Opened::Answered(Box::new(response)))
            }
        }
    }

    /// The response, with its connection and with what is left of the request.
    fn respond(
        &self,
        destination: &Arc<Destination>,
        connection: Connection,
        exchange: Exchange,
        answer: Answer,
        reused: bool,
    ) -> Response<Incoming> {
        connection.enter(Phase::Streaming);
        let lease = Lease {
            connection,
            destination: Arc::clone(destination),
            worker: self.worker,
        };
        respond(lease, answer, reused, exchange.into_outgoing())
    }
}

/// What comes of a request for which no connection was idle.
enum Opened {
    Answered(Box<Response<Incoming>>),
    Connection(Connection, Option<Instant>),
}

/// Waits for the answer on a connection of HTTP/1.1; `reused_at` says when it was taken from the pool, if it was.
fn answered(
    exchange: &mut Exchange,
    connection: &mut Connection,
    interims: Option<Interims<'_>>,
    reused_at: Option<Instant>,
) -> impl Future<Output = Result<Answer, Error>> {
    connection.enter(Phase::Waiting);
    poll_fn(move |cx| {
        let answer = exchange.poll(&mut connection.stream, cx);
        if let Some(Interims(take)) = interims {
            exchange
                .take_interims()
                .into_iter()
                .for_each(|interim| take(interim, cx));
        }
        // An answer that is there counts, whatever the kernel plane thought of the connection before.
        match answer {
            Poll::Ready(answer) => Poll::Ready(answer.map_err(|fault| classify(fault, reused_at))),
            Poll::Pending => connection
                .poll_remedy(Remedy::FailOver, cx)
                .map(|()| Err(Error::Signalled)),
        }
    })
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
    let (body, status, headers) = Http1::new(lease, answer, unsent);
    let mut response = Response::new(Incoming::http1(body, reused));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn classify(fault: Fault, reused_at: Option<Instant>) -> Error {
    match fault {
        Fault::Cut(error) => Error::Cut(error),
        Fault::Malformed(fault) => Error::BadResponse(fault),
        Fault::NotSent(error) if reused_at.is_some() => Error::Stale(error),
        Fault::NotSent(error) => Error::Connect(error),
        Fault::Unanswered(error) if reused_at.is_some_and(|at| at.elapsed() < STALE_WITHIN) => {
            Error::Stale(error)
        }
        Fault::Unanswered(error) => Error::Unanswered(error),
    }
}
