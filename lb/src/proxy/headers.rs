//! Which fields of a request reach an upstream, and which of a response its client.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

use crate::config::{Notice, Reveal};
use crate::net::{Field, Fields};
use crate::policy::time::millis;
use crate::upstream::{Fallback, Route};
use crate::wire::http1::{self, HopByHop, Present};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// Where a request came from.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// The address that connected.
    pub(super) ip: IpAddr,
    /// The same, as a field says it: made once for all requests of a connection.
    text: HeaderValue,
    /// The same as `Forwarded` says it, with the scheme.
    forwarded: HeaderValue,
    /// Whether its `X-Forwarded-*` and `x-request-id` are believed.
    pub(super) trusted: bool,
    /// Whether it connected with TLS.
    pub(super) https: bool,
}

impl Peer {
    /// A peer at `ip`.
    pub(super) fn new(ip: IpAddr, trusted: bool, https: bool) -> Self {
        let value = |text: &str| {
            HeaderValue::from_str(text).expect("an address has the characters of a header value")
        };
        let node = if ip.is_ipv4() {
            ip.to_string()
        } else {
            format!("\"[{ip}]\"")
        };
        let scheme = if https { "https" } else { "http" };
        Self {
            ip,
            text: value(&ip.to_string()),
            forwarded: value(&format!("for={node};proto={scheme}")),
            trusted,
            https,
        }
    }
}

/// Which of a client's own fields a provider is left.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Kept {
    /// What says who the client is: it is for lb, or for one provider.
    pub(super) auth: bool,
    /// What says to which trace the request belongs.
    pub(super) trace: bool,
}

/// The fields of a request as its attempts send them. The client's are kept as they came and looked at again for each
/// attempt, which is cheaper than a second map.
#[derive(Debug)]
pub(super) struct Forwardable {
    client: HeaderMap,
    present: Present,
    hop: HopByHop,
    /// Whether the peer is believed about where the request came from.
    trusted: bool,
    /// Whether the response has to be readable.
    identity: bool,
    /// Whether `via` is lb's to say.
    via: bool,
    /// Where the route changes anything.
    route: Option<Arc<Route>>,
    added: Vec<Field>,
}

impl Forwardable {
    /// Takes the client's fields; what differs from provider to provider comes on top.
    pub(super) fn new(
        (client, present): (HeaderMap, Present),
        peer: &Peer,
        id: HeaderValue,
        identity: bool,
    ) -> Self {
        let mut added = Vec::with_capacity(7);
        if identity {
            // The observer has to read the stream; a compressed one would pass it unseen.
            added.push((header::ACCEPT_ENCODING, HeaderValue::from_static("identity")));
        }
        added.push((X_REQUEST_ID, id));
        forwarded(&mut added, &client, peer);
        Self {
            hop: if present.any(Present::CONNECTION) {
                HopByHop::of(&client)
            } else {
                HopByHop::default()
            },
            client,
            present,
            trusted: peer.trusted,
            identity,
            via: false,
            route: None,
            added,
        }
    }

    /// Adds what the request's route changes, and `via`.
    pub(super) fn goes_along(&mut self, route: &Arc<Route>, via: Option<HeaderValue>) {
        if let Some(via) = via {
            self.via = true;
            self.added.push((header::VIA, via));
        }
        let changes = &route.config.request_headers;
        if !changes.is_empty() {
            self.added.retain(|(name, _)| !changes.concern(name));
            self.added.extend(changes.set.iter().cloned());
            self.route = Some(Arc::clone(route));
        }
    }

    /// Whether the client takes trailers (`te: trailers`), and so the provider may send them.
    pub(super) fn takes_trailers(&self) -> bool {
        self.present.any(Present::TE) && http1::takes_trailers(&self.client)
    }

    /// Whether the client asks to switch to another protocol.
    pub(super) fn has_upgrade(&self) -> bool {
        self.present.any(Present::UPGRADE)
    }

    /// The client's own.
    pub(super) fn client(&self) -> &HeaderMap {
        &self.client
    }

