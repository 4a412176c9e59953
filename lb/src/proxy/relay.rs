//! Hands a committed response's bytes to its client as they come, untouched, and watches them pass.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::time::{Sleep, sleep_until};

use super::account::Account;
use super::peek::{End, Lead};
use super::watch::Watch;
use super::worker::Worker;
use crate::net::Incoming;
use crate::policy::outcome::Ended;
use crate::policy::time::Instant;
use crate::upstream::Tail;

/// The response cannot be completed: the client's connection is closed in the middle, so that it can tell.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the response broke off")]
pub(super) struct Aborted;

/// A response body on its way, with every guard of its attempt and request.
#[derive(Debug)]
pub(super) struct Relay {
    withheld: std::vec::IntoIter<Frame<Bytes>>,
    withheld_bytes: u64,
    body: Incoming,
    end: End,
    watch: Option<Box<Watch>>,
    /// `None` for a response that is passed on after its attempt was given up.
    tail: Option<Tail>,
    idle: Option<Idle>,
    account: Account,
    worker: Arc<Worker>,
    failed: bool,
    /// Whether a frame was handed over that hyper may not have written yet.
    unflushed: bool,
}

/// The idle timer: armed once, and moved only when it fires, since a timer set for every token would cost more than
/// relaying it.
#[derive(Debug)]
struct Idle {
    limit: Duration,
    /// Since when the upstream has been waited for; `None` while it is not.
    waiting_since: Option<Instant>,
    /// None until the upstream is waited for: most answers come whole.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Relay {
    pub(super) fn new(lead: Lead, mut tail: Option<Tail>, account: Account, worker: &Arc<Worker>) -> Self {
        if lead.watch.is_none()
            && let Some(tail) = &mut tail
        {
            tail.forget();
        }
        let idle = tail
            .as_ref()
            .and_then(|tail| tail.link().timers.idle)
            .map(Idle::new);
        let withheld_bytes = lead
            .withheld
            .iter()
            .filter_map(Frame::data_ref)
            .map(|data| data.len() as u64)
            .sum();
        let mut relay = Self {
            withheld: lead.withheld.into_iter(),
            withheld_bytes,
            body: lead.body,
            end: lead.end,
            watch: lead.watch,
            tail,
            idle,
            account,
            worker: Arc::clone(worker),
            failed: false,
            unflushed: false,
        };
        relay.close_if_done();
        relay
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        if let Some(frame) = self.withheld.next() {
            self.withheld_bytes -= frame.data_ref().map_or(0, |data| data.len() as u64);
            self.unflushed = true;
            self.close_if_done();
            return Poll::Ready(Some(Ok(frame)));
        }
        match self.end {
            End::Broken => return self.abort(cx),
            End::Clean => {
                self.complete();
                return Poll::Ready(None);
            }
            End::Open => {}
        }
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => {
                self.unflushed = false;
                ready!(self.poll_idle(cx));
                tracing::debug!("the upstream was silent for too long");
                self.abort(cx)
            }
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(idle) = &mut self.idle {
                    idle.waiting_since = None;
                }
                if let Some(data) = frame.data_ref() {
                    self.observe(data);
                }
                self.unflushed = true;
                self.close_if_done();
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                tracing::debug!(%error, "response broke off");
                self.abort(cx)
            }
            Poll::Ready(None) => {
                self.complete();
                Poll::Ready(None)
            }
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        matches!(self.end, End::Clean) && self.withheld.len() == 0
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        let inner = self.body.size_hint();
        let mut hint = SizeHint::new();
        match inner.exact() {
            Some(left) if matches!(self.end, End::Open | End::Clean) => {
                hint.set_exact(left + self.withheld_bytes);
            }
            _ => hint.set_lower(self.withheld_bytes),
        }
        hint
    }

    fn observe(&mut self, data: &Bytes) {
        let Some(watch) = &mut self.watch else { return };
        let first = watch.feed(data);
        if !first && !watch.has_late_error() {
            return;
        }
        let Some(tail) = &mut self.tail else { return };
        let now = self.worker.now();
        if first {
            tail.first_data(now);
        }
        if let Some(code) = watch.take_late_error() {
            tail.failed(now, &Ended::LateError { code }, Worker::draw());
            self.failed = true;
        }
    }

    /// The body broke off or stalled.
    ///
    /// hyper throws away what it has not written when a body fails, and it writes only once a body has nothing more:
    /// so the failure waits until the frames before it, which are as true as any, have gone out.
    fn abort(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        self.end = End::Broken;
        if std::mem::take(&mut self.unflushed) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(mut tail) = self.tail.take() {
            tail.failed(self.worker.now(), &Ended::Broken, Worker::draw());
        }
        self.account.truncated();
        Poll::Ready(Some(Err(Aborted)))
    }

    /// Books the end as soon as it is known. hyper does not ask again once a body has given all its length, and the
    /// slots of a finished attempt are not to wait for a slow client's last write.
    fn close_if_done(&mut self) {
        let ended = match self.end {
            End::Clean => true,
            End::Open => self.body.is_end_stream(),
            End::Broken => false,
        };
        if ended && self.withheld.len() == 0 {
            self.complete();
        }
    }

    /// The body ended as its framing promised.
    fn complete(&mut self) {
        self.end = End::Clean;
        let first = self.watch.as_mut().is_some_and(|watch| watch.finish());
        if let Some(mut tail) = self.tail.take() {
            if first {
                tail.first_data(self.worker.now());
            }
            if self.watch.as_ref().is_some_and(|watch| !watch.is_finished()) {
                tail.incomplete();
            }
            if !self.failed {
                tail.clean_end();
            }
        }
        self.account.complete();
    }

    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(idle) = &mut self.idle else {
            return Poll::Pending;
        };
        let now = self.worker.now();
        let since = *idle.waiting_since.get_or_insert(now);
        let due = since + idle.limit;
        let clock = &self.worker.shared.clock;
        let sleep = idle
            .sleep
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

impl Idle {
    fn new(limit: Duration) -> Self {
        Self {
            limit,
            waiting_since: None,
            sleep: None,
        }
    }
}
