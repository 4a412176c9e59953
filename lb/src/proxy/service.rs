//! The life of a request, on one screen.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, MAX_FORWARDS};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version};

use super::access::Arrival;
use super::account::Account;
use super::activity::Busy;
use super::asked::{Asked, Terms};
use super::auth::Client;
use super::body::Body;
use super::error::Refusal;
use super::exchange::{Errand, exchange};
use super::headers::{self, Forwardable, Peer};
use super::http1::Ahead;
use super::incoming::Incoming;
use super::interims::Interims;
use super::named::percent_decoded;
use super::point::{conversation, point};
use super::prepare::{Prepared, is_repeatable};
use super::receive::{Payload, Room, receive, receive_any};
use super::worker::{Live, Worker};
use super::{answering, models, route, tunnel, validate};
use crate::config::Kind;
use crate::upstream::{Chain, Route, Sent, To};
use crate::wire::http1::Present;

/// What a listener asks of its requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// A longer body is refused. Bytes.
    pub(super) max_body_bytes: u64,
    /// The longest silence within a body.
    pub(super) body_timeout: Duration,
    /// How far a body may fall behind the rate that [`super::pace`] asks for.
    pub(super) body_grace: Duration,
}

/// Ends a connection of HTTP/1 after the response that carries it.
pub(super) const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// A request and where it came from.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) worker: Arc<Worker>,
    pub(super) rules: Rules,
    pub(super) peer: Arc<Peer>,
    pub(super) busy: Busy,
    pub(super) request: Request<Option<Incoming>>,
    /// What its head has.
    pub(super) present: Present,
}

/// Answers one request after another. There is always an answer: what goes wrong is one as well.
///
/// A request stays where it is and is lent out, since what an async function takes by value it keeps twice.
pub(super) async fn handle() -> Infallible {
    loop {
        let mut job = answering::next().await;
        answering::taken().await;
        let (worker, peer, request) = (&job.worker, &*job.peer, &mut job.request);
        let unix = Worker::unix_now();
        let millis = u64::try_from(unix.as_millis()).unwrap_or(u64::MAX);
        let id = headers::request_id(request.headers(), peer, millis, fastrand::u128(..));
        let mut arrival = Arrival::of(worker, unix, peer, id, request);
        let scene = Scene {
            worker,
            rules: job.rules,
            peer,
            ahead: job.busy.ahead(),
            present: job.present,
        };
        let answered = scene.answer(&mut arrival, request).await;
        answering::leave(answer(job, arrival, answered));
    }
}

/// A refusal, and the route where it is known and changes the fields of responses.
struct Refused {
    refusal: Refusal,
    route: Option<Arc<Route>>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, route: None }
    }
}

/// What the client of `job` gets.
fn answer(job: Job, mut arrival: Arrival, answered: Result<Response<Body>, Refused>) -> Response<Body> {
    let outcome = if answered.is_ok() { "ok" } else { "refused" };
    let mut response = answered.unwrap_or_else(|Refused { refusal, route }| {
        job.worker.shared.metrics.refused(refusal.code());
        let mut response = refusal.response(0);
        if let Some(route) = route {
            route::change(response.headers_mut(), &route.config.response_headers);
        }
        if job.request.version() < Version::HTTP_2 && refusal.ends_connection() {
            response.headers_mut().insert(CONNECTION, CLOSE);
        }
        response
    });
    arrival.answered(outcome, &response);
    headers::stamp(response.headers_mut(), arrival.id);
    let mut busy = job.busy;
    busy.answered();
    if let Some(tunnel) = response.body_mut().take_tunnel() {
        busy.switch(tunnel);
    }
    response.body_mut().keep(busy);
    response
}

/// Refuses a request of HTTP/1.1 whose head could not be read.
pub(super) fn refuse(worker: &Worker, mut busy: Busy, refusal: &Refusal) -> Response<Body> {
    worker.shared.metrics.refused(refusal.code());
    let millis = u64::try_from(Worker::unix_now().as_millis()).unwrap_or(u64::MAX);
    let mut response = refusal.response(0);
    let id = headers::new_request_id(millis, fastrand::u128(..));
    headers::stamp(response.headers_mut(), id);
    response.headers_mut().insert(CONNECTION, CLOSE);
    busy.answered();
    response.body_mut().keep(busy);
    response
}

/// A request on its way.
type Asking = Request<Option<Incoming>>;

/// What every step of one request has at hand.
#[derive(Clone, Copy)]
struct Scene<'a> {
    worker: &'a Arc<Worker>,
    rules: Rules,
    peer: &'a Peer,
    ahead: Option<&'a Ahead>,
    present: Present,
}