    /// Whether the client's field of this name goes to a provider that is left these.
    pub(super) fn passes(&self, name: &HeaderName, kept: Kept, exempt: &HeaderName) -> bool {
        let private = !kept.auth;
        let text = name.as_str();
        let dropped = match text.len() {
            3 => text == "via" && self.via,
            4 => text == "host",
            6 => text == "cookie" && private || text == "expect",
            7 => text == "trailer" || text == "api-key" && private,
            9 => text == "forwarded" || text == "x-api-key" && private,
            10 => text == "tracestate" && !kept.trace,
            11 => text == "traceparent" && !kept.trace,
            12 => text == "x-request-id",
            13 => text == "authorization" && private,
            14 => text == "content-length" || text == "openai-project" && private,
            15 => text == "accept-encoding" && self.identity || text == "x-forwarded-for",
            16 => text == "x-forwarded-host" && !self.trusted,
            17 => text == "x-forwarded-proto" && !self.trusted,
            19 => text == "openai-organization" && private,
            _ => false,
        };
        let changed = |route: &Arc<Route>| route.config.request_headers.concern(name);
        !dropped
            && !text.starts_with("x-lb-")
            && name != exempt
            && !self.hop.contains(name)
            && !self.route.as_ref().is_some_and(changed)
    }

    /// Names that no provider is told of, nor behind the body: those that the route changes and the client's hop has.
    pub(super) fn barred(&self) -> Vec<HeaderName> {
        let changes = self.route.iter().map(|route| &route.config.request_headers);
        let changed = changes.flat_map(|changes| {
            let set = changes.set.iter().map(|(name, _)| name);
            changes.remove.iter().chain(set)
        });
        changed.chain(self.hop.nominated()).cloned().collect()
    }

    /// The fields as a provider gets them, with its own: `passes` is [`Self::passes`] for it.
    pub(super) fn fields<'a>(
        &'a self,
        set: &'a [Field],
        passes: &'a (dyn Fn(&HeaderName) -> bool + Sync),
    ) -> Fields<'a> {
        Fields {
            client: &self.client,
            passes,
            added: &self.added,
            set,
        }
    }
}

impl Drop for Forwardable {
    fn drop(&mut self) {
        http1::give_fields(std::mem::take(&mut self.client));
    }
}

/// Says where the request came from; what an untrusted peer says of that is replaced, not added to.
fn forwarded(added: &mut Vec<Field>, client: &HeaderMap, peer: &Peer) {
    let chain = |name: HeaderName, own: &HeaderValue| {
        if !peer.trusted {
            return (name, own.clone());
        }
        let before = client.get_all(&name).iter().map(HeaderValue::as_bytes);
        let before: Vec<&[u8]> = before.collect();
        let all = match before[..] {
            [] => None,
            _ => HeaderValue::from_bytes(&[&before[..], &[own.as_bytes()]].concat().join(&b", "[..])).ok(),
        };
        (name, all.unwrap_or_else(|| own.clone()))
    };
    added.push(chain(X_FORWARDED_FOR, &peer.text));
    added.push(chain(header::FORWARDED, &peer.forwarded));
    let told = |name: &HeaderName| peer.trusted && client.contains_key(name);
    if !told(&X_FORWARDED_PROTO) {
        let scheme = if peer.https { "https" } else { "http" };
        added.push((X_FORWARDED_PROTO, HeaderValue::from_static(scheme)));
    }
    if !told(&X_FORWARDED_HOST)
        && let Some(host) = client.get(header::HOST)
    {
        added.push((X_FORWARDED_HOST, host.clone()));
    }
}

/// Turns a provider's response fields into those its client gets.
pub(super) fn returnable(headers: &mut HeaderMap, bodiless: bool) {
    http1::strip_hop_by_hop(headers);
    // Over HTTP/1.1 it is gone already.
    if !bodiless && http1::has(headers, &header::CONTENT_LENGTH) {
        // The body's own size says it. An upstream's word for it would stand even where the body is cut short.
        headers.remove(header::CONTENT_LENGTH);
    }
}

