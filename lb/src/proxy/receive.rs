//! Reads a request's body, and finds in its bytes what routes it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderMap, Request, Uri};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
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
pub(super) async fn receive(request: &mut Request<Incoming>, rules: Rules) -> Result<Received, Refusal> {
    let limit = rules.max_body_bytes;
    let headers = request.headers();
    let elsewhere = named_elsewhere(request.uri(), headers);
    if request.body().is_end_stream() {
        let model = elsewhere.ok_or_else(no_model)?;
        return Ok(Received {
            bytes: None,
            envelope: None,
            model,
        });
    }
    if declared(headers).is_some_and(|length| length > limit) {
        return Err(Refusal::TooLarge { limit });
    }
    let opaque = is_encoded(headers);
    if opaque && elsewhere.is_none() {
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
    resolve(bytes, scanned, elsewhere)
}

fn resolve(
    bytes: Bytes,
    scanned: Option<Result<Envelope, crate::wire::envelope::EnvelopeError>>,
    elsewhere: Option<String>,
) -> Result<Received, Refusal> {
    let (envelope, model) = match (scanned, elsewhere) {
        (Some(Ok(envelope)), elsewhere) => {
            let model = envelope.model.clone().or(elsewhere).ok_or_else(no_model)?;
            (Some(envelope), model)
        }
        // A body that is no JSON is the provider's business where the model stands elsewhere.
        (_, Some(model)) => (None, model),
        (Some(Err(fault)), None) => return Err(Refusal::BadBody(fault.to_string())),
        (None, None) => return Err(Refusal::Encoding),
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
    let begun = Instant::now();
    let mut first = Bytes::new();
    let mut all: Option<BytesMut> = None;
    let mut length = 0u64;
    loop {
        let behind = begun + rules.body_grace + Duration::from_secs(length / MIN_RATE);
        let due = behind.min(Instant::now() + rules.body_timeout);
        let next = tokio::time::timeout_at(due, body.frame()).await;
        let Some(frame) = next.map_err(|_elapsed| Refusal::SlowBody)? else {
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

/// The least that a body has to come at on average, so that a client cannot hold what it has sent in memory for ever
/// by a byte now and then. Bytes a second.
pub(super) const MIN_RATE: u64 = 500;

fn named_elsewhere(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let header = headers
        .get("x-lb-model")
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    header.or_else(|| {
        let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
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

fn declared(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
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
