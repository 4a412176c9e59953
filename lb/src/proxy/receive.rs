//! Reads a request's body, as far as it has to be there before anything is sent.

use std::borrow::Cow;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body::Frame;
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use super::asked::{Asked, Reading, Terms, is_encoded, no_model, opaque};
use super::budget::{Budget, Held};
use super::error::Refusal;
use super::named;
use super::pace::Pace;
use super::pieces::Pieces;
use super::service::Rules;
use super::streaming::{Rest, Source};
use crate::wire::http1;

/// What may be held of one body, and of all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room<'a> {
    /// A longer body is sent on while it comes. Bytes.
    pub(super) replay_bytes: u64,
    /// Of the process.
    pub(super) budget: &'a Arc<Budget>,
}

/// A request's body.
#[derive(Debug)]
pub(super) enum Payload {
    /// There is none.
    None,
    /// All of it is here.
    Whole {
        pieces: Pieces,
        trailers: Option<Box<HeaderMap>>,
        /// Gives the room back.
        _held: Held,
    },
    /// This much is here; the rest is still to come, and can be sent once.
    Streamed {
        pieces: Pieces,
        /// With what is to come, where the client says it. Bytes.
        length: Option<u64>,
        rest: Source,
    },
}

impl Payload {
    /// Whether it can be sent a second time.
    pub(super) fn is_replayable(&self) -> bool {
        !matches!(self, Self::Streamed { .. })
    }

    /// What stands behind a body that is here.
    pub(super) fn trailers(&self) -> Option<&HeaderMap> {
        match self {
            Self::Whole { trailers, .. } => trailers.as_deref(),
            Self::None | Self::Streamed { .. } => None,
        }
    }

    /// These bytes of it, as far as they are here.
    pub(super) fn span(&self, span: Range<usize>) -> Cow<'_, [u8]> {
        match self {
            Self::None => Cow::default(),
            Self::Whole { pieces, .. } | Self::Streamed { pieces, .. } => pieces.span(span),
        }
    }

    /// Its bytes, as far as they are known.
    pub(super) fn length(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Whole { pieces, .. } => pieces.len() as u64,
            Self::Streamed { pieces, length, .. } => length.unwrap_or(pieces.len() as u64),
        }
    }
}

/// A body in reception.
struct Reception<'a> {
    room: Room<'a>,
    limit: u64,
    pace: Pace,
    /// Bytes so far.
    length: u64,
    held: Held,
    pieces: Pieces,
    trailers: Option<Box<HeaderMap>>,
}

/// Reads the body of a request that is routed by its model. The model is the body's, else `x-lb-model`'s, else the
/// query's, else the route's.
pub(super) async fn receive<B>(
    request: &mut Request<Option<B>>,
    terms: Terms<'_>,
    rules: Rules,
    room: Room<'_>,
) -> Result<(Asked, Payload), Refusal>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
{
    named::check(request.uri())?;
    let elsewhere = |request: &Request<Option<B>>| named::elsewhere(request, terms.default_model);
    // What a body that nobody can read asks for, it must not be believed on another's word.
    let for_opaque = |request: &_| elsewhere(request).filter(|_| !terms.limited);
    let Announced::Body(declared) = announced(request, rules)? else {
        let asked = elsewhere(request).map(opaque);
        return Ok((asked.ok_or_else(no_model)?, Payload::None));
    };
    if is_encoded(request.headers()) && for_opaque(request).is_none() {
        return Err(Refusal::Encoding);
    }
    let mut reading = Reading::new(request.headers(), terms)?;
    let mut reception = Reception::new(rules, room);
    while let Some(chunk) = reception.next(request.body_mut()).await? {
        if let Err(fault) = reading.feed(&chunk) {
            if !fault.is_foreign() || for_opaque(request).is_none() {
                // Boxed, so that good bodies do not carry its room.
                return Err(Box::pin(reception.refuse(request.body_mut(), fault.into())).await);
            }
            reading = Reading::Opaque;
        }
        reception.keep(chunk).await?;
        if reception.is_too_long_to_keep()
            && let Some(asked) = reading.so_far(|| elsewhere(request))
            && let Some(body) = request.body_mut().take()
        {
            return Ok((asked, reception.stream(body, declared, reading, rules)));
        }
    }
    let asked = reading.finish(terms.limited, || elsewhere(request))?;
    Ok((asked, reception.whole()))
}

/// Reads a body that nobody looks into.
pub(super) async fn receive_any<B>(
    request: &mut Request<Option<B>>,
    rules: Rules,
    room: Room<'_>,
) -> Result<Payload, Refusal>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
{
    let Announced::Body(declared) = announced(request, rules)? else {
        return Ok(Payload::None);
    };
    let mut reception = Reception::new(rules, room);
    while let Some(chunk) = reception.next(request.body_mut()).await? {
        reception.keep(chunk).await?;
        if reception.is_too_long_to_keep()
            && let Some(body) = request.body_mut().take()
        {
            return Ok(reception.stream(body, declared, Reading::Opaque, rules));
        }
    }
    Ok(reception.whole())
}

