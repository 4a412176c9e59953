//! Reads a request's body, as far as it has to be there before anything is sent.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Uri};
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use super::asked::{Asked, Elsewhere, Place, Reading, no_model, opaque};
use super::budget::{Budget, Held};
use super::error::Refusal;
use super::pieces::Pieces;
use super::service::Rules;
use super::streaming::{Rest, Source};

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
}

/// A body in reception.
struct Reception<'a, B> {
    body: B,
    rules: Rules,
    room: Room<'a>,
    /// What the client says it will be. Bytes.
    declared: Option<u64>,
    /// Bytes so far.
    length: u64,
    held: Held,
    pieces: Pieces,
    begun: Instant,
    /// How long there was no room for more, for which the client is not to blame.
    paused: Duration,
}

/// Reads the body of a request that is routed by its model. The model is the body's, else `x-lb-model`'s, else the
/// query's, else the route's.
pub(super) async fn receive<B>(
    (uri, headers): (&Uri, &HeaderMap),
    default_model: Option<&str>,
    body: B,
    rules: Rules,
    room: Room<'_>,
) -> Result<(Asked, Payload), Refusal>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
{
    let elsewhere = named_elsewhere(uri, headers, default_model);
    if body.is_end_stream() {
        let asked = elsewhere.map(opaque).ok_or_else(no_model)?;
        return Ok((asked, Payload::None));
    }
    let mut reading = Reading::new(headers, &elsewhere)?;
    let mut reception = Reception::new(headers, body, rules, room)?;
    while let Some(chunk) = reception.next().await? {
        if let Err(refusal) = reading.feed(&chunk, &elsewhere) {
            return Err(reception.refuse(refusal).await);
        }
        reception.keep(chunk).await?;
        if reception.is_too_long_to_keep()
            && let Some(asked) = reading.so_far(&elsewhere)
        {
            return Ok((asked, reception.stream(reading)));
        }
    }
    let asked = reading.finish(elsewhere)?;
    Ok((asked, reception.whole()))
}

/// Reads a body that nobody looks into.
pub(super) async fn receive_any<B>(
    headers: &HeaderMap,
    body: B,
    rules: Rules,
    room: Room<'_>,
) -> Result<Payload, Refusal>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
{
    if body.is_end_stream() {
        return Ok(Payload::None);
    }
    let mut reception = Reception::new(headers, body, rules, room)?;
    while let Some(chunk) = reception.next().await? {
        reception.keep(chunk).await?;
        if reception.is_too_long_to_keep() {
            return Ok(reception.stream(Reading::Opaque));
        }
    }
    Ok(reception.whole())
}

impl<'a, B> Reception<'a, B>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
{
    fn new(headers: &HeaderMap, body: B, rules: Rules, room: Room<'a>) -> Result<Self, Refusal> {
        let declared = declared(headers);
        let limit = rules.max_body_bytes;
        if declared.is_some_and(|length| length > limit) {
            return Err(Refusal::TooLarge { limit });
        }
        Ok(Self {
            body,
            rules,
            room,
            declared,
            length: 0,
            held: Held::new(room.budget),
            pieces: Pieces::default(),
            begun: Instant::now(),
            paused: Duration::ZERO,
        })
    }

    /// The next chunk. Trailers mean nothing to anybody behind lb.
    async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            let grace = self.rules.body_grace + Duration::from_secs(self.length / MIN_RATE);
            let behind = self.begun + grace + self.paused;
            let due = behind.min(Instant::now() + self.rules.body_timeout);
            let next = tokio::time::timeout_at(due, self.body.frame()).await;
            let Some(frame) = next.map_err(|_elapsed| Refusal::SlowBody)? else {
                return Ok(None);
            };
            let Ok(chunk) = frame.map_err(|_broken| Refusal::BROKEN_BODY)?.into_data() else {
                continue;
            };
            let limit = self.rules.max_body_bytes;
            self.length += chunk.len() as u64;
            if self.length > limit {
                return Err(Refusal::TooLarge { limit });
            }
            return Ok(Some(chunk));
        }
    }

    /// Keeps a chunk, once there is room for it.
    async fn keep(&mut self, chunk: Bytes) -> Result<(), Refusal> {
        let paused = self.held.grow(chunk.len() as u64).await;
        self.paused += paused.map_err(|_none| Refusal::NoRoom)?;
        self.pieces.push(chunk);
        Ok(())
    }

    /// Reads what is left for nobody, so that the connection can go on after the refusal.
    async fn refuse(mut self, refusal: Refusal) -> Refusal {
        (self.pieces, self.held) = (Pieces::default(), Held::new(self.room.budget));
        loop {
            match self.next().await {
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
            _held: self.held,
        }
    }

    fn stream(self, reading: Reading) -> Payload {
        let rest = Rest::new(self.body, self.rules, reading, self.length, self.held);
        Payload::Streamed {
            pieces: self.pieces.sealed(),
            length: self.declared,
            rest: Source::new(rest),
        }
    }
}

/// The least that a body has to come at on average, so that a client cannot hold what it has sent in memory for ever
/// by a byte now and then. Bytes a second.
pub(super) const MIN_RATE: u64 = 500;

fn named_elsewhere(uri: &Uri, headers: &HeaderMap, default_model: Option<&str>) -> Elsewhere {
    let header = headers.get("x-lb-model").and_then(|value| value.to_str().ok());
    if let Some(model) = header {
        return Some((model.to_owned(), Place::Nowhere));
    }
    let mut pairs = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    if let Some((_, model)) = pairs.find(|(name, _)| *name == "model") {
        return Some((percent_decoded(model), Place::Query));
    }
    default_model.map(|model| (model.to_owned(), Place::Nowhere))
}

/// `%41` as `A`; what is no escape stays as it is.
pub(super) fn percent_decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escape = (*first == b'%').then(|| tail.first_chunk::<2>()).flatten();
        let byte = escape
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| {
                let digits = std::str::from_utf8(digits).ok()?;
                u8::from_str_radix(digits, 16).ok()
            });
        out.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
