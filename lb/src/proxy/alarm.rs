//! A timer for what is put off again and again.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Sleep;

use crate::clock::Clock;
use crate::policy::time::Instant;

/// Armed once, and moved only when it fires: a timer set for every token would cost more than relaying it.
#[derive(Debug)]
pub(super) struct Alarm(Pin<Box<Sleep>>);

impl Alarm {
    /// An alarm for something that is due in `earliest` at the earliest.
    pub(super) fn new(earliest: Duration) -> Self {
        Self(Box::pin(tokio::time::sleep(earliest)))
    }

    /// Whether `due` has come by `now`. It may only ever be put off, never brought forward.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
        due: Instant,
        clock: &Clock,
    ) -> Poll<()> {
        loop {
            ready!(self.0.as_mut().poll(cx));
            if now >= due {
                return Poll::Ready(());
            }
            self.0.as_mut().reset(clock.tokio(due));
        }
    }
}