/// What a client says of its body before it comes.
#[derive(Clone, Copy, Debug)]
enum Announced {
    /// There is none.
    Nothing,
    /// One of this length in bytes, where it is told.
    Body(Option<u64>),
}

fn announced<B: http_body::Body>(request: &Request<Option<B>>, rules: Rules) -> Result<Announced, Refusal> {
    let Some(body) = request.body().as_ref().filter(|body| !body.is_end_stream()) else {
        return Ok(Announced::Nothing);
    };
    // What `content-length` says; nobody knows the length of a chunked one.
    let hint = body.size_hint();
    let limit = rules.max_body_bytes;
    if hint.lower() > limit {
        return Err(Refusal::TooLarge { limit });
    }
    Ok(Announced::Body(hint.exact()))
}

impl<'a> Reception<'a> {
    fn new(rules: Rules, room: Room<'a>) -> Self {
        Self {
            room,
            limit: rules.max_body_bytes,
            pace: Pace::new(rules),
            length: 0,
            held: Held::new(room.budget),
            pieces: Pieces::default(),
            trailers: None,
        }
    }

    /// The next chunk. Of trailers those are kept that may go on.
    async fn next<B>(&mut self, body: &mut Option<B>) -> Result<Option<Bytes>, Refusal>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        let Some(body) = body else { return Ok(None) };
        loop {
            let Some(frame) = next_frame(body, &mut self.pace).await? else {
                return Ok(None);
            };
            let chunk = match frame.map_err(|_broken| Refusal::BROKEN_BODY)?.into_data() {
                Ok(chunk) => chunk,
                Err(frame) => {
                    let mut trailers = frame.into_trailers().unwrap_or_default();
                    http1::strip_forbidden_trailers(&mut trailers);
                    self.trailers = (!trailers.is_empty()).then(|| Box::new(trailers));
                    continue;
                }
            };
            self.pace.on_bytes(chunk.len());
            self.length += chunk.len() as u64;
            let limit = self.limit;
            if self.length > limit {
                return Err(Refusal::TooLarge { limit });
            }
            return Ok(Some(chunk));
        }
    }

    /// Keeps a chunk, once there is room for it.
    async fn keep(&mut self, chunk: Bytes) -> Result<(), Refusal> {
        let grown = self.held.grow(chunk.len() as u64).await;
        grown.map_err(|_none| Refusal::NoRoom)?;
        self.pieces.push(chunk);
        Ok(())
    }

    /// Reads what is left for nobody, so that the connection can go on after the refusal.
    async fn refuse<B>(mut self, body: &mut Option<B>, refusal: Refusal) -> Refusal
    where
        B: http_body::Body<Data = Bytes> + Unpin,
    {
        (self.pieces, self.held) = (Pieces::default(), Held::new(self.room.budget));
        loop {
            match self.next(body).await {
                Ok(Some(_)) => {}
                Ok(None) => return refusal,
                Err(worse) => return worse,
            }
        }
    }

    fn is_too_long_to_keep(&self) -> bool {
        self.pieces.len() as u64 > self.room.replay_bytes
    }

    fn whole(self) -> Payload {
        Payload::Whole {
            pieces: self.pieces.sealed(),
            trailers: self.trailers,
            _held: self.held,
        }
    }

    fn stream<B>(self, body: B, length: Option<u64>, reading: Reading, rules: Rules) -> Payload
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
    {
        Payload::Streamed {
            rest: Source::new(Rest::new(body, rules, reading, (self.length, length), self.held)),
            pieces: self.pieces.sealed(),
            length,
        }
    }
}

/// The next frame of `body`, if it comes in time. What is there at once, as small bodies are, costs no look at the clock.
async fn next_frame<B>(
    body: &mut B,
    pace: &mut Pace,
) -> Result<Option<Result<Frame<Bytes>, B::Error>>, Refusal>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let there = poll_fn(|cx| {
        Poll::Ready(match Pin::new(&mut *body).poll_frame(cx) {
            Poll::Pending => None,
            Poll::Ready(frame) => Some(frame),
        })
    });
    if let Some(frame) = there.await {
        return Ok(frame);
    }
    let begun = Instant::now();
    let next = tokio::time::timeout_at(begun + pace.patience(), body.frame()).await;
    pace.on_waited(begun.elapsed());
    next.map_err(|_elapsed| Refusal::SlowBody)
}

#[cfg(test)]
mod tests;
