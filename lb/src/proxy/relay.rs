//! Hands a committed response's bytes to its client as they come, untouched, and watches them pass.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};

use super::account::Account;
use super::insert::{Cause, DEGRADED, Inserts, may_precede};
use super::meter::Meter;
use super::peek::{End, Lead};
use super::silence::Silence;
use super::watch::Watch;
use super::worker::Worker;
use crate::config::Notice;
use crate::net::Incoming;
use crate::policy::outcome::Ended;
use crate::upstream::{Model, Tail};

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
    silence: Silence,
    inserts: Option<Box<Inserts>>,
    /// Where the tokens of a JSON answer are counted.
    meter: Option<Box<Meter>>,
    account: Account,
    worker: Arc<Worker>,
    failed: bool,
    /// Whether a frame was handed over that may not have been written yet.
    unflushed: bool,
}

/// What a silence has led to.
enum Quiet {
    /// The client is told something meanwhile.
    Comment(Bytes),
    /// It lasts too long.
    TooLong,
}

impl Relay {
    /// Boxed, so that the connection's future is no larger for it.
    pub(super) fn new(
        mut lead: Lead,
        mut tail: Option<Tail>,
        account: Account,
        worker: &Arc<Worker>,
    ) -> Box<Self> {
        if lead.watch.is_none()
            && let Some(tail) = &mut tail
        {
            tail.forget();
        }
        let link = tail.as_ref().map(Tail::link);
        let limit = link.and_then(|link| link.timers.idle);
        let mut inserts = None;
        let mut commit = None;
        // What lb cannot read it does not speak in.
        if let (Some(link), Some(_)) = (link, &lead.watch) {
            commit = Some(worker.now());
            inserts = Inserts::of(&link.model.config);
            if link
                .fallback
                .as_ref()
                .is_some_and(|by| by.notice == Notice::Comment)
            {
                announce(&mut lead.withheld);
            }
        }
        let withheld_bytes = lead
            .withheld
            .iter()
            .filter_map(Frame::data_ref)
            .map(|data| data.len() as u64)
            .sum();
        let mut relay = Box::new(Self {
            withheld: lead.withheld.into_iter(),
            withheld_bytes,
            body: lead.body,
            end: lead.end,
            watch: lead.watch,
            tail,
            silence: Silence::new(limit, commit),
            inserts,
            meter: None,
            account,
            worker: Arc::clone(worker),
            failed: false,
            unflushed: false,
        });
        relay.heed_late_error();
        relay.close_if_done();
        relay
    }

    /// Whether the tokens of this answer are counted.
    pub(super) fn counts_tokens(&self) -> bool {
        model_of(self.tail.as_ref()).is_some_and(Model::counts_tokens)
    }

    /// Says that the answer is JSON, whose tokens are counted by what it says at its end.
    pub(super) fn meter(&mut self) {
        self.meter = Some(Box::default());
    }