/// Takes off what is lb's own to say: a provider's word for it, such as that of another lb, would pass for this one's.
pub(super) fn disown(headers: &mut HeaderMap) {
    let is_own = |name: &&HeaderName| name.as_str().starts_with("x-lb-");
    // Most responses have none.
    if !headers.keys().any(|name| is_own(&name)) {
        return;
    }
    let own: Vec<HeaderName> = headers.keys().filter(is_own).cloned().collect();
    for name in own {
        headers.remove(name);
    }
}

/// What answered, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct By<'a> {
    pub(super) provider: &'a str,
    pub(super) endpoint: &'a str,
    pub(super) upstream_model: Option<&'a str>,
    /// Where a preset's fallback answers.
    pub(super) fallback: Option<&'a Fallback>,
    /// From the request being whole to its first attempt.
    pub(super) queue: Option<Duration>,
    /// From the request's head to the first token, where that was waited for.
    pub(super) first_token: Option<Duration>,
}

/// Tells the client who answered, as far as `reveal` lets it know, and that the answer is a degraded one.
pub(super) fn reveal(headers: &mut HeaderMap, by: By<'_>, attempts: u32, reveal: Reveal) {
    if by
        .fallback
        .is_some_and(|fallback| fallback.notice != Notice::None)
    {
        // No name of a model is in it, so it is for everybody.
        put(headers, "x-lb-degraded", "1");
    }
    if reveal == Reveal::None {
        return;
    }
    put(headers, "x-lb-provider", by.provider);
    reveal_attempts(headers, attempts, reveal);
    if let Some(model) = by.upstream_model {
        put(headers, "x-lb-model", model);
    }
    if let Some(fallback) = by.fallback {
        put(headers, "x-lb-fallback", &fallback.preset);
    }
    if reveal == Reveal::Endpoint {
        put(headers, "x-lb-endpoint", by.endpoint);
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

/// Has proxies between lb and the client pass an event stream on as it comes, where its provider says nothing about it.
pub(super) fn unbuffered(headers: &mut HeaderMap) {
    let fields = [
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    for (name, value) in fields {
        headers
            .entry(name)
            .or_insert_with(|| HeaderValue::from_static(value));
    }
}

/// The request's id: a trusted peer's own, else a new one (`UUIDv7`: sorts by time, unguessable).
pub(super) fn request_id(headers: &HeaderMap, peer: &Peer, unix_millis: u64, random: u128) -> HeaderValue {
    let given = peer.trusted.then(|| headers.get(X_REQUEST_ID)).flatten();
    if let Some(kept) = given.filter(|value| value.len() <= 128) {
        return kept.clone();
    }
    new_request_id(unix_millis, random)
}

/// A new one.
pub(super) fn new_request_id(unix_millis: u64, random: u128) -> HeaderValue {
    let time = u128::from(unix_millis & 0xffff_ffff_ffff) << 80;
    let random = random & 0x0fff_3fff_ffff_ffff_ffff;
    let bytes = (time | (0x7 << 76) | (0x2 << 62) | random).to_be_bytes();
    let mut id = [b'-'; 36];
    // Where each group of digits stands, and which bytes it shows.
    for (at, shown) in [(0, 0..4), (9, 4..6), (14, 6..8), (19, 8..10), (24, 10..16)] {
        for (pair, byte) in id[at..].chunks_exact_mut(2).zip(&bytes[shown]) {
            pair[0] = HEX[usize::from(byte >> 4)];
            pair[1] = HEX[usize::from(byte & 0xf)];
        }
    }
    HeaderValue::from_bytes(&id).expect("hexadecimal digits and hyphens are a header value")
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Sets the request's id on a response of lb's own.
pub(super) fn stamp(headers: &mut HeaderMap, id: HeaderValue) {
    headers.insert(X_REQUEST_ID, id);
}

#[cfg(test)]
mod tests;
