use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{conversation, point};
use crate::config::{Affinity, HashKey};
use crate::policy::balance::hash;
use crate::proxy::asked::{Asked, Reading, Terms};
use crate::proxy::budget::{Budget, Held};
use crate::proxy::headers::Peer;
use crate::proxy::pieces::Pieces;
use crate::proxy::receive::Payload;

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
    let at = |peer: &Peer| point(&HashKey::Address, &headers, peer, None);
    assert_eq!(at(&peer(1, true)), Some(hash(b"192.0.2.7")));
    assert_eq!(at(&peer(1, false)), Some(hash(b"10.0.0.1")));
    let none = HeaderMap::new();
    assert_eq!(
        point(&HashKey::Address, &none, &peer(2, true), None),
        Some(hash(b"10.0.0.2"))
    );
}

// [BALANCE-5]
#[test]
fn a_request_without_the_header_has_no_key() {
    let key = HashKey::Header(HeaderName::from_static("x-session"));
    let mut headers = HeaderMap::new();
    assert_eq!(point(&key, &headers, &peer(1, false), None), None);
    headers.insert("x-session", HeaderValue::from_static("s1"));
    assert_eq!(point(&key, &headers, &peer(1, false), None), Some(hash(b"s1")));
}

fn whole(body: &str, chunk: usize) -> (Asked, Payload) {
    let mut reading = Reading::new(
        &HeaderMap::new(),
        Terms {
            noting: true,
            ..Terms::default()
        },
    )
    .expect("JSON");
    let mut pieces = Pieces::default();
    for chunk in body.as_bytes().chunks(chunk) {
        reading.feed(chunk).expect("valid");
        pieces.push(Bytes::copy_from_slice(chunk));
    }
    let asked = reading.finish(false, || None).expect("a model");
    let payload = Payload::Whole {
        pieces: pieces.sealed(),
        trailers: None,
        _held: Held::new(&Arc::new(Budget::new(1 << 20))),
    };
    (asked, payload)
}

// [AFFINITY-2]
#[test]
fn a_conversation_is_the_same_point_however_its_body_comes_and_goes_on() {
    let key = |affinity: &Affinity, body: &str, chunk: usize| {
        let (asked, payload) = whole(body, chunk);
        conversation(affinity, &HeaderMap::new(), &asked, &payload)
    };
    let long = "y".repeat(200_000);
    let first = format!(r#"{{"role":"system","content":"{long}"}},{{"role":"user","content":"a"}}"#);
    let body = |more: &str| {
        format!(r#"{{"model":"m","prompt_cache_key":"k1","messages":[{first}{more}],"user":"x"}}"#)
    };
    let (one, later) = (body(""), body(r#",{"role":"assistant","content":"b"}"#));
    for affinity in [Affinity::FirstMessages, Affinity::PromptCacheKey] {
        let point = key(&affinity, &one, one.len());
        assert!(point.is_some());
        for chunk in [1000, 65_536, later.len()] {
            assert_eq!(
                key(&affinity, &later, chunk),
                point,
                "{affinity:?} in chunks of {chunk}"
            );
        }
        assert_ne!(
            key(&affinity, &one.replace("k1", "k2").replace('a', "z"), 999),
            point
        );
        assert_eq!(key(&affinity, r#"{"model":"m","prompt":"x"}"#, 100), None);
    }
}

// [AFFINITY-1]
#[test]
fn a_conversation_may_be_named_by_a_field() {
    let (asked, payload) = whole(r#"{"model":"m"}"#, 100);
    let affinity = Affinity::Header(HeaderName::from_static("x-session"));
    let mut headers = HeaderMap::new();
    assert_eq!(conversation(&affinity, &headers, &asked, &payload), None);
    headers.append("x-session", HeaderValue::from_static("s1"));
    let found = conversation(&affinity, &headers, &asked, &payload);
    assert_eq!(found, Some(hash(b"s1")));
    assert_eq!(
        point(&HashKey::Conversation, &headers, &peer(1, false), found),
        found
    );
    assert_eq!(
        point(&HashKey::Conversation, &headers, &peer(1, false), None),
        None
    );
}
