//! Which fields of a request reach an upstream, and which of a response its client.

use std::net::IpAddr;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use super::exchange::By;
use crate::config::Reveal;
use crate::upstream::Provider;
use crate::wire::http1;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

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
const OWN: [HeaderName; 6] = [
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
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

/// The fields of a request as every attempt sends them; what differs from provider to provider comes on top.
pub(super) fn forwardable(
    request: &HeaderMap,
    peer: Peer,
    id: &HeaderValue,
    identity: bool,
    exempt: &HeaderName,
) -> HeaderMap {
    let mut out = HeaderMap::with_capacity(request.len() + 4);
    for (name, value) in http1::end_to_end(request) {
        if !OWN.contains(name) && name != exempt && !name.as_str().starts_with("x-lb-") {
            out.append(name.clone(), value.clone());
        }
    }
    if identity {
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

/// Tells the client who answered, as far as `reveal` lets it know.
pub(super) fn reveal(headers: &mut HeaderMap, by: &By, attempts: u32, reveal: Reveal) {
    if reveal == Reveal::None {
        return;
    }
    put(headers, "x-lb-provider", &by.provider);
    put(headers, "x-lb-attempts", &attempts.to_string());
    if let Some(model) = &by.upstream_model {
        put(headers, "x-lb-model", model);
    }
    if reveal == Reveal::Endpoint {
        put(headers, "x-lb-endpoint", &by.endpoint);
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