    pub(super) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        if let Some(frame) = self.withheld.next() {
            let length = frame.data_ref().map_or(0, |data| data.len() as u64);
            self.withheld_bytes -= length;
            return self.hand_over(frame, length);
        }
        match self.end {
            End::Broken => return self.abort(cx, Cause::Broke),
            End::Clean => {
                self.complete();
                return Poll::Ready(None);
            }
            End::Open => {}
        }
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Pending => {
                self.unflushed = false;
                match ready!(self.poll_quiet(cx)) {
                    Quiet::Comment(comment) => self.say(comment),
                    Quiet::TooLong => {
                        tracing::debug!("the upstream was silent for too long");
                        self.abort(cx, Cause::Silent)
                    }
                }
            }
            Poll::Ready(Some(Ok(frame))) => {
                self.silence.broken();
                let mut length = 0;
                if let Some(data) = frame.data_ref() {
                    length = data.len() as u64;
                    self.observe(data);
                }
                self.hand_over(frame, length)
            }
            Poll::Ready(Some(Err(error))) => {
                tracing::debug!(%error, "response broke off");
                self.abort(cx, Cause::Broke)
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
            // With something put in, the length is not the upstream's any more; nor is it one that no number is for.
            Some(left) if matches!(self.end, End::Open | End::Clean) && self.inserts.is_none() => {
                match left.checked_add(self.withheld_bytes) {
                    Some(length) => hint.set_exact(length),
                    None => hint.set_lower(self.withheld_bytes),
                }
            }
            _ => hint.set_lower(self.withheld_bytes),
        }
        hint
    }

    /// Gives a frame to whoever writes.
    fn hand_over(&mut self, frame: Frame<Bytes>, length: u64) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        self.account.sent(length);
        self.unflushed = true;
        self.close_if_done();
        Poll::Ready(Some(Ok(frame)))
    }

    /// Gives something of lb's own to whoever writes.
    fn say(&mut self, bytes: Bytes) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        self.account.sent(bytes.len() as u64);
        self.unflushed = true;
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    fn observe(&mut self, data: &Bytes) {
        if let Some(meter) = &mut self.meter {
            meter.feed(data);
        }
        let Some(watch) = &mut self.watch else { return };
        if watch.feed(data)
            && let Some(tail) = &mut self.tail
        {
            let now = self.worker.now();
            tail.first_data(now);
            self.account.first_token(now);
        }
        self.heed_late_error();
    }

    /// Books an error event that came after the commit, be it in the chunk that brought the commit.
    fn heed_late_error(&mut self) {
        let code = self.watch.as_mut().and_then(|watch| watch.take_late_error());
        if let (Some(code), Some(tail), false) = (code, &mut self.tail, self.failed) {
            tail.failed(self.worker.now(), &Ended::LateError { code }, Worker::draw());
            self.failed = true;
        }
    }

    /// The body broke off or stalled.
    ///
    /// hyper throws away what it has not written when a body fails, and it writes only once a body has nothing more:
    /// so the failure waits until the frames before it, which are as true as any, have gone out.
    fn abort(&mut self, cx: &mut Context<'_>, cause: Cause) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        self.end = End::Broken;
        if let Some(event) = self.last_words(cause) {
            return self.say(event);
        }
        if std::mem::take(&mut self.unflushed) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(mut tail) = self.tail.take() {
            self.count_tokens(&tail);
            // A stream that has told its failure has no second one.
            if !self.failed {
                tail.failed(self.worker.now(), &Ended::Broken, Worker::draw());
            }
        }
        self.account.truncated();
        Poll::Ready(Some(Err(Aborted)))
    }

    /// Books the end as soon as it is known. hyper does not ask again once a body has given all its length, and the
    /// slots of a finished attempt are not to wait for a slow client's last write.
    fn close_if_done(&mut self) {
        if self.withheld.len() > 0 {
            return;
        }
        match self.end {
            End::Clean => self.complete(),
            End::Open if self.body.is_end_stream() => self.complete(),
            // Over HTTP/2 the end may come behind the last byte of the length, and trailers with it. [STREAM-29]
            End::Open if self.body.size_hint().exact() == Some(0) => self.book_end(),
            End::Broken | End::Open => {}
        }
    }

    /// The body ended as its framing promised.
    fn complete(&mut self) {
        self.end = End::Clean;
        self.book_end();
    }

    /// All of the body has come.
    fn book_end(&mut self) {
        if self.silence.has_gap() {
            self.silence
                .measure(self.worker.now(), model_of(self.tail.as_ref()));
        }
        let first = self.watch.as_mut().is_some_and(|watch| watch.finish());
        if let Some(mut tail) = self.tail.take() {
            if first {
                let now = self.worker.now();
                tail.first_data(now);
                self.account.first_token(now);
            }
            self.count_tokens(&tail);
            if self.watch.as_ref().is_some_and(|watch| !watch.is_finished()) {
                tail.incomplete();
            }
            if !self.failed {
                tail.clean_end();
            }
        }
        self.account.complete();
    }

    /// The event that says why the stream ends, where that is wanted and nothing said it before. In the middle of
    /// another event it would be a part of that. [INSERT-1]
    fn last_words(&mut self, cause: Cause) -> Option<Bytes> {
        let watch = self.watch.as_ref()?;
        if self.failed || watch.is_done() || !watch.is_at_boundary() {
            return None;
        }
        self.inserts.as_mut()?.error_event(cause)
    }

    fn count_tokens(&self, tail: &Tail) {
        let metered = self.meter.as_ref().map(|meter| meter.usage());
        if let Some(usage) = metered.or_else(|| self.watch.as_ref()?.usage()) {
            tail.link().model.add_tokens(usage.prompt, usage.completion);
        }
    }

    fn poll_quiet(&mut self, cx: &mut Context<'_>) -> Poll<Quiet> {
        let now = self.worker.now();
        let since = self.silence.goes_on(now, model_of(self.tail.as_ref()));
        let clock = &self.worker.shared.clock;
        if self.silence.poll_too_long(cx, (since, now), clock).is_ready() {
            return Poll::Ready(Quiet::TooLong);
        }
        let keepalive = self
            .inserts
            .as_mut()
            .and_then(|inserts| inserts.keepalive.as_mut());
        match keepalive {
            Some(keepalive) if self.watch.as_ref().is_some_and(|watch| watch.is_at_boundary()) => {
                keepalive.poll(cx, (since, now), clock).map(Quiet::Comment)
            }
            _ => Poll::Pending,
        }
    }
}

fn model_of(tail: Option<&Tail>) -> Option<&Model> {
    tail.map(|tail| &*tail.link().model)
}

/// Puts the notice of a degraded answer before its first frame.
fn announce(withheld: &mut Vec<Frame<Bytes>>) {
    let first = withheld.iter().find_map(Frame::data_ref);
    if first.is_none_or(|first| may_precede(first)) {
        withheld.insert(0, Frame::data(DEGRADED));
    }
}
