use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use super::{HopByHop, strip_hop_by_hop};

fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
    fields
        .iter()
        .map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect()
}

fn names(headers: &HeaderMap) -> Vec<&str> {
    let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    names
}

const ENDING_HERE: [&str; 10] = [
    "connection",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];

// [NET-6]
#[test]
fn fields_that_end_at_every_hop_are_stripped() {
    for name in ENDING_HERE {
        let mut headers = map(&[("accept", "*/*"), (name, "x"), ("trailer", "x-t")]);
        let hop = HopByHop::of(&headers);
        assert!(hop.contains(&HeaderName::from_static(name)), "{name}");
        strip_hop_by_hop(&mut headers);
        assert_eq!(names(&headers), ["accept", "trailer"], "{name}");
    }
}

// [NET-6]
#[test]
fn fields_that_connection_names_are_stripped() {
    let mut headers = map(&[
        ("connection", "close, X-One ,,x-two"),
        ("x-one", "1"),
        ("x-two", "2"),
        ("x-three", "3"),
    ]);
    headers.append("connection", HeaderValue::from_static("x-four;, x-three"));
    strip_hop_by_hop(&mut headers);
    assert_eq!(
        names(&headers),
        Vec::<&str>::new(),
        "`x-four;` is no name and names nothing"
    );
}

// [NET-6]
#[test]
fn connection_cannot_name_away_what_the_next_hop_relies_on() {
    let guarded = [
        "api-key",
        "authorization",
        "content-length",
        "content-type",
        "cookie",
        "forwarded",
        "host",
        "traceparent",
        "via",
        "x-api-key",
        "x-forwarded-for",
        "x-forwarded-proto",
        "x-lb-model",
        "x-request-id",
    ];
    for name in guarded {
        let mut headers = map(&[(name, "kept")]);
        headers.insert("connection", HeaderValue::from_str(&name.to_uppercase()).unwrap());
        strip_hop_by_hop(&mut headers);
        assert_eq!(names(&headers), [name]);
    }
}

// [NET-6]
#[test]
fn what_is_stripped_is_what_ends_here() {
    let mut headers = map(&[
        ("connection", "x-one"),
        ("x-one", "1"),
        ("accept", "a"),
        ("te", "trailers"),
        ("authorization", "Bearer x"),
    ]);
    headers.append("accept", HeaderValue::from_static("b"));
    let hop = HopByHop::of(&headers);
    let mut passed = headers.clone();
    for name in headers.keys().filter(|name| hop.contains(name)) {
        passed.remove(name);
    }
    strip_hop_by_hop(&mut headers);
    assert_eq!(passed, headers);
    assert_eq!(names(&headers), ["accept", "authorization"]);
    assert_eq!(headers.get_all("accept").iter().count(), 2);
}
