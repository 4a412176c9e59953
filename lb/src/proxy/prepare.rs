//! One request, ready to be sent as often as it takes.

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Uri};

use super::headers;
use super::worker::Live;
use crate::config;
use crate::net;
use crate::upstream::{Attempt, Link};
use crate::wire::envelope::{self, Envelope};

/// What of a request every attempt sends.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) method: Method,
    /// Path and query as the client sent them.
    path: String,
    query: Option<String>,
    /// End-to-end fields; a provider's own come on top.
    headers: HeaderMap,
    body: Bytes,
    /// Whether a body was sent at all, be it empty.
    has_body: bool,
    envelope: Option<Envelope>,
}

impl Prepared {
    pub(super) fn new(
        method: Method,
        uri: &Uri,
        headers: HeaderMap,
        body: Option<Bytes>,
        envelope: Option<Envelope>,
    ) -> Self {
        Self {
            method,
            path: uri.path().to_owned(),
            query: uri.query().map(str::to_owned),
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
    fn target(&self, url: &config::Url) -> PathAndQuery {
        let rest = self
            .path
            .strip_prefix("/v1")
            .filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let mut target = match (url.path(), rest) {
            ("", _) | (_, None) => self.path.clone(),
            (path, Some(rest)) => format!("{path}{rest}"),
        };
        let queries = [self.query.as_deref(), url.query()];
        for (place, query) in queries.into_iter().flatten().enumerate() {
            target.push(if place == 0 { '?' } else { '&' });
            target.push_str(query);
        }
        // Both halves were parsed as parts of URIs; should their joint be none, the provider says what it thinks of `/`.
        target.parse().unwrap_or_else(|_| PathAndQuery::from_static("/"))
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

/// What one attempt sends.
#[derive(Debug)]
pub(super) struct Outgoing {
    target: PathAndQuery,
    host: HeaderValue,
    headers: HeaderMap,
    body: Option<[Bytes; 3]>,
}

impl Prepared {
    /// The request as the attempt's provider gets it: its path, its credentials, its name for the model.
    pub(super) fn outgoing(&self, attempt: &Attempt, live: &Live) -> Outgoing {
        let endpoint = &attempt.claim().endpoint;
        Outgoing {
            target: self.target(&endpoint.url),
            host: live.routes[endpoint.id].host.clone(),
            headers: headers::for_provider(&self.headers, attempt.claim().provider()),
            body: self.has_body.then(|| self.body_for(attempt.link())),
        }
    }
}

impl Outgoing {
    pub(super) fn request<'a>(&'a self, method: &'a Method) -> net::Request<'a> {
        let body = self.body.as_ref().map(|pieces| &pieces[..]);
        net::Request {
            method,
            target: &self.target,
            host: &self.host,
            headers: &self.headers,
            body,
            upgrade: None,
        }
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
