use std::net::{IpAddr, Ipv4Addr};

use http::{HeaderMap, HeaderName, HeaderValue};

use super::point;
use crate::config::HashKey;
use crate::policy::balance::hash;
use crate::proxy::headers::Peer;

fn peer(last: u8, trusted: bool) -> Peer {
    Peer::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), trusted, false)
}

// [BALANCE-5]
#[test]
fn the_key_is_the_client_and_not_a_trusted_proxy_before_it() {
    let mut headers = HeaderMap::new();
    headers.append("x-forwarded-for", HeaderValue::from_static("192.0.2.9"));
    headers.append(
        "x-forwarded-for",
        HeaderValue::from_static("192.0.2.1, 192.0.2.7"),
    );
    let at = |peer: &Peer| point(&HashKey::Address, &headers, peer);
    assert_eq!(at(&peer(1, true)), Some(hash(b"192.0.2.7")));
    assert_eq!(at(&peer(1, false)), Some(hash(b"10.0.0.1")));
    let none = HeaderMap::new();
    assert_eq!(
        point(&HashKey::Address, &none, &peer(2, true)),
        Some(hash(b"10.0.0.2"))
    );
}

// [BALANCE-5]
#[test]
fn a_request_without_the_header_has_no_key() {
    let key = HashKey::Header(HeaderName::from_static("x-session"));
    let mut headers = HeaderMap::new();
    assert_eq!(point(&key, &headers, &peer(1, false)), None);
    headers.insert("x-session", HeaderValue::from_static("s1"));
    assert_eq!(point(&key, &headers, &peer(1, false)), Some(hash(b"s1")));
}
