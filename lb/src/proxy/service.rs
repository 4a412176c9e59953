//! The life of a request, on one screen.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::header::CONNECTION;
use http::{HeaderValue, Method, Request, Response, Version};
use hyper::body::Incoming;

use super::access::Arrival;
use super::account::Account;
use super::activity::Busy;
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
///
/// The request stays where it is and is lent out, since what an async function takes by value it keeps twice.
#[expect(
    clippy::manual_async_fn,
    reason = "an async function would keep the request twice"
)]
pub(super) fn serve(
    worker: Arc<Worker>,
    rules: Rules,
    peer: Peer,
    mut busy: Busy,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response<Body>, Infallible>> {
    async move {
        let unix = Worker::unix_now();
        let millis = u64::try_from(unix.as_millis()).unwrap_or(u64::MAX);
        let id = headers::request_id(request.headers(), &peer, millis, fastrand::u128(..));
        let mut arrival = Arrival::of(&worker, unix, &peer, id, &request);
        let answered = match route(&worker, &mut arrival, &mut request) {
            Ok(Routed::Answered(response)) => Ok(response),
            Ok(Routed::Forward(live)) => {
                forward(&worker, &live, rules, &peer, &mut arrival, &mut request).await
            }
            Err(refusal) => Err(refusal),
        };
        let outcome = if answered.is_ok() { "ok" } else { "refused" };
        let mut response = answered.unwrap_or_else(|refusal| {
            worker.shared.metrics.refused(refusal.code());
            let mut response = refusal.response(0);
            if request.version() < Version::HTTP_2 && refusal.ends_connection() {
                response.headers_mut().insert(CONNECTION, CLOSE);
            }
            response
        });
        arrival.answered(outcome, &response);
        headers::stamp(response.headers_mut(), arrival.id);
        busy.answered(response.headers().get(CONNECTION) == Some(&CLOSE));
        response.body_mut().keep(busy);
        Ok(response)
    }
}

/// Where a request goes by its head.
enum Routed {
    /// Nowhere.
    Answered(Response<Body>),
    /// To a provider of this table.
    Forward(Arc<Live>),
}

fn route(worker: &Worker, arrival: &mut Arrival, request: &mut Request<Incoming>) -> Result<Routed, Refusal> {
    validate::check(request)?;
    let path = request.uri().path();
    if path != "/v1" && !path.starts_with("/v1/") {
        return Err(Refusal::NotFound);
    }
    let live = worker.shared.live.load_full();
    if let Some(name) = live.keys.admits(request.headers()).ok_or(Refusal::InvalidKey)? {
        arrival.known_as(name);
    }
    match listing(worker, &live, request.method(), path) {
        Some(listing) => listing.map(Routed::Answered),
        None => Ok(Routed::Forward(live)),
    }
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
    arrival: &mut Arrival,
    request: &mut Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let Received {
        bytes,
        envelope,
        model,
    } = receive(request, rules).await?;
    let chain = live
        .table
        .find(&model)
        .ok_or_else(|| models::not_found(&live.table, &model))?;
    let path = request.uri().path();
    let chain = chain.for_path(path);
    check_kind(&chain, path)?;
    let sent = Sent {
        streaming: envelope.as_ref().is_some_and(|envelope| envelope.stream),
        exempt: request.headers().contains_key(&live.server.exempt_header),
        replayable: is_replayable(live, bytes.as_ref()),
        repeatable: is_repeatable(request.method(), path, envelope.as_ref()),
    };
    let identity = chain.links.iter().any(|link| link.model.is_strict());
    let length = bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
    let bodiless = *request.method() == Method::HEAD;
    let fields = Forwardable::new(
        std::mem::take(request.headers_mut()),
        peer,
        arrival.id.clone(),
        identity,
    );
    // Goes with this future, at the commit: the fields are views of hyper's read buffer, and nothing may hold that
    // while a response streams.
    let prepared = Prepared::new(
        std::mem::take(request.method_mut()),
        std::mem::take(request.uri_mut()),
        fields,
        bytes,
        envelope,
    );
    let account = Account::open(worker, Arc::clone(&chain), arrival, sent, length);
    let mut response = exchange(worker, live, &chain, sent, &prepared, account).await;
    headers::returnable(response.headers_mut(), bodiless);
    Ok(response)
}

/// Whether a body may be sent a second time, by `server.replay_bytes`.
fn is_replayable(live: &Live, body: Option<&bytes::Bytes>) -> bool {
    body.is_none_or(|body| body.len() as u64 <= live.server.replay_bytes)
}

/// Vectors of different models do not compare, so a chain that could switch between them gives none.
fn check_kind(chain: &Chain, path: &str) -> Result<(), Refusal> {
    if path != "/v1/embeddings" {
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
