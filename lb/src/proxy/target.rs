//! What an endpoint is asked for: its URL and the request's target, joined.

use std::borrow::Cow;

use http::uri::PathAndQuery;

use super::named::with_model;
use crate::config;

/// The path and query to ask an endpoint at `url` for, of a request that is routed by its model.
///
/// The endpoint's path takes the place of the leading `/v1`, so that neither side has to know whether the other
/// writes it; a URL without a path keeps the request's. The URL's query goes after the client's. `model` takes the
/// place of the one that the client's query names.
pub(super) fn of_model<'t>(
    request: &'t PathAndQuery,
    url: &config::Url,
    model: Option<&str>,
) -> Cow<'t, PathAndQuery> {
    let path = request.path();
    let rest = path
        .strip_prefix("/v1")
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let replaced = rest.filter(|_| !matches!(url.path(), "" | "/v1"));
    if replaced.is_none() && url.query().is_none() && model.is_none() {
        return Cow::Borrowed(request);
    }
    let path = match replaced {
        None => Cow::Borrowed(path),
        Some(rest) => Cow::Owned(format!("{}{rest}", url.path())),
    };
    let query = match (request.query(), model) {
        (Some(query), Some(model)) => Some(Cow::Owned(with_model(query, model))),
        (query, _) => query.map(Cow::Borrowed),
    };
    Cow::Owned(joined(&path, query.as_deref(), url))
}

/// The same of a request that goes to this provider whatever it is: its path stands, only the URL's query is added.
pub(super) fn of_provider<'t>(request: &'t PathAndQuery, url: &config::Url) -> Cow<'t, PathAndQuery> {
    if url.query().is_none() {
        return Cow::Borrowed(request);
    }
    Cow::Owned(joined(request.path(), request.query(), url))
}

fn joined(path: &str, query: Option<&str>, url: &config::Url) -> PathAndQuery {
    let mut target = path.to_owned();
    for (place, query) in [query, url.query()].into_iter().flatten().enumerate() {
        target.push(if place == 0 { '?' } else { '&' });
        target.push_str(query);
    }
    // Both halves were parsed as parts of URIs; should their joint be none, the provider says what it thinks of `/`.
    target.parse().unwrap_or_else(|_| PathAndQuery::from_static("/"))
}

#[cfg(test)]
mod tests;
