//! Finds a request's route, and makes of its path what the route makes of it.

use std::sync::Arc;

use http::uri::PathAndQuery;
use http::{HeaderMap, Request, Uri, header};

use super::error::Refusal;
use crate::config::{HeaderChanges, Match};
use crate::upstream::Route;

/// The first route that takes the request, whose path is then the one that goes on from here.
pub(super) fn find<'r, B>(
    routes: &'r [Arc<Route>],
    request: &mut Request<B>,
) -> Result<&'r Arc<Route>, Refusal> {
    let found = routes
        .iter()
        .find_map(|route| takes(&route.config.matches, request).map(|rest| (route, rest)));
    let (route, rest) = found.ok_or(Refusal::NotFound)?;
    if let Some(prefix) = &route.config.rewrite_prefix {
        let target = rewritten(prefix, rest, request.uri().query());
        *request.uri_mut() = target;
    }
    Ok(route)
}

/// The rest of the path behind the prefix, where all of the match fits.
fn takes<'q, B>(matches: &Match, request: &'q Request<B>) -> Option<&'q str> {
    let rest = matches.rest(request.uri().path())?;
    let headers = request.headers();
    let host = matches.host.as_ref();
    if !host.is_none_or(|pattern| host_of(headers).is_some_and(|host| pattern.takes(host))) {
        return None;
    }
    let has = |(name, value): &(header::HeaderName, header::HeaderValue)| {
        headers.get_all(name).iter().any(|found| found == value)
    };
    matches.headers.iter().all(has).then_some(rest)
}

/// Whom the request is for, without the port. The head was checked: this is a name or an address.
fn host_of(headers: &HeaderMap) -> Option<&str> {
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let end = match host.find(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    Some(&host[..end])
}

fn rewritten(prefix: &str, rest: &str, query: Option<&str>) -> Uri {
    let mut target = format!("{prefix}{rest}");
    if target.is_empty() {
        target.push('/');
    }
    if let Some(query) = query {
        target.push('?');
        target.push_str(query);
    }
    // Both parts are of URIs; should their joint be none, the provider says what it thinks of `/`.
    let target = target.parse().unwrap_or_else(|_| PathAndQuery::from_static("/"));
    Uri::from(target)
}

/// Makes the changes to the fields of a message on its way back.
pub(super) fn change(headers: &mut HeaderMap, changes: &HeaderChanges) {
    for name in &changes.remove {
        headers.remove(name);
    }
    for (name, value) in &changes.set {
        headers.insert(name.clone(), value.clone());
    }
}

#[cfg(test)]
mod tests;
