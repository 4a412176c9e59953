//! A request that is being answered.

use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;
use tokio_util::sync::ReusableBoxFuture;

use super::body::Body;

type Answer = Result<Response<Body>, Infallible>;
type Room = ReusableBoxFuture<'static, Answer>;

thread_local! {
    /// Rooms of requests that have been answered, for those that come.
    static FREE: RefCell<Vec<Room>> = const { RefCell::new(Vec::new()) };
}

/// As many free rooms are kept: as many requests as a thread answers in one turn, not as many as it ever had at a time.
const KEPT: usize = 64;

/// The future of an answer. Its room goes with the response's head and not with the connection, which may stream for
/// hours; and it is too large to be asked of the allocator for each request.
#[derive(Debug)]
pub(super) struct Answering(Option<Room>);

impl Answering {
    pub(super) fn new(answer: impl Future<Output = Answer> + Send + 'static) -> Self {
        let free = FREE.with_borrow_mut(Vec::pop);
        Self(Some(match free {
            Some(mut room) => {
                room.set(answer);
                room
            }
            None => ReusableBoxFuture::new(answer),
        }))
    }
}

impl Future for Answering {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let room = self.0.as_mut().expect("not polled after its end");
        let answer = room.poll(cx);
        if answer.is_ready()
            && let Some(room) = self.0.take()
        {
            FREE.with_borrow_mut(|free| {
                if free.len() < KEPT {
                    free.push(room);
                }
            });
        }
        answer
    }
}
