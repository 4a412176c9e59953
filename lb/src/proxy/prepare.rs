//! One request, ready to be sent as often as it takes.

use std::borrow::Cow;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use tokio::time::Instant;

use super::asked::{Asked, Place};
use super::error::Refusal;
use super::headers::Forwardable;
use super::named;
use super::pieces::Pieces;
use super::receive::Payload;
use super::target;
use crate::net::Streamed;
use crate::upstream::{Attempt, Link, Points};

/// What of a request every attempt sends.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) method: Method,
    /// Path and query as the client sent them, or its route made them.
    target: PathAndQuery,
    pub(super) headers: Forwardable,
    payload: Payload,
    /// The model and its place; `None` goes to its provider as it is.
    asked: Option<Asked>,
    /// What its keys hash to.
    pub(super) points: Points,
    /// What its conversation hashes to.
    pub(super) conversation: Option<u64>,
    /// The protocol that it asks to switch to.
    pub(super) upgrade: Option<HeaderValue>,
}

/// What one attempt sends, as far as it is not the same for all.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) target: Cow<'a, PathAndQuery>,
    pub(super) body: Sending<'a>,
    /// The body where it is not all here.
    pub(super) streamed: Option<Streamed>,
}

/// A body that is here, on its way to a provider.
#[derive(Debug)]
pub(super) enum Sending<'a> {
    None,
    /// Nearly every body.
    One(&'a Bytes),
    /// With another name of the model; what is not needed is empty.
    Few([Bytes; 3]),
    Many(Vec<Bytes>),
}

impl Prepared {
    pub(super) fn new(
        (method, uri, upgrade): (Method, Uri, Option<HeaderValue>),
        headers: Forwardable,
        payload: Payload,
        asked: Option<Asked>,
    ) -> Self {
        Self {
            method,
            target: uri
                .into_parts()
                .path_and_query
                .unwrap_or_else(|| PathAndQuery::from_static("/")),
            headers,
            payload,
            asked,
            points: None,
            conversation: None,
            upgrade,
        }
    }

    /// What stands behind a body that is here, as far as it `passes` as a field would.
    pub(super) fn trailers(&self, passes: &dyn Fn(&HeaderName) -> bool) -> Option<Box<HeaderMap>> {
        let mut trailers = Box::new(self.payload.trailers()?.clone());
        for name in self.payload.trailers()?.keys().filter(|name| !passes(name)) {
            trailers.remove(name);
        }
        (!trailers.is_empty()).then_some(trailers)
    }

    /// Has endpoints chosen by these, and the start of its cascade by its conversation.
    pub(super) fn key(&mut self, points: Points, conversation: Option<u64>) {
        (self.points, self.conversation) = (points, conversation);
    }

    /// What was wrong with a body that was sent while it came.
    pub(super) fn cut(&self) -> Option<Refusal> {
        match &self.payload {
            Payload::None | Payload::Whole { .. } => None,
            Payload::Streamed { rest, .. } => rest.refused(),
        }
    }

    /// Until when a body that is sent while it comes was on its way: to now, where the client is waited for.
    pub(super) fn sending(&self) -> Option<Instant> {
        match &self.payload {
            Payload::None | Payload::Whole { .. } => None,
            Payload::Streamed { rest, .. } => rest.moved(),
        }
    }

    /// Where `link`'s responses are to name the model as the client did: its name, and the longest event that is
    /// changed. Bytes.
    pub(super) fn renaming(&self, link: &Link) -> Option<(&str, usize)> {
        let config = &link.model.config;
        if !config.rewrite_response_model || self.method == Method::HEAD {
            return None;
        }
        let asked = self.asked.as_ref()?;
        Some((&asked.model, config.max_event_bytes))
    }

    /// The request as the attempt's provider gets it: its path, its name for the model.
    pub(super) fn outgoing(&self, attempt: &Attempt) -> Outgoing<'_> {
        let url = &attempt.claim().endpoint.url;
        let Some(asked) = &self.asked else {
            return self.with(target::of_provider(&self.target, url), None);
        };
        let renamed = renamed(asked, attempt.link());
        // Also beside a body or a header that names the model, so that no provider is told of another one.
        let in_query = self.target.query().and_then(named::in_query);
        let in_query = in_query.and_then(|model| {
            let name = attempt.link().upstream_model.as_deref().unwrap_or(&asked.model);
            (model != name).then_some(name)
        });
        let splice = renamed.and_then(|name| splice(&asked.place, name));
        self.with(target::of_model(&self.target, url, in_query), splice)
    }

    /// What is sent to `target`, with `splice` made in the body.
    fn with<'a>(&'a self, target: Cow<'a, PathAndQuery>, splice: Option<Splice>) -> Outgoing<'a> {
        let (body, streamed) = match &self.payload {
            Payload::None => (Sending::None, None),
            Payload::Whole { pieces, .. } => (whole(pieces, splice), None),
            Payload::Streamed { pieces, length, rest } => {
                let length = length.map(|length| match &splice {
                    None => length,
                    Some((span, value)) => length - span.len() as u64 + value.len() as u64,
                });
                let lead = match splice {
                    None => pieces.all(),
                    Some((span, value)) => pieces.spliced(span, value),
                };
                (
                    Sending::None,
                    Some(Streamed::new(rest.pass(lead, self.headers.barred()), length)),
                )
            }
        };
        Outgoing {
            target,
            body,
            streamed,
        }
    }
}

/// What the link's provider calls the model, where that differs from what the client does.
fn renamed<'l>(asked: &Asked, link: &'l Link) -> Option<&'l str> {
    link.upstream_model.as_deref().filter(|name| *name != asked.model)
}

/// Bytes of a body, and what takes their place.
type Splice = (std::ops::Range<usize>, Bytes);

/// How a body has to change for its model to have this name.
fn splice(place: &Place, name: &str) -> Option<Splice> {
    match place {
        Place::Form(span) => Some((span.clone(), Bytes::copy_from_slice(name.as_bytes()))),
        Place::Json(span) => {
            let value = serde_json::to_vec(name).expect("a string is always JSON");
            Some((span.clone(), value.into()))
        }
        Place::Elsewhere => None,
    }
}

fn whole(pieces: &Pieces, splice: Option<Splice>) -> Sending<'_> {
    match (pieces.single(), splice) {
        (Some(piece), None) => Sending::One(piece),
        (Some(piece), Some((span, value))) => {
            Sending::Few([piece.slice(..span.start), value, piece.slice(span.end..)])
        }
        (None, None) => Sending::Many(pieces.all()),
        (None, Some((span, value))) => Sending::Many(pieces.spliced(span, value)),
    }
}

impl Sending<'_> {
    /// The pieces of a body that is all here.
    pub(super) fn pieces(&self) -> Option<&[Bytes]> {
        match self {
            Self::One(piece) => Some(std::slice::from_ref(piece)),
            Self::Few(pieces) => Some(pieces),
            Self::Many(pieces) => Some(pieces),
            Self::None => None,
        }
    }
}

/// Whether a request may be sent again when no byte of an answer came: by RFC 9110 for what is idempotent, and by
/// policy for the calls that only compute an answer.
pub(super) fn is_repeatable(method: &Method, path: &str, stored: Option<bool>) -> bool {
    if method.is_idempotent() {
        return true;
    }
    let computes = matches!(
        path,
        "/v1/chat/completions" | "/v1/completions" | "/v1/embeddings" | "/v1/messages" | "/v1/rerank"
    );
    let unstored = path == "/v1/responses" && stored == Some(false);
    *method == Method::POST && (computes || unstored)
}

#[cfg(test)]
mod tests;