/// Where a request goes by its head.
enum Routed<'l> {
    /// Nowhere.
    Answered(Response<Body>),
    /// By its model, which its client may have to be allowed.
    Models(Client<'l>),
    /// To a provider.
    Provider(Arc<Chain>),
}

impl<'a> Scene<'a> {
    async fn answer(self, arrival: &mut Arrival, request: &mut Asking) -> Result<Response<Body>, Refused> {
        let live = self.worker.shared.live.load_full();
        let route = self.find(&live, request)?;
        let changes = &route.config.response_headers;
        let answered = match self.to(&live, route, arrival, request) {
            Ok(Routed::Answered(response)) => Ok(response),
            Ok(Routed::Models(client)) => self.by_model((&live, route, client), arrival, request).await,
            Ok(Routed::Provider(chain)) => {
                Box::pin(self.direct((&live, route, &chain), arrival, request)).await
            }
            Err(refusal) => Err(refusal),
        };
        match answered {
            Ok(mut response) => {
                route::change(response.headers_mut(), changes);
                Ok(response)
            }
            Err(refusal) => Err(Refused {
                refusal,
                route: (!changes.is_empty()).then(|| Arc::clone(route)),
            }),
        }
    }

    fn find<'l>(self, live: &'l Live, request: &mut Asking) -> Result<&'l Arc<Route>, Refusal> {
        validate::check(request, self.present)?;
        let passed = live.server.via && self.present.any(Present::VIA);
        if passed && self.worker.shared.via.knows(request.headers()) {
            return Err(Refusal::Loop);
        }
        route::find(live.table.routes(), request)
    }

    fn to<'l>(
        self,
        live: &'l Live,
        route: &Route,
        arrival: &mut Arrival,
        request: &mut Asking,
    ) -> Result<Routed<'l>, Refusal> {
        let client = live.keys.identify(request.headers()).ok_or(Refusal::InvalidKey)?;
        if let Some(name) = client.name() {
            arrival.known_as(name);
        }
        if *request.method() == Method::OPTIONS && !may_go_on(request.headers_mut()) {
            return Ok(Routed::Answered(no_content()));
        }
        Ok(match &route.to {
            To::Models => match self.listing(live, client, request) {
                Some(listing) => Routed::Answered(listing?),
                None => Routed::Models(client),
            },
            // What a key's models are does not say whether it may use this.
            To::Provider(_) if client.is_limited() => return Err(Refusal::NotFound),
            To::Provider(chain) => Routed::Provider(Arc::clone(chain)),
        })
    }

    /// `GET /v1/models` and `/v1/models/{id}`, which no provider is asked for.
    fn listing(
        self,
        live: &Live,
        client: Client<'_>,
        request: &Asking,
    ) -> Option<Result<Response<Body>, Refusal>> {
        let rest = request.uri().path().strip_prefix("/v1/models")?;
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        let started = self.worker.shared.started;
        match rest.strip_prefix('/') {
            None if rest.is_empty() => Some(Ok(models::list(&live.table, client, started))),
            Some(name) if !name.is_empty() => {
                Some(models::one(&live.table, client, &percent_decoded(name), started))
            }
            _ => None,
        }
    }

    /// Reads the request, finds the chain of its model, and makes attempts until one answers.
    async fn by_model(
        self,
        (live, route, client): (&Arc<Live>, &Arc<Route>, Client<'_>),
        arrival: &mut Arrival,
        request: &mut Asking,
    ) -> Result<Response<Body>, Refusal> {
        let terms = Terms {
            default_model: route.config.default_model.as_deref(),
            noting: live.table.asks_for_conversations(),
            limited: client.is_limited(),
        };
        let (asked, payload) = receive(request, terms, self.rules, self.room(live)).await?;
        let found = live
            .table
            .find(&asked.model)
            .filter(|_| client.may_use(&asked.model));
        let chain = found.ok_or_else(|| models::not_found(&live.table, client, &asked.model))?;
        let path = request.uri().path();
        let chain = chain.for_path(path);
        check_kind(&chain, path)?;
        let sent = Sent {
            streaming: asked.stream,
            exempt: request.headers().contains_key(&live.server.exempt_header),
            replayable: payload.is_replayable(),
            repeatable: is_repeatable(request.method(), path, asked.stored),
            idempotent: request.method().is_idempotent(),
        };
        let account = Account::open(self.worker, Arc::clone(&chain), arrival, sent, payload.length());
        let conversation =
            chain.conversation(|affinity| conversation(affinity, request.headers(), &asked, &payload));
        let points = chain.points(|key| point(key, request.headers(), self.peer, conversation));
        let version = request.version();
        let fields = self.fields((live, route, &chain), arrival.id.clone(), request);
        let mut prepared = Self::prepare(fields, request, (payload, Some(asked)));
        prepared.key(points, conversation);
        let interims = Interims::to(self.ahead, version, &route.config.response_headers);
        let errand = Errand::new(&prepared, interims.as_ref());
        let response = exchange(self.worker, live, &chain, sent, errand, account).await?;
        Ok(returnable(response, &prepared))
    }

    /// Sends the request to its route's provider, whatever it is.
    async fn direct(
        self,
        (live, route, chain): (&Arc<Live>, &Arc<Route>, &Arc<Chain>),
        arrival: &mut Arrival,
        request: &mut Asking,
    ) -> Result<Response<Body>, Refusal> {
        let payload = receive_any(request, self.rules, self.room(live)).await?;
        let sent = Sent {
            streaming: false,
            exempt: true,
            replayable: payload.is_replayable(),
            repeatable: request.method().is_idempotent(),
            idempotent: request.method().is_idempotent(),
        };
        let account = Account::open(self.worker, Arc::clone(chain), arrival, sent, payload.length());
        let points = chain.points(|key| point(key, request.headers(), self.peer, None));
        let version = request.version();
        let fields = self.fields((live, route, chain), arrival.id.clone(), request);
        let mut prepared = Self::prepare(fields, request, (payload, None));
        prepared.key(points, None);
        let interims = Interims::to(self.ahead, version, &route.config.response_headers);
        let errand = Errand::new(&prepared, interims.as_ref());
        let response = exchange(self.worker, live, chain, sent, errand, account).await?;
        Ok(returnable(response, &prepared))
    }

    fn room(&self, live: &Live) -> Room<'a> {
        Room {
            replay_bytes: live.server.replay_bytes,
            budget: &self.worker.shared.buffers,
        }
    }

    /// The fields that the attempts send.
    fn fields(
        self,
        (live, route, chain): (&Live, &Arc<Route>, &Chain),
        id: HeaderValue,
        request: &mut Asking,
    ) -> Forwardable {
        let via = &self.worker.shared.via;
        let version = request.version();
        let via = live.server.via.then(|| {
            if self.present.any(Present::VIA) {
                via.field(version, request.headers())
            } else {
                via.own(version).clone()
            }
        });
        // A response that is to be read, or changed, has to come as it is.
        let identity = chain
            .links
            .iter()
            .any(|link| link.model.is_strict() || link.model.config.rewrite_response_model);
        let headers = std::mem::take(request.headers_mut());
        let mut fields = Forwardable::new((headers, self.present), self.peer, id, identity);
        fields.goes_along(route, via);
        fields
    }

    /// What the attempts send. It goes with the exchange, at the commit: the fields are views of the whole head, and
    /// nothing may hold that while a response streams.
    fn prepare(
        fields: Forwardable,
        request: &mut Asking,
        (payload, asked): (Payload, Option<Asked>),
    ) -> Prepared {
        let may_switch = request.version() == Version::HTTP_11 && fields.has_upgrade();
        let upgrade = may_switch.then(|| tunnel::asked(fields.client())).flatten();
        let method = std::mem::take(request.method_mut());
        let uri = std::mem::take(request.uri_mut());
        Prepared::new((method, uri, upgrade), fields, payload, asked)
    }
}

/// Makes the fields of an answer fit for the client.
fn returnable(mut response: Response<Body>, prepared: &Prepared) -> Response<Body> {
    headers::returnable(response.headers_mut(), prepared.method == Method::HEAD);
    if response.status() == StatusCode::SWITCHING_PROTOCOLS
        && let Some(protocol) = &prepared.upgrade
    {
        tunnel::switched(response.headers_mut(), protocol.clone());
    }
    response
}

/// Counts an OPTIONS request's `Max-Forwards` down; false where it ends here (RFC 9110, 7.6.2).
fn may_go_on(headers: &mut HeaderMap) -> bool {
    let given = headers.get(MAX_FORWARDS);
    let Some(left) = given.and_then(|value| value.to_str().ok()?.parse::<u32>().ok()) else {
        return true;
    };
    let Some(left) = left.checked_sub(1) else {
        return false;
    };
    headers.insert(MAX_FORWARDS, left.into());
    true
}

fn no_content() -> Response<Body> {
    let mut response = Response::new(Body::full(bytes::Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
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
