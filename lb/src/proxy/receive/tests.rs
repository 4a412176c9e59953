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
fn the_model_may_stand_in_a_header_or_the_query() {
    let uri: Uri = "/v1/realtime?x=1&model=a%2Fb&model=c".parse().unwrap();
    assert_eq!(named_elsewhere(&uri, &HeaderMap::new()).as_deref(), Some("a/b"));
    let mut headers = HeaderMap::new();
    headers.insert("x-lb-model", http::HeaderValue::from_static("d"));
    assert_eq!(named_elsewhere(&uri, &headers).as_deref(), Some("d"));
    assert_eq!(
        named_elsewhere(&"/v1/x".parse().unwrap(), &HeaderMap::new()),
        None
    );
}

// [PROXY-12]
#[test]
fn the_bodys_model_wins_and_a_broken_body_needs_another_place() {
    let body = Bytes::from_static(b"{}");
    let said = |model: &str| {
        Some(Ok(Envelope {
            model: Some(model.to_owned()),
            ..Envelope::default()
        }))
    };
    let named = |scanned, elsewhere: Option<&str>| {
        resolve(body.clone(), scanned, elsewhere.map(str::to_owned)).map(|received| received.model)
    };
    assert_eq!(named(said("a"), Some("b")), Ok("a".to_owned()));
    assert_eq!(
        named(Some(Ok(Envelope::default())), Some("b")),
        Ok("b".to_owned())
    );
    let broken = || Some(Err(crate::wire::envelope::EnvelopeError::NotObject));
    assert_eq!(named(broken(), Some("b")), Ok("b".to_owned()));
    assert_eq!(
        named(broken(), None),
        Err(Refusal::BadBody("the body is not a JSON object".to_owned()))
    );
    assert_eq!(named(Some(Ok(Envelope::default())), None), Err(no_model()));
}
