use super::*;

// [PROXY-10]
#[test]
fn escapes_are_decoded_and_what_is_none_stays() {
    assert_eq!(percent_decoded("meta-llama%2FLlama-3.3"), "meta-llama/Llama-3.3");
    assert_eq!(percent_decoded("a%2"), "a%2");
    assert_eq!(percent_decoded("%+f%zz%"), "%+f%zz%");
    assert_eq!(percent_decoded("%e5%a5%bd"), "好");
}

// [PROXY-11]
#[test]
fn the_model_may_stand_in_a_header_or_the_query_or_the_route() {
    let named = |uri: &str, header: Option<&'static str>, default| {
        let mut request = Request::new(());
        *request.uri_mut() = uri.parse().expect("a target");
        if let Some(model) = header {
            let value = http::HeaderValue::from_static(model);
            request.headers_mut().insert("x-lb-model", value);
        }
        elsewhere(&request, default)
    };
    let query = "/v1/realtime?x=1&mod%65l=a%2Fb";
    assert_eq!(named(query, None, Some("e")).as_deref(), Some("a/b"));
    assert_eq!(named(query, Some("d"), Some("e")).as_deref(), Some("d"));
    assert_eq!(named("/v1/x", None, Some("e")).as_deref(), Some("e"));
    assert_eq!(named("/v1/x?model", None, None), None);
}

// [PROXY-16]
#[test]
fn a_query_with_two_models_is_refused_however_they_are_written() {
    for query in [
        "model=a&model=b",
        "model=a&x&model=a",
        "mod%65l=a&model=b",
        "model&model=a",
    ] {
        let uri = format!("/v1/realtime?{query}").parse().expect("a target");
        let refused = check(&uri).expect_err(query);
        assert_eq!(
            refused,
            Refusal::BadRequest("the query has more than one `model`")
        );
    }
    for target in ["/v1/x", "/v1/x?model=a", "/v1/x?models=a&model=b&modal=c"] {
        assert_eq!(check(&target.parse().expect("a target")), Ok(()), "{target}");
    }
}

// [PROXY-14]
#[test]
fn another_model_takes_the_place_of_the_querys() {
    assert_eq!(with_model("a&model=a%2Fb&z=1", "é"), "a&model=%C3%A9&z=1");
    assert_eq!(with_model("%6dodel=a", "b"), "model=b");
    assert_eq!(with_model("modal=a", "b"), "modal=a");
}
