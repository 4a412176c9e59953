//! Deadlines that are judged fairly.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;

use tokio::task::coop::unconstrained;
use tokio::time::{Instant, sleep_until};

/// What `future` gives, or `None` once the deadline has passed.
///
/// A deadline is judged only after one more look at what has arrived: a stall of our own process makes the timer and
/// the socket ready together, and bytes that were there in time must count. [PROXY-13]
///
/// The future is the caller's, pinned there: by value it would be kept twice, here and as an argument.
pub(super) async fn until<F: Future>(
    deadline: Option<Instant>,
    mut future: Pin<&mut F>,
) -> Option<F::Output> {
    let Some(deadline) = deadline else {
        return Some(future.await);
    };
    // Made where it stays: tokio's own wrapper moves the timer four times, which is as much as arming it.
    let mut timer = pin!(sleep_until(deadline));
    let in_time = poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        // A future that uses up its task's turn each time must not keep the deadline from being seen.
        Poll::Pending => pin!(unconstrained(timer.as_mut())).poll(cx).map(|()| None),
    });
    if let Some(output) = in_time.await {
        return Some(output);
    }
    // Lets the runtime look at its sockets.
    tokio::task::yield_now().await;
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Pending => Poll::Ready(None),
        Poll::Ready(output) => Poll::Ready(Some(output)),
    })
    .await
}

/// The earlier of two deadlines, either of which may be off.
pub(super) fn earlier<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

#[cfg(test)]
mod tests;
