//! One request's attempts, from the first to the one that answers.

use std::pin::pin;
use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Response, StatusCode};

use super::account::Account;
use super::body::Body;
use super::error::{Refusal, as_sent};
use super::headers::{self, By, Kept};
use super::interims::Interims;
use super::peek::{Lead, peek};
use super::prepare::Prepared;
use super::relay::Relay;
use super::rename;
use super::spans::Hop;
use super::timer::{earlier, until};
use super::tunnel::Tunnel;
use super::worker::{Live, Worker};
use crate::config::Server;
use crate::net::{self, Incoming};
use crate::policy::cascade::Stop;
use crate::policy::outcome::Ended;
use crate::policy::time::Instant;
use crate::upstream::{Attempt, Chain, Granted, Run, Sent, Settled, Step, Tail, Waiting};

mod head;
mod hedged;
mod refusing;

use head::{Judged, head_deadline, is_event_stream, is_readable_json, judge_head, judge_peeked};
use hedged::hedged;
use refusing::{ended_by, full, refusal, refused};

/// What is asked of the providers.
#[derive(Clone, Copy)]
pub(super) struct Errand<'a> {
    pub(super) prepared: &'a Prepared,
    /// Where their interim responses go, if anywhere.
    pub(super) interims: Option<&'a Interims<'a>>,
    /// The attempt's span, where the request is traced.
    pub(super) hop: Option<Hop>,
}

impl<'a> Errand<'a> {
    /// Of a request that is not traced, as far as is known.
    pub(super) fn new(prepared: &'a Prepared, interims: Option<&'a Interims<'a>>) -> Self {
        Self {
            prepared,
            interims,
            hop: None,
        }
    }
}

/// What one attempt came to.
struct Tried {
    ended: Ended,
    response: Option<Reply>,
}

impl Tried {
    fn without_response(ended: Ended) -> Self {
        Self {
            ended,
            response: None,
        }
    }
}

/// What a provider answered, kept in case it is the answer.
enum Reply {
    /// An error event that stands for a response.
    Embedded { status: u16, data: Bytes },
    /// A response, with what was withheld of its body.
    Head {
        status: StatusCode,
        headers: HeaderMap,
        lead: Lead,
    },
}

/// Makes attempts until one answers or none is left.
pub(super) async fn exchange(
    worker: &Arc<Worker>,
    live: &Live,
    chain: &Arc<Chain>,
    sent: Sent,
    mut errand: Errand<'_>,
    mut account: Account,
) -> Result<Response<Body>, Refusal> {
    let prepared = errand.prepared;
    let begun = worker.now();
    account.whole(begun);
    let total = chain.total_deadline.map(|limit| begun + limit);
    let mut run = Run::of(Arc::clone(chain), sent, begun, prepared.conversation);
    run.key(prepared.points.clone());
    let to = (prepared, &live.server);
    let mut last = None;
    let mut spare = None;
    // The same endpoint once more, where a reused connection turned out dead.
    let mut again = None;
    // The first step is taken at once.
    let mut first = Some(begun);
    let refusal = loop {
        let fresh = again.is_some();
        let step = match again.take() {
            Some(same) => Step::Try(same),
            None => run.next(first.take().unwrap_or_else(|| worker.now()), &mut Worker::draw),
        };
        let mut attempt = match step {
            Step::Try(attempt) => attempt,
            Step::Queue(waiting) => match queued(worker, &waiting, total).await {
                Some(granted) => {
                    run.granted(granted);
                    continue;
                }
                None => break Refusal::ConcurrencyLimit,
            },
            Step::Wait(until) => {
                // With the response before at hand: it is the answer if nothing comes of waiting.
                tokio::time::sleep_until(worker.shared.clock.tokio(until)).await;
                continue;
            }
            Step::Stop(stop) => match spare.take() {
                Some(reply) => return Ok(answer(worker, to, reply, None, account, run.attempts())),
                None if stop == Stop::Full => break full(run.refused(worker.now())),
                None => break refusal(stop, last, worker.now()),
            },
        };
        // The response before is given up for good, and its connection with it.
        drop(spare.take());
        errand.hop = account.trying(&attempt);
        let (settled, tried) = match attempt.hedging().filter(|_| prepared.upgrade.is_none()) {
            None => {
                let tried = try_once(worker, live, &mut attempt, errand, fresh, total).await;
                settle(worker, &mut run, &mut account, attempt, tried)
            }
            // Boxed, so that requests without hedges do not carry its room.
            Some(hedging) => {
                let request = (worker.as_ref(), live, errand, total);
                let two = hedged(request, (&mut run, &mut account), (attempt, fresh), hedging);
                Box::pin(two).await
            }
        };
        let Tried { ended, response } = tried;
        match (settled, response) {
            (Settled::Again(same), _) => {
                again = Some(same);
                continue;
            }
            (Settled::Committed(tail) | Settled::PassOn(tail), Some(reply)) => {
                return Ok(answer(worker, to, reply, Some(tail), account, run.attempts()));
            }
            (Settled::Onward, reply) => spare = reply,
            _ => break refused(&ended, last),
        }
        last = Some(ended);
    };
    unanswered(to, &refusal, account, run.attempts())
}

