//! A timer for what is put off again and again.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::time::{Sleep, sleep_until};

use crate::clock::Clock;
use crate::policy::time::Instant;

/// Made when it is first waited for, since most answers come whole, and moved only when it fires: a timer set for every
/// token would cost more than relaying it.
#[derive(Debug, Default)]
pub(super) struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Whether `due` has come by `now`. It may only ever be put off, never brought forward.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
        due: Instant,
        clock: &Clock,
    ) -> Poll<()> {
        let sleep = self
            .0
            .get_or_insert_with(|| Box::pin(sleep_until(clock.tokio(due))));
        loop {
            ready!(sleep.as_mut().poll(cx));
            if now >= due {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(clock.tokio(due));
        }
    }
}
