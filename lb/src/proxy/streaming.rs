//! The rest of a body that is too long to be kept: it goes to a provider as it comes, once.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderName;
use http_body::Frame;
use tokio::time::{Instant, Sleep, sleep_until};

use super::asked::Reading;
use super::budget::Held;
use super::error::Refusal;
use super::pace::Pace;
use super::service::Rules;

/// What is still to come of a body, looked into as it passes.
pub(super) struct Rest {
    body: Pin<Box<dyn http_body::Body<Data = Bytes, Error = Refusal> + Send>>,
    rules: Rules,
    reading: Reading,
    /// Bytes so far.
    length: u64,
    /// What the client says they will be.
    declared: Option<u64>,
    /// Of what had come before; it is given back when that has been sent.
    held: Option<Held>,
    pace: Pace,
    /// Since when the client is waited for, and until when.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
    begun: bool,
    /// When something of it was last passed on.
    moved: Option<Instant>,
    /// Why no more of it is passed on.
    refused: Option<Refusal>,
}

/// The one place where the rest of a body is, for whichever attempt gets to send it.
#[derive(Clone, Debug)]
pub(super) struct Source(Arc<Mutex<Rest>>);

/// A body that goes to one provider: what had come, with that provider's name for the model, and the rest.
#[derive(Debug)]
pub(super) struct Passing {
    lead: std::vec::IntoIter<Bytes>,
    /// Trailers that are not passed on.
    barred: Vec<HeaderName>,
    source: Source,
    begun: bool,
}

/// Why a body was cut: [`Source::refused`] has the reason.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the client's request body broke off")]
pub(super) struct CutOff;

impl Rest {
    /// What `body` still has, of which `length` bytes out of those `declared` have come and are held as `held`.
    pub(super) fn new<B>(
        body: B,
        rules: Rules,
        reading: Reading,
        (length, declared): (u64, Option<u64>),
        held: Held,
    ) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
    {
        let body = http_body_util::BodyExt::map_err(body, |_broken| Refusal::BROKEN_BODY);
        Self {
            body: Box::pin(body),
            rules,
            reading,
            length,
            declared,
            held: Some(held),
            pace: Pace::new(rules),
            waiting: None,
            begun: false,
            moved: None,
            refused: None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        let Poll::Ready(next) = self.body.as_mut().poll_frame(cx) else {
            ready!(self.poll_slow(cx));
            return self.cut(Refusal::SlowBody);
        };
        if let Some((since, _)) = self.waiting.take() {
            self.pace.on_waited(since.elapsed());
        }
        let (frame, checked) = match next.map(|frame| frame.map(Frame::into_data)) {
            None => (None, self.finish()),
            Some(Err(refusal)) => return self.cut(refusal),
            // They end the body, so it is to be whole by then.
            Some(Ok(Err(trailers))) => (Some(trailers), self.finish()),
            Some(Ok(Ok(chunk))) => {
                let checked = self.take(&chunk);
                (Some(Frame::data(chunk)), checked)
            }
        };
        match checked {
            Ok(()) => Poll::Ready(frame.map(Ok)),
            Err(refusal) => self.cut(refusal),
        }
    }

    /// Counts the next bytes and looks at them before they are passed on. With the last of a body whose length the
    /// provider knows it would have all of it, so that is looked at first as well.
    fn take(&mut self, chunk: &[u8]) -> Result<(), Refusal> {
        self.pace.on_bytes(chunk.len());
        self.length += chunk.len() as u64;
        let limit = self.rules.max_body_bytes;
        if self.length > limit {
            return Err(Refusal::TooLarge { limit });
        }
        self.reading.feed(chunk)?;
        if self.declared == Some(self.length) {
            self.finish()?;
        }
        Ok(())
    }

    /// A body that turns out to be no form or no JSON after all must not look complete to the provider.
    fn finish(&mut self) -> Result<(), Refusal> {
        match std::mem::replace(&mut self.reading, Reading::Opaque) {
            Reading::Opaque => Ok(()),
            reading => reading.finish(false, || None).map(drop),
        }
    }

    fn cut(&mut self, refusal: Refusal) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        self.refused.get_or_insert(refusal);
        Poll::Ready(Some(Err(CutOff)))
    }

    /// Resolves when the client has been too slow. The time in which a provider takes nothing is not its.
    fn poll_slow(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (_, timer) = self.waiting.get_or_insert_with(|| {
            let now = Instant::now();
            (now, Box::pin(sleep_until(now + self.pace.patience())))
        });
        timer.as_mut().poll(cx)
    }
}

impl Source {
    pub(super) fn new(rest: Rest) -> Self {
        Self(Arc::new(Mutex::new(rest)))
    }

    /// The whole body for one attempt, `lead` being what had come, without the trailers of the `barred` names.
    pub(super) fn pass(&self, lead: Vec<Bytes>, barred: Vec<HeaderName>) -> Passing {
        Passing {
            lead: lead.into_iter(),
            barred,
            source: self.clone(),
            begun: false,
        }
    }

    /// Why it was cut, if it was.
    pub(super) fn refused(&self) -> Option<Refusal> {
        self.lock().refused.clone()
    }

    /// When it last moved, which is now where the client is waited for; `None` before it is begun.
    pub(super) fn moved(&self) -> Option<Instant> {
        let rest = self.lock();
        if rest.waiting.is_some() {
            return Some(Instant::now());
        }
        rest.moved
    }

    fn lock(&self) -> MutexGuard<'_, Rest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl http_body::Body for Passing {
    type Data = Bytes;
    type Error = CutOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutOff>>> {
        let source = self.source.clone();
        let mut rest = source.lock();
        if !std::mem::replace(&mut self.begun, true) && std::mem::replace(&mut rest.begun, true) {
            // Another attempt has had a part of it.
            return Poll::Ready(Some(Err(CutOff)));
        }
        let mut next = if let Some(piece) = self.lead.next() {
            Some(Ok(Frame::data(piece)))
        } else {
            rest.held = None;
            ready!(rest.poll(cx))
        };
        rest.moved = Some(Instant::now());
        if let Some(Ok(frame)) = &mut next
            && let Some(trailers) = frame.trailers_mut()
        {
            for name in &self.barred {
                trailers.remove(name);
            }
        }
        Poll::Ready(next)
    }
}

impl std::fmt::Debug for Rest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rest")
            .field("length", &self.length)
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
