//! Which fields of a request reach an upstream, and which of a response its client.

use std::net::IpAddr;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::exchange::By;
use crate::config::{Notice, Reveal};
use crate::policy::time::millis;
use crate::upstream::{Chain, Provider};
use crate::wire::http1;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
const TRACE: [HeaderName; 2] = [
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];

/// What says who a client is. It is for lb, or for one provider, and goes to no other.
const CREDENTIALS: [HeaderName; 6] = [
    header::AUTHORIZATION,
    header::COOKIE,
    HeaderName::from_static("api-key"),
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-project"),
    HeaderName::from_static("x-api-key"),
];

/// Fields that lb answers for itself on each hop, or that steer lb.
const OWN: [HeaderName; 4] = [
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::TRAILER,
];

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    /// The address that connected.
    pub(super) ip: IpAddr,
    /// Whether its `X-Forwarded-*` and `x-request-id` are believed.
    pub(super) trusted: bool,
    /// Whether it connected with TLS.
    pub(super) https: bool,
}

/// What a chain's targets want of a request's fields.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    /// Answers without a content coding.
    pub(super) identity: bool,
    /// Some provider takes the client's trace context.
    pub(super) trace: bool,
}

impl Wanted {
    pub(super) fn by(chain: &Chain) -> Self {
        Self {
            identity: chain.links.iter().any(|link| link.model.is_strict()),
            trace: chain
                .links
                .iter()
                .any(|link| link.provider.config.propagate_trace),
        }
    }
}

/// The fields of a request as every attempt sends them; what differs from provider to provider comes on top.
pub(super) fn forwardable(
    request: &HeaderMap,
    peer: Peer,
    id: &HeaderValue,
    wanted: Wanted,
    exempt: &HeaderName,
) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(request.len() + 4);
    for (name, value) in http1::end_to_end(request) {
        let kept = !OWN.contains(name) && (wanted.trace || !TRACE.contains(name));
        if kept && name != exempt && !name.as_str().starts_with("x-lb-") {
            out.append(name.clone(), value.clone());
        }
    }
    if wanted.identity {
        // The observer has to read the stream; a compressed one would pass it unseen.
        out.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    out.insert(X_REQUEST_ID, id.clone());
    forwarded(&mut out, request, peer);
    out
}

/// Says where the request came from; what an untrusted peer says of that is replaced, not added to.
fn forwarded(out: &mut HeaderMap, request: &HeaderMap, peer: Peer) {
    let before = request.get(X_FORWARDED_FOR).filter(|_| peer.trusted);
    let chain = before
        .and_then(|value| value.to_str().ok())
        .map_or_else(|| peer.ip.to_string(), |before| format!("{before}, {}", peer.ip));
    if let Ok(value) = HeaderValue::from_str(&chain) {
        out.insert(X_FORWARDED_FOR, value);
    }
    if !peer.trusted {
        out.remove(header::FORWARDED);
        let scheme = if peer.https { "https" } else { "http" };
        out.insert(X_FORWARDED_PROTO, HeaderValue::from_static(scheme));
        match request.get(header::HOST) {
            Some(host) => out.insert(X_FORWARDED_HOST, host.clone()),
            None => out.remove(X_FORWARDED_HOST),
        };
    }
}

/// The fields as `provider` gets them: without the client's credentials, with its own and its configured fields.
pub(super) fn for_provider(base: &HeaderMap, provider: &Provider) -> HeaderMap {
    let mut out = base.clone();
    if !provider.config.propagate_trace {
        // They are there only where another target of the chain takes them.
        for name in &TRACE {
            out.remove(name);
        }
    }
    own(
        &mut out,
        provider.passthrough_auth,
        &provider.headers,
        provider.credentials.as_ref(),
    );
    out
}

fn own(
    out: &mut HeaderMap,
    passthrough_auth: bool,
    configured: &[(HeaderName, HeaderValue)],
    credentials: Option<&(HeaderName, HeaderValue)>,
) {
    if !passthrough_auth {
        for name in &CREDENTIALS {
            out.remove(name);
        }
    }
    for (name, value) in configured.iter().chain(credentials) {
        out.insert(name.clone(), value.clone());
    }
}

/// Turns a provider's response fields into those its client gets.
pub(super) fn returnable(headers: &mut HeaderMap, bodiless: bool) {
    http1::strip_hop_by_hop(headers);
    if !bodiless {
        // The body's own size says it. An upstream's word for it would stand even where the body is cut short.
        headers.remove(header::CONTENT_LENGTH);
    }
}

/// Tells the client who answered, as far as `reveal` lets it know, and that the answer is a degraded one.
pub(super) fn reveal(headers: &mut HeaderMap, by: &By, attempts: u32, reveal: Reveal) {
    let degraded = by
        .fallback
        .as_ref()
        .filter(|fallback| fallback.notice != Notice::None);
    if degraded.is_some() {
        // No name of a model is in it, so it is for everybody.
        put(headers, "x-lb-degraded", "1");
    }
    if reveal == Reveal::None {
        return;
    }
    put(headers, "x-lb-provider", &by.provider);
    reveal_attempts(headers, attempts, reveal);
    if let Some(model) = &by.upstream_model {
        put(headers, "x-lb-model", model);
    }
    if let Some(fallback) = &by.fallback {
        put(headers, "x-lb-fallback", &fallback.preset);
    }
    if reveal == Reveal::Endpoint {
        put(headers, "x-lb-endpoint", &by.endpoint);
    }
    let timing = [("queue", by.queue), ("ttft", by.first_token)];
    let timing = timing
        .into_iter()
        .filter_map(|(name, span)| Some(format!("{name};dur={}", millis(span?))));
    let timing = timing.collect::<Vec<_>>().join(", ");
    if let (false, Ok(value)) = (timing.is_empty(), HeaderValue::from_str(&timing)) {
        // Added to what the provider measured of its own.
        headers.append(SERVER_TIMING, value);
    }
}

/// Tells the client how many attempts were made, also where lb answers itself.
pub(super) fn reveal_attempts(headers: &mut HeaderMap, attempts: u32, reveal: Reveal) {
    if reveal != Reveal::None {
        headers.insert(
            HeaderName::from_static("x-lb-attempts"),
            HeaderValue::from(attempts),
        );
    }
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

/// The request's id: a trusted peer's own, else a new one (`UUIDv7`: sorts by time, unguessable).
pub(super) fn request_id(headers: &HeaderMap, peer: Peer, unix_millis: u64, random: u128) -> HeaderValue {
    if let Some(kept) = headers
        .get(X_REQUEST_ID)
        .filter(|value| peer.trusted && value.len() <= 128)
    {
        return kept.clone();
    }
    let time = u128::from(unix_millis & 0xffff_ffff_ffff) << 80;
    let random = random & 0x0fff_3fff_ffff_ffff_ffff;
    let bits = time | (0x7 << 76) | (0x2 << 62) | random;
    let hex = format!("{bits:032x}");
    let id = format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    );
    HeaderValue::from_str(&id).expect("hexadecimal digits and hyphens are a header value")
}

/// Sets the request's id on a response of lb's own.
pub(super) fn stamp(headers: &mut HeaderMap, id: HeaderValue) {
    headers.insert(X_REQUEST_ID, id);
}

#[cfg(test)]
mod tests;
