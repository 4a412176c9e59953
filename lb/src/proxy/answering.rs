//! A request that is being answered.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http::Response;

use super::body::Body;
use super::service::{Job, handle};

thread_local! {
    /// Those that have nothing to do, for requests that come.
    static IDLE: RefCell<Vec<Handler>> = const { RefCell::new(Vec::new()) };
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
        let handler = IDLE.with_borrow_mut(Vec::pop).unwrap_or_else(Handler::new);
        handler.mailbox.mail().job = Some(job);
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
        let handler = place.as_mut().expect(ONCE);
        let Poll::Pending = handler.work.as_mut().poll(cx);
        let Some(response) = handler.mailbox.mail().answer.take() else {
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
    mailbox: Mailbox,
    work: Pin<Box<dyn Future<Output = Infallible> + Send>>,
}

impl Handler {
    fn new() -> Self {
        let mailbox = Mailbox::default();
        Self {
            work: Box::pin(handle(mailbox.clone())),
            mailbox,
        }
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").finish_non_exhaustive()
    }
}

/// Where a handler gets its requests and leaves its answers.
#[derive(Clone, Debug, Default)]
pub(super) struct Mailbox(Arc<Mutex<Mail>>);

#[derive(Debug, Default)]
struct Mail {
    job: Option<Job>,
    answer: Option<Response<Body>>,
}

impl Mailbox {
    /// The next request. A handler is only polled where there is one, so that nobody has to be woken for it.
    pub(super) fn next(&self) -> impl Future<Output = Job> {
        poll_fn(|_| self.mail().job.take().map_or(Poll::Pending, Poll::Ready))
    }

    /// Leaves its answer.
    pub(super) fn answer(&self, response: Response<Body>) {
        self.mail().answer = Some(response);
    }

    /// Nobody waits here: a request's task gives and takes, and polls what does so on the other side.
    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