/// What the client is told when no provider's answer is.
fn unanswered(
    (prepared, server): (&Prepared, &Server),
    refusal: &Refusal,
    mut account: Account,
    attempts: u32,
) -> Result<Response<Body>, Refusal> {
    // Where the client's own body was at fault, it is told so.
    if let Some(fault) = prepared.cut() {
        account.answered_whole(&fault.response(attempts));
        return Err(fault);
    }
    let mut response = refusal.response(attempts);
    account.answered_whole(&response);
    headers::reveal_attempts(response.headers_mut(), attempts, server.reveal);
    Ok(response)
}

/// Has everyone whom it concerns learn how an attempt ended.
fn settle(
    worker: &Worker,
    run: &mut Run,
    account: &mut Account,
    attempt: Attempt,
    tried: Tried,
) -> (Settled, Tried) {
    let now = worker.now();
    account.tried(&attempt, &tried.ended, now);
    (attempt.settle(run, now, &tried.ended, Worker::draw()), tried)
}

/// The slot that is waited for, unless there is none in time.
async fn queued(worker: &Worker, waiting: &Waiting, total: Option<Instant>) -> Option<Granted> {
    let patience = worker.now() + waiting.limit();
    let end = earlier(total, Some(patience)).map(|end| worker.shared.clock.tokio(end));
    until(end, pin!(waiting.granted())).await
}

/// Sends the request to the attempt's endpoint and sees how it ends, up to its commit.
async fn try_once(
    worker: &Worker,
    live: &Live,
    attempt: &mut Attempt,
    errand: Errand<'_>,
    fresh: bool,
    total: Option<Instant>,
) -> Tried {
    // The earlier one wins; where both are the same instant, nothing is left to do after it.
    let visit = attempt
        .visit_deadline()
        .filter(|visit| total.is_none_or(|total| *visit < total));
    let total = visit.or(total);
    let mut tried = match send(worker, live, attempt, errand, fresh, total).await {
        Err(ended) => Tried::without_response(ended),
        Ok(Err(error)) => {
            tracing::debug!(
                provider = %attempt.claim().provider().name, endpoint = %attempt.claim().endpoint.name, %error,
                "attempt failed"
            );
            Tried::without_response(ended_by(&error))
        }
        Ok(Ok(response)) => match judge_head(attempt, response) {
            Judged::Tried(tried) => tried,
            // Boxed, so that answers that are no streams do not carry its room.
            Judged::Peeks(parts, body, watch) => {
                let peeked = Box::pin(peek(worker, attempt, *body, watch, total)).await;
                judge_peeked(worker, attempt, parts, peeked)
            }
        },
    };
    if visit.is_some() && tried.ended == Ended::TotalDeadline {
        tried.ended = Ended::VisitDeadline;
    }
    tried
}

