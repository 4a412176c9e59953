//! One attempt on one destination.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use http::Response;
use tokio::time::{Instant, timeout};

use super::body::{Http1, Lease};
use super::destination::Expected;
use super::dial::{SocketHook, dial};
use super::exchange::{Answer, Exchange, Fault};
use super::http2::{self, How, Multiplexed, Slot};
use super::outgoing::Outgoing;
use super::pool::{Connection, Open};
use super::{Destination, Error, Incoming, Interims, Request, Streamed};
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
    /// `fresh` leaves connections alone that are there. `connect_limit` bounds connecting: a wait for a free place, a
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

    /// A place on a connection of HTTP/2, or a new connection of HTTP/1.1.
    async fn connect(
        &self,
        destination: &Arc<Destination>,
        needs: Needs,
        limit: Duration,
    ) -> Result<Link, Error> {
        let begun = Instant::now();
        if needs.http1 || destination.expected() == Expected::Http1 {
            let open = match self.place(destination, needs.untouched, limit).await? {
                Free::Connection(connection) => return Ok(Link::Own(connection, Some(Instant::now()))),
                Free::Place(open) => open,
            };
            let left = limit.saturating_sub(begun.elapsed());
            let connection = dial(destination, self.hook.as_ref(), open, needs.http1, left).await?;
            return Ok(Link::Own(connection, None));
        }
        self.join(destination, needs.fresh, begun, limit).await
    }

    /// As [`Self::connect`], where others may share what is made.
    async fn join(
        &self,
        destination: &Arc<Destination>,
        fresh: bool,
        begun: Instant,
        limit: Duration,
    ) -> Result<Link, Error> {
        let pool = &destination.pool;
        let shared = || {
            let slot = (!fresh).then(|| pool.take_shared(self.worker, Instant::now()));
            slot.flatten().map(|slot| Link::Shared { slot, reused: true })
        };
        if let Some(link) = shared() {
            return Ok(link);
        }
        // One at a time, so that a burst of requests does not make a connection each where one would do.
        let turn = timeout(limit, pool.turn(self.worker)).await;
        let turn = turn.map_err(|_elapsed| Error::ConnectTimeout)?;
        if let Some(link) = shared() {
            return Ok(link);
        }
        let turn = Some(turn).filter(|_| destination.expected() != Expected::Http1);
        let left = limit.saturating_sub(begun.elapsed());
        let Free::Place(open) = self.place(destination, true, left).await? else {
            return Err(Error::Full);
        };
        let left = limit.saturating_sub(begun.elapsed());
        let connection = dial(destination, self.hook.as_ref(), open, false, left).await?;
        let http2 = destination.is_http2_only() || connection.stream.agreed_on_http2();
        destination.learn(http2);
        if !http2 {
            return Ok(Link::Own(connection, None));
        }
        let shared = Multiplexed::start(connection, pool.max_streams()).await?;
        pool.share(self.worker, &shared);
        drop(turn);
        let slot = shared.slot().ok_or(Error::Full)?;
        Ok(Link::Shared { slot, reused: false })
    }

    /// The right to open a connection. At the limit it is waited for, as long as connecting may take: a connection that
    /// comes free in time is as good as one that takes that long to be made, and if it is this worker's it is taken
    /// itself, unless it has to be an `untouched` one.
    async fn place(
        &self,
        destination: &Destination,
        untouched: bool,
        limit: Duration,
    ) -> Result<Free, Error> {
        if let Some(open) = destination.pool.reserve_unless_full() {
            return Ok(Free::Place(open));
        }
        let waiting = async {
            loop {
                // Made before the look, so that what comes free between the look and the wait is not missed.
                let freed = destination.pool.freed();
                let idle = (!untouched).then(|| destination.pool.take(self.worker, Instant::now()));
                if let Some(connection) = idle.flatten() {
                    return Free::Connection(connection);
                }
                if let Some(open) = destination.pool.reserve() {
                    return Free::Place(open);
                }
                match freed {
                    Some(freed) => freed.await,
                    None => std::future::pending().await,
                }
            }
        };
        timeout(limit, waiting).await.map_err(|_elapsed| Error::Full)
    }
}

/// What comes of a request for which no connection was idle.
enum Opened {
    Answered(Box<Response<Incoming>>),
    Connection(Connection, Option<Instant>),
}

/// What a request asks of its connection.
#[derive(Clone, Copy)]
struct Needs {
    /// None that was there before, shared or not.
    fresh: bool,
    /// If it is for this request alone, none that was there before.
    untouched: bool,
    http1: bool,
}

/// What was waited for.
enum Free {
    Connection(Connection),
    Place(Open),
}

/// What a request goes over, if not over an idle connection.
enum Link {
    /// A connection for it alone, and since when if it was idle.
    Own(Connection, Option<Instant>),
    /// A place among others.
    Shared { slot: Slot, reused: bool },
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
