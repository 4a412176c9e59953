//! Reads a request's body, and finds in its bytes what routes it.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, Request};
use http_body::Frame;
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use super::error::Refusal;
use super::service::Rules;
use crate::wire::envelope::{Envelope, Scanner};

/// A body that was read whole.
#[derive(Debug)]
pub(super) struct Received {
    /// The bytes as sent; `None` where there was no body.
    pub(super) bytes: Option<Bytes>,
    /// What its JSON says, where it is a JSON object.
    pub(super) envelope: Option<Envelope>,
    /// The model, wherever the request names it.
    pub(super) model: String,
}

/// The first allocation for a body that comes in several pieces, whatever length it claims. Bytes.
const FIRST_RESERVE: usize = 64 * 1024;

/// Reads the body up to `limit` bytes. The model is the body's, else `x-lb-model`'s, else the query's.
pub(super) async fn receive<B>(request: &mut Request<B>, rules: Rules) -> Result<Received, Refusal>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let limit = rules.max_body_bytes;
    if request.body().is_end_stream() {
        let model = named_elsewhere(request).ok_or_else(no_model)?;
        return Ok(Received {
            bytes: None,
            envelope: None,
            model,
        });
    }
    // What `content-length` says; nobody knows the length of a chunked one.
    if request.body().size_hint().lower() > limit {
        return Err(Refusal::TooLarge { limit });
    }
    let opaque = is_encoded(request.headers());
    if opaque && named_elsewhere(request).is_none() {
        return Err(Refusal::Encoding);
    }
    let mut scanner = Scanner::new();
    let mut fault = None;
    let bytes = collect(request.body_mut(), rules, |chunk| {
        if !opaque && fault.is_none() {
            fault = scanner.feed(chunk).err();
        }
    })
    .await?;
    let scanned = match fault {
        _ if opaque => None,
        Some(fault) => Some(Err(fault)),
        None => Some(scanner.finish()),
    };
    let (envelope, model) = match scanned {
        Some(Ok(envelope)) => {
            let named = envelope.model.clone();
            let model = named.or_else(|| named_elsewhere(request)).ok_or_else(no_model)?;
            (Some(envelope), model)
        }
        // A body that is no JSON is the provider's business where the model stands elsewhere.
        _ if let Some(model) = named_elsewhere(request) => (None, model),
        Some(Err(fault)) => return Err(Refusal::BadBody(fault.to_string())),
        None => return Err(Refusal::Encoding),
    };
    Ok(Received {
        bytes: Some(bytes),
        envelope,
        model,
    })
}

/// All chunks as one piece; a body of one chunk is not copied.
async fn collect<B>(body: &mut B, rules: Rules, mut seen: impl FnMut(&[u8])) -> Result<Bytes, Refusal>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let limit = rules.max_body_bytes;
    let mut pace = Pace::new(rules);
    let mut first = Bytes::new();
    let mut all: Option<BytesMut> = None;
    let mut length = 0u64;
    loop {
        let Some(frame) = pace.next(body, length).await? else {
            break;
        };
        let frame =
            frame.map_err(|_broken| Refusal::BadRequest("the request body broke off or was badly framed"))?;
        let Ok(chunk) = frame.into_data() else { continue };
        length += chunk.len() as u64;
        if length > limit {
            return Err(Refusal::TooLarge { limit });
        }
        seen(&chunk);
        match &mut all {
            Some(all) => all.extend_from_slice(&chunk),
            None if first.is_empty() => first = chunk,
            None => {
                let mut joined = BytesMut::with_capacity(FIRST_RESERVE.max(first.len() + chunk.len()));
                joined.extend_from_slice(&first);
                joined.extend_from_slice(&chunk);
                all = Some(joined);
            }
        }
    }
    Ok(all.map_or(first, BytesMut::freeze))
}

/// Holds a body to its deadlines. What is there at once, as small bodies are, costs no look at the clock.
struct Pace {
    rules: Rules,
    /// When it was first waited for.
    begun: Option<Instant>,
}

impl Pace {
    fn new(rules: Rules) -> Self {
        Self { rules, begun: None }
    }

    /// The next frame of `body`, of which `length` bytes have come.
    async fn next<B>(
        &mut self,
        body: &mut B,
        length: u64,
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
        let now = Instant::now();
        let begun = *self.begun.get_or_insert(now);
        let behind = begun + self.rules.body_grace + Duration::from_secs(length / MIN_RATE);
        let due = behind.min(now + self.rules.body_timeout);
        let next = tokio::time::timeout_at(due, body.frame()).await;
        next.map_err(|_elapsed| Refusal::SlowBody)
    }
}

/// The least that a body has to come at on average, so that a client cannot hold what it has sent in memory for ever
/// by a byte now and then. Bytes a second.
pub(super) const MIN_RATE: u64 = 500;

/// The model where the body does not name it: by `x-lb-model`, or else in the query.
fn named_elsewhere<B>(request: &Request<B>) -> Option<String> {
    let header = request
        .headers()
        .get("x-lb-model")
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    header.or_else(|| {
        let pairs = request
            .uri()
            .query()?
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        pairs
            .filter(|(name, _)| *name == "model")
            .map(|(_, value)| percent_decoded(value))
            .next()
    })
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

fn is_encoded(headers: &HeaderMap) -> bool {
    headers
        .get(CONTENT_ENCODING)
        .is_some_and(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

fn no_model() -> Refusal {
    let what =
        "no model is named: put `model` into the JSON body, `?model=` into the query, or send `x-lb-model`";
    Refusal::BadBody(what.to_owned())
}

#[cfg(test)]
mod tests;
