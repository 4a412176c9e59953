//! The life of a request, on one screen.

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, MAX_FORWARDS};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;

use super::account::Account;
use super::asked::Asked;
use super::auth::Client;
use super::body::Body;
use super::error::Refusal;
use super::exchange::{Answer, exchange};
use super::headers::{self, Forwardable, Peer};
use super::prepare::{Prepared, is_repeatable};
use super::receive::{Payload, Room, percent_decoded, receive, receive_any};
use super::worker::{Live, Worker};
use super::{models, rename, route, tunnel, validate};
use crate::config::Kind;
use crate::upstream::{Chain, Route, Sent, To};

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
    peer: &Peer,
    request: Request<Incoming>,
) -> Response<Body> {
    let unix = Worker::unix_now();
    let millis = u64::try_from(unix.as_millis()).unwrap_or(u64::MAX);
    let id = headers::request_id(request.headers(), peer, millis, fastrand::u128(..));
    let version = request.version();
    let mut response = match answer(&worker, rules, peer, &id, request).await {
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

/// What every step of one request has at hand.
#[derive(Clone, Copy)]
struct Scene<'a> {
    worker: &'a Arc<Worker>,
    live: &'a Arc<Live>,
    rules: Rules,
    peer: &'a Peer,
    id: &'a HeaderValue,
    client: Client<'a>,
    route: &'a Arc<Route>,
}

async fn answer(
    worker: &Arc<Worker>,
    rules: Rules,
    peer: &Peer,
    id: &HeaderValue,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    validate::check(&mut request)?;
    if worker.shared.server.via && worker.shared.via.knows(request.headers()) {
        return Err(Refusal::Loop);
    }
    let live = worker.shared.live.load_full();
    let route = route::find(live.table.routes(), &mut request)?;
    let client = worker.shared.keys.identify(request.headers());
    let scene = Scene {
        worker,
        live: &live,
        rules,
        peer,
        id,
        client: client.ok_or(Refusal::InvalidKey)?,
        route,
    };
    if *request.method() == Method::OPTIONS && !may_go_on(request.headers_mut()) {
        return Ok(options());
    }
    let mut response = match &route.to {
        To::Models => match listing(scene, request.method(), request.uri().path()) {
            Some(listing) => listing,
            None => by_model(scene, request).await,
        },
        // What a key's models are does not say whether it may use this.
        To::Provider(_) if scene.client.is_limited() => Err(Refusal::NotFound),
        To::Provider(chain) => direct(scene, chain, request).await,
    }?;
    route::change(response.headers_mut(), &route.config.response_headers);
    Ok(response)
}

/// Counts an OPTIONS request's `Max-Forwards` down; false where it ends here (RFC 9110, 7.6.2).
fn may_go_on(headers: &mut HeaderMap) -> bool {
    let left = headers
        .get(MAX_FORWARDS)
        .and_then(|value| value.to_str().ok()?.parse::<u32>().ok());
    let Some(left) = left else { return true };
    let Some(next) = left.checked_sub(1) else {
        return false;
    };
    headers.insert(MAX_FORWARDS, next.into());
    true
}

fn options() -> Response<Body> {
    let mut response = Response::new(Body::full(bytes::Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

/// `GET /v1/models` and `/v1/models/{id}`, which no provider is asked for.
fn listing(scene: Scene<'_>, method: &Method, path: &str) -> Option<Result<Response<Body>, Refusal>> {
    let rest = path.strip_prefix("/v1/models")?;
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    let (table, started) = (&scene.live.table, scene.worker.shared.started);
    match rest.strip_prefix('/') {
        None if rest.is_empty() => Some(Ok(models::list(table, scene.client, started))),
        Some(name) if !name.is_empty() => {
            Some(models::one(table, scene.client, &percent_decoded(name), started))
        }
        _ => None,
    }
}

/// Reads the request, finds the chain of its model, and makes attempts until one answers.
async fn by_model(scene: Scene<'_>, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
    let Scene {
        live, client, route, ..
    } = scene;
    let (parts, body) = request.into_parts();
    let default = route.config.default_model.as_deref();
    let head = (&parts.uri, &parts.headers);
    let (asked, payload) = receive(head, default, body, scene.rules, scene.room()).await?;
    let found = live
        .table
        .find(&asked.model)
        .filter(|_| client.may_use(&asked.model));
    let chain = found.ok_or_else(|| models::not_found(&live.table, client, &asked.model))?;
    let chain = chain.for_path(parts.uri.path());
    check_kind(&chain, &parts.uri)?;
    let sent = Sent {
        streaming: asked.stream,
        exempt: parts
            .headers
            .contains_key(&scene.worker.shared.server.exempt_header),
        replayable: payload.is_replayable(),
        repeatable: is_repeatable(&parts.method, parts.uri.path(), asked.stored),
    };
    let named = (renames(&chain) && parts.method != Method::HEAD).then(|| asked.model.clone());
    let identity = named.is_some() || chain.links.iter().any(|link| link.model.is_strict());
    let content = (payload, Some(asked));
    let answer = scene.exchange(&chain, parts, content, identity, sent).await?;
    Ok(match (named, answer.by.and_then(|by| by.renames)) {
        (Some(model), Some(limit)) => rename::apply(answer.response, &model, limit),
        _ => answer.response,
    })
}

/// Sends the request to the route's provider, whatever it is.
async fn direct(
    scene: Scene<'_>,
    chain: &Arc<Chain>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let (parts, body) = request.into_parts();
    let payload = receive_any(&parts.headers, body, scene.rules, scene.room()).await?;
    let sent = Sent {
        streaming: false,
        exempt: true,
        replayable: payload.is_replayable(),
        repeatable: parts.method.is_idempotent(),
    };
    let answer = scene.exchange(chain, parts, (payload, None), false, sent).await?;
    Ok(answer.response)
}

/// Whether a response of the chain may have to name the model as the client did.
fn renames(chain: &Chain) -> bool {
    chain
        .links
        .iter()
        .any(|link| link.model.config.rewrite_response_model)
}

impl<'a> Scene<'a> {
    fn room(&self) -> Room<'a> {
        Room {
            replay_bytes: self.worker.shared.server.replay_bytes,
            budget: &self.worker.shared.buffers,
        }
    }

    /// Makes attempts until one answers, and makes the fields of its response fit for the client.
    async fn exchange(
        self,
        chain: &Arc<Chain>,
        parts: http::request::Parts,
        (payload, asked): (Payload, Option<Asked>),
        identity: bool,
        sent: Sent,
    ) -> Result<Answer, Refusal> {
        let bodiless = parts.method == Method::HEAD;
        let upgrade = (parts.version == Version::HTTP_11)
            .then(|| tunnel::asked(&parts.headers))
            .flatten();
        let shared = &self.worker.shared;
        let via = shared
            .server
            .via
            .then(|| shared.via.field(parts.version, &parts.headers));
        let fields =
            Forwardable::new(parts.headers, self.peer, self.id.clone(), identity).along(self.route, via);
        // Goes with the commit: the fields are views of hyper's read buffer, and nothing may hold that while a response
        // streams.
        let head = (parts.method, parts.uri, upgrade.clone());
        let prepared = Prepared::new(head, fields, payload, asked);
        let source = prepared.source().cloned();
        let account = Account::open(Arc::clone(chain));
        let mut answer = exchange(self.worker, self.live, chain, sent, prepared, account).await;
        if let Some(refused) = source
            .and_then(|source| source.refused())
            .filter(|_| answer.by.is_none())
        {
            return Err(refused);
        }
        let fields = answer.response.headers_mut();
        headers::returnable(fields, bodiless);
        if let Some(by) = &answer.by {
            headers::reveal(fields, by, answer.attempts, self.worker.shared.server.reveal);
        }
        if answer.response.status() == StatusCode::SWITCHING_PROTOCOLS
            && let Some(protocol) = upgrade
        {
            tunnel::switched(answer.response.headers_mut(), protocol);
        }
        Ok(answer)
    }
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