/// The response's head, or how the attempt ended where it did not come in time.
async fn send(
    worker: &Worker,
    live: &Live,
    attempt: &Attempt,
    errand: Errand<'_>,
    fresh: bool,
    total: Option<Instant>,
) -> Result<Result<Response<Incoming>, net::Error>, Ended> {
    let Errand {
        prepared,
        interims,
        hop,
    } = errand;
    let claim = attempt.claim();
    let provider = claim.provider();
    // What comes last takes the place of whatever has the same name.
    let traced = hop.filter(|_| provider.config.propagate_trace).map(|hop| {
        let field = (HeaderName::from_static("traceparent"), hop.traceparent());
        let fields: Vec<_> = provider.fields.iter().cloned().chain([field]).collect();
        fields
    });
    let fields = traced.as_deref().unwrap_or(&provider.fields);
    let route = &live.routes[claim.endpoint.id];
    let mut outgoing = prepared.outgoing(attempt);
    let mut streamed = outgoing.streamed.take();
    let exempt = &live.server.exempt_header;
    let kept = Kept {
        auth: provider.passthrough_auth,
        trace: provider.config.propagate_trace,
    };
    let passes = |name: &HeaderName| prepared.headers.passes(name, kept, exempt);
    let trailers = prepared.trailers(&passes);
    let pass = interims.map(|interims| |interim, cx: &mut Context<'_>| interims.pass(interim, cx));
    let request = net::Request {
        method: &prepared.method,
        target: &outgoing.target,
        host: &route.host,
        headers: prepared.headers.fields(fields, &passes),
        body: outgoing.body.pieces(),
        trailers: trailers.as_deref(),
        takes_trailers: prepared.headers.takes_trailers(),
        interims: pass.as_ref().map(|pass| net::Interims(pass)),
        upgrade: prepared.upgrade.as_ref(),
    };
    let clock = worker.shared.clock;
    let (client, to, limit) = (&worker.client, &route.destination, provider.connect_timeout);
    let (mut deadline, mut ending) = head_deadline(attempt, total, None);
    if streamed.is_some() {
        // Boxed, so that requests whose body is here do not carry its room.
        let mut sending = Box::pin(client.send_streamed(&request, &mut streamed, to, fresh, limit));
        loop {
            if let Some(sent) = until(deadline.map(|at| clock.tokio(at)), sending.as_mut()).await {
                return Ok(sent);
            }
            // A provider need not answer what it has not been sent.
            let later = head_deadline(attempt, total, prepared.sending().map(|at| clock.of_tokio(at)));
            if later.0 <= deadline {
                break;
            }
            (deadline, ending) = later;
        }
    } else {
        let sending = pin!(client.send(&request, to, fresh, limit));
        if let Some(sent) = until(deadline.map(|at| clock.tokio(at)), sending).await {
            return Ok(sent);
        }
    }
    Err(ending(worker.now().since(attempt.started())))
}

impl Reply {
    fn head(parts: http::response::Parts, lead: Lead) -> Self {
        Self::Head {
            status: parts.status,
            headers: parts.headers,
            lead,
        }
    }
}

/// Makes a reply the answer. There is no `tail` where its attempt was given up before its response was taken after all.
fn answer(
    worker: &Arc<Worker>,
    (prepared, server): (&Prepared, &Server),
    reply: Reply,
    tail: Option<Tail>,
    mut account: Account,
    attempts: u32,
) -> Response<Body> {
    let (mut response, lead) = match reply {
        Reply::Embedded { status, data } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
            (as_sent(status, data), None)
        }
        Reply::Head {
            status,
            headers,
            lead,
        } => {
            let mut response = Response::new(Body::full(Bytes::new()));
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            headers::disown(response.headers_mut());
            if server.sse_headers && is_event_stream(response.headers()) {
                headers::unbuffered(response.headers_mut());
            }
            (response, Some(lead))
        }
    };
    match &tail {
        Some(tail) => {
            let (queue, first_token) = account.timing();
            let by = By {
                provider: &tail.claim().provider().name,
                endpoint: &tail.claim().endpoint.name,
                upstream_model: tail.link().upstream_model.as_deref(),
                fallback: tail.link().fallback.as_ref(),
                queue,
                first_token,
            };
            headers::reveal(response.headers_mut(), by, attempts, server.reveal);
        }
        None => headers::reveal_attempts(response.headers_mut(), attempts, server.reveal),
    }
    let renaming = tail.as_ref().and_then(|tail| prepared.renaming(tail.link()));
    match lead {
        None => account.answered_whole(&response),
        Some(lead) if response.status() == StatusCode::SWITCHING_PROTOCOLS => {
            account.answered(response.status());
            // `net` gives no 101 without its connection.
            if let Some(upstream) = lead.body.into_upgraded() {
                *response.body_mut() = Body::tunnel(Tunnel::new(upstream, tail, account, worker));
            }
        }
        Some(lead) => {
            account.answered(response.status());
            let mut relay = Relay::new(lead, tail, account, worker);
            if relay.counts_tokens() && is_readable_json(response.headers()) {
                relay.meter();
            }
            *response.body_mut() = Body::relay(relay);
        }
    }
    match renaming {
        Some((model, limit)) => rename::apply(response, model, limit),
        None => response,
    }
}
