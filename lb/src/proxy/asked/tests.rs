use http::HeaderValue;

use super::*;

fn fields(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pairs = pairs.iter();
    pairs
        .map(|(name, value)| {
            (
                http::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        })
        .collect()
}

fn named(model: &str) -> String {
    model.to_owned()
}

const LIMITED: Terms<'static> = Terms {
    default_model: None,
    noting: false,
    limited: true,
};

/// What a body of these bytes asks for, byte by byte.
fn read(headers: &HeaderMap, body: &str, elsewhere: &Elsewhere) -> Result<(String, Place), Refusal> {
    let mut reading = Reading::new(headers, Terms::default())?;
    for byte in body.as_bytes().chunks(1) {
        match reading.feed(byte) {
            Err(fault) if fault.is_foreign() && elsewhere.is_some() => reading = Reading::Opaque,
            fed => fed?,
        }
    }
    reading
        .finish(false, || elsewhere.clone())
        .map(|asked| (asked.model, asked.place))
}

fn model(read: Result<(String, Place), Refusal>) -> Result<String, &'static str> {
    read.map(|(model, _)| model).map_err(|refusal| refusal.code())
}

// [PROXY-12]
#[test]
fn the_bodys_model_wins_and_a_foreign_body_needs_another_place() {
    let json = HeaderMap::new();
    assert_eq!(
        model(read(&json, r#"{"model":"a"}"#, &Some(named("b")))),
        Ok("a".into())
    );
    assert_eq!(
        model(read(&json, r#"{"x":1}"#, &Some(named("b")))),
        Ok("b".into())
    );
    for foreign in ["no JSON", "[1]", r#"{"x":1"#] {
        assert_eq!(
            model(read(&json, foreign, &Some(named("b")))),
            Ok("b".into()),
            "{foreign}"
        );
        assert_eq!(
            model(read(&json, foreign, &None)),
            Err("invalid_json"),
            "{foreign}"
        );
    }
    assert_eq!(read(&json, "{}", &None), Err(no_model()));
}

// [ENV-3]
#[test]
fn what_two_readers_could_read_in_two_ways_is_refused_wherever_the_model_is_named() {
    for body in [
        r#"{"model":"a","model":"b"}"#,
        r#"{"stream":true,"stream":false}"#,
        r#"{"model":7}"#,
    ] {
        assert_eq!(
            model(read(&HeaderMap::new(), body, &Some(named("b")))),
            Err("invalid_json"),
            "{body}"
        );
    }
}

// [BODY-4]
#[test]
fn a_form_names_its_model_in_a_part() {
    let form = fields(&[("content-type", "multipart/form-data; boundary=b0")]);
    let body = "--b0\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n--b0--";
    let at = body.find("whisper").expect("it is there");
    assert_eq!(
        read(&form, body, &Some(named("b"))),
        Ok(("whisper".to_owned(), Place::Form(at..at + 7)))
    );
    assert_eq!(model(read(&form, "--b0--", &Some(named("b")))), Ok("b".into()));
    assert_eq!(model(read(&form, "--b0--", &None)), Err("invalid_json"));
    assert_eq!(
        model(read(&form, &body[..body.len() - 2], &Some(named("b")))),
        Err("invalid_json")
    );
    let unbounded = fields(&[("content-type", "multipart/form-data")]);
    assert_eq!(
        model(read(&unbounded, body, &Some(named("b")))),
        Err("invalid_json")
    );
}

// [BODY-5]
#[test]
fn a_compressed_body_is_not_looked_into() {
    let mut second = fields(&[("content-encoding", "identity")]);
    second.append(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    assert_eq!(
        model(read(&second, r#"{"model":"a"}"#, &Some(named("b")))),
        Ok("b".into())
    );
    let gzip = fields(&[("content-encoding", "gzip")]);
    assert_eq!(model(read(&gzip, "\u{1f}", &Some(named("b")))), Ok("b".into()));
    let plain = fields(&[("content-encoding", "Identity")]);
    assert_eq!(model(read(&plain, r#"{"model":"a"}"#, &None)), Ok("a".into()));
}

// [BODY-3]
#[test]
fn a_model_is_known_as_soon_as_its_value_is_complete() {
    let mut reading = Reading::new(&HeaderMap::new(), Terms::default()).expect("readable");
    reading.feed(br#"{"x":[1,2],"model":"a"#).expect("JSON");
    assert_eq!(reading.so_far(|| Some(named("b"))), None);
    reading.feed(br#"b","stream":tr"#).expect("JSON");
    let known = reading.so_far(|| None).expect("named");
    assert_eq!((known.model.as_str(), known.place), ("ab", Place::Json(19..23)));
}

// [KEY-4]
#[test]
fn a_limited_client_gets_no_body_past_in_which_another_may_read_another_model() {
    let finished = |headers: &HeaderMap, body: &str| {
        let mut reading = Reading::new(headers, LIMITED)?;
        reading.feed(body.as_bytes())?;
        reading.finish(true, || Some(named("b"))).map(|asked| asked.model)
    };
    let json = HeaderMap::new();
    assert_eq!(finished(&json, r#"{"model":"a"}"#), Ok("a".into()));
    assert_eq!(finished(&json, r#"{"x":1}"#), Ok("b".into()));
    for hidden in [
        r#"{"Model":"a"}"#,
        r#"{"model":null}"#,
        r#"{"x":1"#,
        "",
        "[1]",
        "\u{feff}{}",
        r#"{"x":NaN}"#,
    ] {
        let refused = finished(&json, hidden).expect_err(hidden);
        assert_eq!(refused.code(), "invalid_json", "{hidden}");
    }
    for (content_type, passes) in [
        ("application/json", true),
        ("application/json; charset=UTF-8", true),
        ("text/plain;charset=\"utf-8\"", true),
        ("application/json; charset=utf-7", false),
        ("application/json; charset=utf-8; charset=utf-7", false),
        ("application/json; charset*=utf-7", false),
        ("application/x-www-form-urlencoded", false),
        ("Application/X-WWW-Form-Urlencoded; charset=utf-8", false),
    ] {
        let fields = fields(&[("content-type", content_type)]);
        assert_eq!(
            finished(&fields, r#"{"model":"a"}"#).is_ok(),
            passes,
            "{content_type}"
        );
    }
    let mut twice = fields(&[("content-type", "application/json")]);
    twice.append(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    assert!(finished(&twice, r#"{"model":"a"}"#).is_err());
}
