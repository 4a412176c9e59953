//! One request, ready to be sent as often as it takes.

use std::borrow::Cow;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{Method, Uri};

use super::headers::Forwardable;
use crate::config;
use crate::upstream::{Attempt, Link};
use crate::wire::envelope::{self, Envelope};

/// What of a request every attempt sends.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) method: Method,
    /// Path and query as the client sent them.
    target: PathAndQuery,
    pub(super) headers: Forwardable,
    body: Bytes,
    /// Whether a body was sent at all, be it empty.
    has_body: bool,
    envelope: Option<Envelope>,
}

impl Prepared {
    pub(super) fn new(
        method: Method,
        uri: Uri,
        headers: Forwardable,
        body: Option<Bytes>,
        envelope: Option<Envelope>,
    ) -> Self {
        Self {
            method,
            target: uri
                .into_parts()
                .path_and_query
                .unwrap_or_else(|| PathAndQuery::from_static("/")),
            headers,
            has_body: body.is_some(),
            body: body.unwrap_or_default(),
            envelope,
        }
    }

    /// The path and query to ask an endpoint at `url` for.
    ///
    /// The endpoint's path takes the place of the leading `/v1`, so that neither side has to know whether the other
    /// writes it; a URL without a path keeps the request's. The URL's query goes after the client's.
    fn target(&self, url: &config::Url) -> Cow<'_, PathAndQuery> {
        let path = self.target.path();
        let rest = path
            .strip_prefix("/v1")
            .filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let replaced = rest.filter(|_| !matches!(url.path(), "" | "/v1"));
        if replaced.is_none() && url.query().is_none() {
            return Cow::Borrowed(&self.target);
        }
        let mut target = match replaced {
            None => path.to_owned(),
            Some(rest) => format!("{}{rest}", url.path()),
        };
        let queries = [self.target.query(), url.query()];
        for (place, query) in queries.into_iter().flatten().enumerate() {
            target.push(if place == 0 { '?' } else { '&' });
            target.push_str(query);
        }
        // Both halves were parsed as parts of URIs; should their joint be none, the provider says what it thinks of `/`.
        Cow::Owned(target.parse().unwrap_or_else(|_| PathAndQuery::from_static("/")))
    }

    /// The body for `link`, in pieces: the client's bytes, with the model's name changed where the provider has
    /// another for it.
    fn body_for(&self, link: &Link) -> [Bytes; 3] {
        let rename = link.upstream_model.as_deref();
        match (self.envelope.as_ref(), rename) {
            (Some(envelope), Some(name)) if envelope.model.as_deref().is_some_and(|model| model != name) => {
                envelope::rewrite(&self.body, envelope.model_span.clone(), name)
            }
            _ => [self.body.clone(), Bytes::new(), Bytes::new()],
        }
    }
}

/// What one attempt sends, as far as it is not the same for all.
#[derive(Debug)]
pub(super) struct Outgoing<'a> {
    pub(super) target: Cow<'a, PathAndQuery>,
    body: Option<[Bytes; 3]>,
}

impl Prepared {
    /// The request as the attempt's provider gets it: its path, its name for the model.
    pub(super) fn outgoing(&self, attempt: &Attempt) -> Outgoing<'_> {
        Outgoing {
            target: self.target(&attempt.claim().endpoint.url),
            body: self.has_body.then(|| self.body_for(attempt.link())),
        }
    }
}

impl Outgoing<'_> {
    /// The body in its pieces, if there is one.
    pub(super) fn body(&self) -> Option<&[Bytes]> {
        self.body.as_ref().map(|pieces| &pieces[..])
    }
}

/// Whether a request may be sent again when no byte of an answer came: by RFC 9110 for what is idempotent, and by
/// policy for the calls that only compute an answer.
pub(super) fn is_repeatable(method: &Method, path: &str, envelope: Option<&Envelope>) -> bool {
    if method.is_idempotent() {
        return true;
    }
    let computes = matches!(
        path,
        "/v1/chat/completions" | "/v1/completions" | "/v1/embeddings" | "/v1/messages" | "/v1/rerank"
    );
    let unstored = path == "/v1/responses" && envelope.is_some_and(|envelope| !envelope.stored);
    *method == Method::POST && (computes || unstored)
}

#[cfg(test)]
mod tests;
