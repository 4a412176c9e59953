//! Who waits for a place on a connection that others share, and who makes one.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

use super::{Counts, lock};

/// The requests of one worker that have no stream yet.
#[derive(Debug, Default)]
pub(super) struct Joining {
    state: Mutex<State>,
    /// Told of each stream that ends: room for one.
    streams: Notify,
    /// Told, all of them, when the making of a connection has come to an end, whatever came of it.
    made: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Those who make a connection among them.
    waiting: usize,
    making: usize,
    made_at: Option<Instant>,
}

impl Joining {
    pub(super) fn wait(&self) -> Waiting<'_> {
        lock(&self.state).waiting += 1;
        Waiting(self)
    }

    pub(super) fn note_made(&self) {
        lock(&self.state).made_at = Some(Instant::now());
    }

    pub(super) fn has_made_since(&self, begun: Instant) -> bool {
        lock(&self.state).made_at.is_some_and(|at| at > begun)
    }
}

/// Word that will come; what happened after it was made is not missed.
pub(in crate::net) type Told<'a> = Pin<Box<Notified<'a>>>;

/// Listens from now on. One that only was made, and not enabled, does not count among those who wait: of two words that
/// come before either is looked at, one would be lost.
pub(super) fn listen(notify: &Notify) -> Told<'_> {
    let mut told = Box::pin(notify.notified());
    told.as_mut().enable();
    told
}

/// One request that waits.
#[derive(Debug)]
pub(in crate::net) struct Waiting<'a>(&'a Joining);

impl<'a> Waiting<'a> {
    /// Tells of what may be joined, for one who can use any stream or (`streams` is false) only new connections.
    pub(in crate::net) fn changed(&self, streams: bool) -> Changed<'a> {
        Changed {
            streams: streams.then(|| listen(&self.0.streams)),
            made: listen(&self.0.made),
        }
    }

    /// The right to make a connection with room for `each`, unless those that are being made will do for all who wait;
    /// or `alone`, if any is being made.
    pub(in crate::net) fn turn(&self, each: usize, alone: bool) -> Option<Turn<'a>> {
        let mut state = lock(&self.0.state);
        let wanted = if alone {
            1
        } else {
            state.waiting.div_ceil(each.max(1))
        };
        if state.making >= wanted {
            return None;
        }
        state.making += 1;
        Some(Turn(Some(self.0)))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).waiting -= 1;
    }
}

/// Ready once a look is worth while.
#[derive(Debug)]
pub(in crate::net) struct Changed<'a> {
    streams: Option<Told<'a>>,
    made: Told<'a>,
}

impl Changed<'_> {
    pub(in crate::net) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(streams) = &mut self.streams
            && streams.as_mut().poll(cx).is_ready()
        {
            return Poll::Ready(());
        }
        self.made.as_mut().poll(cx)
    }
}

/// The right to make a connection. The others hear of its end.
#[derive(Debug)]
pub(in crate::net) struct Turn<'a>(Option<&'a Joining>);

impl Turn<'_> {
    /// Without having made use of it: there is nothing to tell.
    pub(in crate::net) fn give_back(mut self) {
        if let Some(joining) = self.0.take() {
            lock(&joining.state).making -= 1;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(joining) = self.0 {
            lock(&joining.state).making -= 1;
            joining.made.notify_waiters();
        }
    }
}

/// Whom a connection tells of its streams' ends.
#[derive(Debug)]
pub(in crate::net) struct Ends {
    pub(super) counts: Arc<Counts>,
    pub(super) joining: Arc<Joining>,
}

impl Ends {
    /// There is room for a stream, on a connection that has none at all if it is `idle`: that one can make room for
    /// another, of another worker.
    pub(in crate::net) fn tell(&self, idle: bool) {
        self.joining.streams.notify_one();
        if idle {
            self.counts.tell();
        }
    }

    /// There is room for several.
    pub(in crate::net) fn tell_all(&self) {
        self.joining.made.notify_waiters();
    }
}
