//! The fields that end at this hop, whichever way they travel.

use http::header::{self, HeaderMap, HeaderName};

#[cfg(test)]
mod tests;

/// Tells the fields of one message that must not be passed on (RFC 9110 7.6.1): the ones that are hop-by-hop by
/// themselves and the ones its `Connection` field names.
///
/// A sender can nominate only fields that are between it and this hop. Naming a field that carries routing, framing,
/// identity or one of our own controls is ignored, since dropping it would change what the next hop is told about
/// the request ("connection: authorization" is an attack, not a wish).
#[derive(Debug, Default)]
pub struct HopByHop {
    /// Empty, without an allocation, for all but very odd messages.
    nominated: Vec<HeaderName>,
}

impl HopByHop {
    /// Reads the `Connection` fields of a message.
    pub fn of(headers: &HeaderMap) -> Self {
        if !has(headers, &header::CONNECTION) {
            return Self {
                nominated: Vec::new(),
            };
        }
        let values = headers.get_all(header::CONNECTION);
        Self {
            nominated: values
                .iter()
                .flat_map(|value| nominated(value.as_bytes()))
                .collect(),
        }
    }

    /// Those that the message names itself.
    pub fn nominated(&self) -> &[HeaderName] {
        &self.nominated
    }

    /// True if `name` ends here.
    pub fn contains(&self, name: &HeaderName) -> bool {
        is_always_hop_by_hop(name.as_str()) || self.nominated.contains(name)
    }
}

/// Removes what [`HopByHop`] tells, in place. The order among the other fields may change, which means nothing; among
/// the values of one field it stays.
pub fn strip_hop_by_hop(headers: &mut HeaderMap) {
    // Most messages have none, and a look at the names costs less than one search of the map.
    if !headers.keys().any(|name| is_always_hop_by_hop(name.as_str())) {
        return;
    }
    let hop = HopByHop::of(headers);
    for name in ALWAYS.iter().chain(&hop.nominated) {
        headers.remove(name);
    }
}

/// Whether a message has a field of this name. Messages have a few fields, and to walk over their names costs less than
/// to hash one: for names that are rarely there.
pub fn has(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.keys().any(|known| known == name)
}

/// The comma-separated tokens of one `Connection` value, as they stand.
pub(super) fn options(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|&b| b == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|token| !token.is_empty())
}

/// The fields that one `Connection` value names and may name.
pub(super) fn nominated(value: &[u8]) -> impl Iterator<Item = HeaderName> {
    // What is no field name is a connection option that nobody here knows.
    options(value)
        .filter(|token| !is_option(token))
        .filter_map(|token| {
            let name = HeaderName::from_bytes(token).ok()?;
            (!is_guarded(name.as_str())).then_some(name)
        })
}

/// True for the fields that are hop-by-hop whatever `Connection` says. Takes any case.
///
/// `Trailer` is not one of them: it announces trailers, which pass through. `Proxy-*` credentials are between a
/// client and its proxy (RFC 9110 11.7) and no business of an origin.
pub fn is_always_hop_by_hop(name: &str) -> bool {
    // The length decides nearly always, so that the many other fields cost one comparison.
    match name.len() {
        2 => name.eq_ignore_ascii_case("te"),
        7 => name.eq_ignore_ascii_case("upgrade"),
        10 => name.eq_ignore_ascii_case("connection") || name.eq_ignore_ascii_case("keep-alive"),
        14 => name.eq_ignore_ascii_case("http2-settings"),
        16 => name.eq_ignore_ascii_case("proxy-connection"),
        17 => name.eq_ignore_ascii_case("transfer-encoding"),
        18 => name.eq_ignore_ascii_case("proxy-authenticate"),
        19 => name.eq_ignore_ascii_case("proxy-authorization"),
        25 => name.eq_ignore_ascii_case("proxy-authentication-info"),
        _ => false,
    }
}

fn is_option(token: &[u8]) -> bool {
    token.eq_ignore_ascii_case(b"close") || token.eq_ignore_ascii_case(b"keep-alive")
}

/// `name` in lower case.
fn is_guarded(name: &str) -> bool {
    GUARDED.contains(&name) || GUARDED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

const ALWAYS: [HeaderName; 10] = [
    header::CONNECTION,
    HeaderName::from_static("http2-settings"),
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    HeaderName::from_static("proxy-authentication-info"),
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// What a `Connection` field cannot name away: routing and framing, identity, and what RFC 9110 7.6.1 says is meant
/// for all recipients.
const GUARDED: [&str; 17] = [
    "api-key",
    "authorization",
    "cache-control",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "forwarded",
    "host",
    "retry-after",
    "set-cookie",
    "traceparent",
    "via",
    "www-authenticate",
    "x-api-key",
    "x-request-id",
];

const GUARDED_PREFIXES: [&str; 2] = ["x-forwarded-", "x-lb-"];
