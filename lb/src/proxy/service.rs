//! The life of a request, on one screen.

use std::sync::Arc;
use std::time::Duration;

use http::header::CONNECTION;
use http::{HeaderValue, Method, Request, Response, Uri, Version};
use hyper::body::Incoming;

use super::account::Account;
use super::body::Body;
use super::error::Refusal;
use super::exchange::exchange;
use super::headers::{self, Forwardable, Peer};
use super::models;
use super::prepare::{Prepared, is_repeatable};
use super::receive::{Received, percent_decoded, receive};
use super::validate;
use super::worker::{Live, Worker};
use crate::config::Kind;
use crate::upstream::{Chain, Sent};

/// What a listener asks of its requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// A longer body is refused. Bytes.
    pub(super) max_body_bytes: u64,
    /// The longest silence within a body.
    pub(super) body_timeout: Duration,
    /// How long a body may take before it has to come at [`super::receive::MIN_RATE`] on average.
    pub(super) body_grace: Duration,
}

/// Ends a connection of HTTP/1 after the response that carries it.
pub(super) const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// Answers one request. There is always an answer: what goes wrong is one as well.
pub(super) async fn serve(
    worker: Arc<Worker>,
    rules: Rules,
    peer: Peer,
    request: Request<Incoming>,
) -> Response<Body> {
    let unix = Worker::unix_now();
    let millis = u64::try_from(unix.as_millis()).unwrap_or(u64::MAX);
    let id = headers::request_id(request.headers(), &peer, millis, fastrand::u128(..));
    let version = request.version();
    let mut response = match route(&worker, rules, &peer, &id, request).await {
        Ok(response) => response,
        Err(refusal) => {
            worker.shared.metrics.refused(refusal.code());
            let mut response = refusal.response(0);
            if version < Version::HTTP_2 && refusal.ends_connection() {
                response.headers_mut().insert(CONNECTION, CLOSE);
            }
            response
        }
    };
    headers::stamp(response.headers_mut(), id);
    response
}

async fn route(
    worker: &Arc<Worker>,
    rules: Rules,
    peer: &Peer,
    id: &HeaderValue,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    validate::check(&mut request)?;
    let path = request.uri().path();
    if path != "/v1" && !path.starts_with("/v1/") {
        return Err(Refusal::NotFound);
    }
    if !worker.shared.keys.admits(request.headers()) {
        return Err(Refusal::InvalidKey);
    }
    let live = worker.shared.live.load_full();
    if let Some(listing) = listing(worker, &live, request.method(), path) {
        return listing;
    }
    forward(worker, &live, rules, peer, id, request).await
}

/// `GET /v1/models` and `/v1/models/{id}`, which no provider is asked for.
fn listing(
    worker: &Worker,
    live: &Live,
    method: &Method,
    path: &str,
) -> Option<Result<Response<Body>, Refusal>> {
    let rest = path.strip_prefix("/v1/models")?;
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    let started = worker.shared.started;
    match rest.strip_prefix('/') {
        None if rest.is_empty() => Some(Ok(models::list(&live.table, started))),
        Some(name) if !name.is_empty() => Some(models::one(&live.table, &percent_decoded(name), started)),
        _ => None,
    }
}

/// Reads the request, finds its chain, and makes attempts until one answers.
async fn forward(
    worker: &Arc<Worker>,
    live: &Arc<Live>,
    rules: Rules,
    peer: &Peer,
    id: &HeaderValue,
    request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let (parts, body) = request.into_parts();
    let head = (&parts.uri, &parts.headers);
    let Received {
        bytes,
        envelope,
        model,
    } = receive(head, body, rules).await?;
    let chain = live
        .table
        .find(&model)
        .ok_or_else(|| models::not_found(&live.table, &model))?;
    let chain = chain.for_path(parts.uri.path());
    check_kind(&chain, &parts.uri)?;
    let sent = Sent {
        streaming: envelope.as_ref().is_some_and(|envelope| envelope.stream),
        exempt: parts.headers.contains_key(&worker.shared.server.exempt_header),
        replayable: is_replayable(worker, bytes.as_ref()),
        repeatable: is_repeatable(&parts.method, parts.uri.path(), envelope.as_ref()),
    };
    let identity = chain.links.iter().any(|link| link.model.is_strict());
    let bodiless = parts.method == Method::HEAD;
    let fields = Forwardable::new(parts.headers, peer, id.clone(), identity);
    // Goes with the commit: the fields are views of hyper's read buffer, and nothing may hold that while a response
    // streams.
    let prepared = Prepared::new(parts.method, parts.uri, fields, bytes, envelope);
    let account = Account::open(Arc::clone(&chain));
    let mut answer = exchange(worker, live, &chain, sent, prepared, account).await;
    let fields = answer.response.headers_mut();
    headers::returnable(fields, bodiless);
    if let Some(by) = &answer.by {
        headers::reveal(fields, by, answer.attempts, worker.shared.server.reveal);
    }
    Ok(answer.response)
}

/// Whether a body may be sent a second time, by `server.replay_bytes`.
fn is_replayable(worker: &Worker, body: Option<&bytes::Bytes>) -> bool {
    body.is_none_or(|body| body.len() as u64 <= worker.shared.server.replay_bytes)
}

/// Vectors of different models do not compare, so a chain that could switch between them gives none.
fn check_kind(chain: &Chain, uri: &Uri) -> Result<(), Refusal> {
    if uri.path() != "/v1/embeddings" {
        return Ok(());
    }
    let declared = chain
        .links
        .iter()
        .all(|link| matches!(link.model.config.kind, Kind::Embedding { .. }));
    let mut names = chain.links.iter().map(|link| &link.upstream_model);
    let first = names.next();
    if declared || names.all(|name| Some(name) == first) {
        Ok(())
    } else {
        Err(Refusal::WrongModelKind)
    }
}
