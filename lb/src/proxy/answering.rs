//! A request that is being answered.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use http::Response;

use super::body::Body;
use super::service::{Job, handle};

thread_local! {
    /// Those that have nothing to do, for requests that come.
    static IDLE: RefCell<Vec<Handler>> = const { RefCell::new(Vec::new()) };
    /// The job that a handler is being given; none but in the poll in which that happens.
    static JOB: RefCell<Option<Job>> = const { RefCell::new(None) };
    /// The answer that a handler leaves; none but in the poll that brings it.
    static ANSWER: RefCell<Option<Response<Body>>> = const { RefCell::new(None) };
}

/// As many idle ones are kept: as many requests as a thread answers in one turn, not as many as it ever had at a time.
const KEPT: usize = 64;

/// The future of an answer.
#[derive(Debug)]
pub(super) enum Answering {
    /// It is there.
    Answered(Option<Response<Body>>),
    /// Until it is.
    Handled(Option<Handler>),
}

impl Answering {
    pub(super) fn new(job: Job) -> Self {
        let mut handler = IDLE.with_borrow_mut(Vec::pop).unwrap_or_else(Handler::new);
        handler.give(job);
        Self::Handled(Some(handler))
    }
}

impl Future for Answering {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let place = match &mut *self {
            Self::Answered(response) => return Poll::Ready(Ok(response.take().expect(ONCE))),
            Self::Handled(place) => place,
        };
        let Poll::Pending = place.as_mut().expect(ONCE).work.as_mut().poll(cx);
        let Some(response) = ANSWER.with_borrow_mut(Option::take) else {
            return Poll::Pending;
        };
        if let Some(handler) = place.take() {
            IDLE.with_borrow_mut(|idle| {
                if idle.len() < KEPT {
                    idle.push(handler);
                }
            });
        }
        Poll::Ready(Ok(response))
    }
}

const ONCE: &str = "not polled after its end";

/// Answers one request after another. Its room goes to the next request with the response's head and not with the
/// connection, which may stream for hours. That room is too large to be asked of the allocator, or to be moved, for each
/// request: so it is one future that never ends.
pub(super) struct Handler {
    work: Pin<Box<dyn Future<Output = Infallible> + Send>>,
}

impl Handler {
    fn new() -> Self {
        Self {
            work: Box::pin(handle()),
        }
    }

    /// Has it take `job`, of which it does nothing yet. It waits for one: it is new, or has left its last answer.
    fn give(&mut self, job: Job) {
        JOB.with_borrow_mut(|given| *given = Some(job));
        let Poll::Pending = self.work.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").finish_non_exhaustive()
    }
}

/// A handler's next job.
pub(super) fn next() -> impl Future<Output = Job> {
    poll_fn(|_| match JOB.with_borrow_mut(Option::take) {
        None => Poll::Pending,
        Some(job) => Poll::Ready(job),
    })
}

/// Ends the poll in which a job was given: the next one is the first that is its request's own.
pub(super) fn taken() -> impl Future<Output = ()> {
    let mut taken = false;
    poll_fn(move |_| {
        if std::mem::replace(&mut taken, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
}

/// Leaves a handler's answer to who polls it.
pub(super) fn leave(response: Response<Body>) {
    ANSWER.with_borrow_mut(|left| *left = Some(response));
}
