use super::*;

// [PROXY-9]
#[test]
fn what_only_computes_may_be_repeated_and_what_is_stored_may_not() {
    let post = |path, stored| is_repeatable(&Method::POST, path, stored);
    for path in [
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/embeddings",
        "/v1/messages",
        "/v1/rerank",
    ] {
        assert!(post(path, Some(false)), "{path}");
    }
    assert!(post("/v1/responses", Some(false)));
    assert!(!post("/v1/responses", Some(true)));
    assert!(!post("/v1/files", Some(false)));
    assert!(!post("/v1/audio/transcriptions", None));
    assert!(is_repeatable(&Method::GET, "/v1/files", None));
    assert!(!is_repeatable(&Method::PATCH, "/v1/files", None));
}
