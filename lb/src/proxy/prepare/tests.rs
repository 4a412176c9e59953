use http::{HeaderMap, HeaderValue};

use super::super::headers::Peer;
use super::*;

fn target(request: &str, endpoint: &str) -> String {
    let uri: Uri = request.parse().unwrap();
    let peer = Peer::new([192, 0, 2, 7].into(), false, false);
    let id = HeaderValue::from_static("id-1");
    let headers = Forwardable::new(HeaderMap::new(), &peer, id, false);
    let prepared = Prepared::new(Method::POST, uri, headers, None, None);
    prepared.target(&endpoint.parse().unwrap()).to_string()
}

// [PROXY-7]
#[test]
fn the_endpoints_path_takes_the_place_of_v1() {
    assert_eq!(
        target("/v1/chat/completions", "http://gpu:8000/v1"),
        "/v1/chat/completions"
    );
    assert_eq!(
        target("/v1/chat/completions", "http://gpu:8000"),
        "/v1/chat/completions"
    );
    assert_eq!(
        target("/v1/chat/completions", "https://h/openai/deployments/d"),
        "/openai/deployments/d/chat/completions"
    );
    assert_eq!(target("/v1", "http://h/api"), "/api");
    assert_eq!(target("/v1beta/x", "http://h/api"), "/v1beta/x");
}

// [PROXY-8]
#[test]
fn the_endpoints_query_comes_after_the_clients() {
    assert_eq!(
        target("/v1/x?a=1", "https://h/v1?api-version=2"),
        "/v1/x?a=1&api-version=2"
    );
    assert_eq!(
        target("/v1/x", "https://h/v1?api-version=2"),
        "/v1/x?api-version=2"
    );
}

// [PROXY-9]
#[test]
fn what_only_computes_may_be_repeated_and_what_is_stored_may_not() {
    let stored = |stored| {
        Some(Envelope {
            stored,
            ..Envelope::default()
        })
    };
    let post = |path, envelope: Option<Envelope>| is_repeatable(&Method::POST, path, envelope.as_ref());
    for path in [
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/embeddings",
        "/v1/messages",
        "/v1/rerank",
    ] {
        assert!(post(path, stored(false)), "{path}");
    }
    assert!(post("/v1/responses", stored(false)));
    assert!(!post("/v1/responses", stored(true)));
    assert!(!post("/v1/files", stored(false)));
    assert!(!post("/v1/audio/transcriptions", None));
    assert!(is_repeatable(&Method::GET, "/v1/files", None));
    assert!(!is_repeatable(&Method::PATCH, "/v1/files", None));
}
