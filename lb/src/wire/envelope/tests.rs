//! The envelope by example; random documents are in the child.

mod members;
mod properties;

use super::*;

fn scan(body: impl AsRef<[u8]>) -> Result<Envelope, EnvelopeError> {
    scan_in([body.as_ref()])
}

fn scan_in<'c>(chunks: impl IntoIterator<Item = &'c [u8]>) -> Result<Envelope, EnvelopeError> {
    let mut scanner = Scanner::new();
    for chunk in chunks {
        scanner.feed(chunk)?;
    }
    scanner.finish()
}

fn model(name: &str, span: Range<usize>) -> Envelope {
    Envelope {
        model: Some(name.to_owned()),
        model_span: span,
        ..Envelope::default()
    }
}

// [ENV-1]
#[test]
fn the_model_is_found_wherever_it_stands() {
    assert_eq!(scan(r#"{"model":"m"}"#), Ok(model("m", 9..12)));
    assert_eq!(
        scan("\r\n{ \"a\" : [ ] ,\t\"model\" : \"m\" } \n"),
        Ok(model("m", 26..29))
    );
    let long = format!(r#"{{"messages":["{}"],"model":"m"}}"#, "x".repeat(4 << 20));
    assert_eq!(
        scan_in(long.as_bytes().chunks(4096)),
        Ok(model("m", long.len() - 4..long.len() - 1))
    );
}

// [ENV-1]
#[test]
fn only_the_outermost_object_counts() {
    assert_eq!(
        scan(r#"{"a":{"model":"x","stream":true,"store":true}}"#),
        Ok(Envelope::default())
    );
    assert_eq!(
        scan(r#"{"a":["model",{"stream":true}],"b":"model"}"#),
        Ok(Envelope::default())
    );
    // The name of an object's last member must not rub off on what follows it.
    assert_eq!(
        scan(r#"{"a":{"model":1},"b":"x","c":[{"stream":true}]}"#),
        Ok(Envelope::default())
    );
}

// [ENV-1]
#[test]
fn every_split_of_a_body_gives_the_same_envelope() {
    let body = r#"{ "x": [-0.5e+3, {}, [], {"k\"": "é\ud83d\ude00"}, null, false], "\u006dodel": "a\u00e9\ud83d\uDE00é😀\n\/", "stream": true, "store": false, "background": true }"#;
    let expected = Envelope {
        model: Some("aé😀é😀\n/".to_owned()),
        model_span: body.find("\"a\\u").unwrap()..body.find(", \"stream").unwrap(),
        stream: true,
        stored: true,
    };
    for at in 0..=body.len() {
        let (left, right) = body.as_bytes().split_at(at);
        assert_eq!(scan_in([left, right]).as_ref(), Ok(&expected), "cut at {at}");
    }
    assert_eq!(scan_in(body.as_bytes().chunks(1)), Ok(expected));
}

// [ENV-1]
#[test]
fn only_the_literal_true_streams_or_stores() {
    for value in ["false", "null", "1", "\"true\"", "[true]", "{\"stream\":true}"] {
        for name in ["stream", "store", "background"] {
            assert_eq!(
                scan(format!(r#"{{"{name}":{value}}}"#)),
                Ok(Envelope::default()),
                "{name}: {value}"
            );
        }
    }
    assert_eq!(
        scan(r#"{"stream":true}"#).map(|it| (it.stream, it.stored)),
        Ok((true, false))
    );
    for name in ["store", "background"] {
        assert_eq!(
            scan(format!(r#"{{"{name}":true}}"#)).map(|it| (it.stream, it.stored)),
            Ok((false, true))
        );
    }
}

// [ENV-2]
#[test]
fn escapes_in_keys_and_in_the_model_are_read() {
    assert_eq!(
        scan(r#"{"\u006d\u006F\u0064\u0065\u006c":"m"}"#),
        Ok(model("m", 34..37))
    );
    assert_eq!(
        scan(r#"{"model":"\"\\\/\b\f\n\r\t"}"#),
        Ok(model("\"\\/\u{8}\u{c}\n\r\t", 9..27))
    );
    assert_eq!(
        scan(r#"{"model":"\u0000\ud83d\ude00"}"#),
        Ok(model("\0😀", 9..29))
    );
}

// [ENV-2]
#[test]
fn half_a_surrogate_pair_names_no_model() {
    for name in [
        r"\ud83d",
        r"\ude00",
        r"\ud83dx",
        r"\ud83d\n",
        r"\ud83d\u0041",
        r"\ud83d\ud83d",
    ] {
        for body in [format!(r#"{{"model":"{name}"}}"#), format!(r#"{{"{name}":1}}"#)] {
            assert!(
                matches!(scan(&body), Err(EnvelopeError::NotJson { .. })),
                "{body}"
            );
        }
        // Further in it is none of our business.
        assert_eq!(
            scan(format!(r#"{{"a":["{name}"]}}"#)),
            Ok(Envelope::default()),
            "{name}"
        );
    }
}

// [ENV-3]
#[test]
fn a_second_model_or_stream_is_refused_however_it_is_written() {
    for second in ["model", r"mo\u0064el", "Model", "MODEL"] {
        let body = format!(r#"{{"model":"a","{second}":"a"}}"#);
        let at = body.len() - 5;
        assert_eq!(scan(&body), Err(EnvelopeError::DuplicateModel { at }), "{second}");
    }
    for body in [
        r#"{"stream":true,"stream":true}"#,
        r#"{"stream":1,"x":[],"\u0053tream":null}"#,
    ] {
        assert!(
            matches!(scan(body), Err(EnvelopeError::DuplicateStream { .. })),
            "{body}"
        );
    }
    assert_eq!(
        scan(r#"{"store":true,"store":false,"x":1,"x":2}"#).map(|it| it.stored),
        Ok(true)
    );
}

// [ENV-3]
#[test]
fn a_key_in_the_wrong_case_is_not_the_model() {
    assert_eq!(scan(r#"{"Model":"a","STREAM":true}"#), Ok(Envelope::default()));
}

// [ENV-4]
#[test]
fn a_model_is_a_string_or_null() {
    assert_eq!(scan(r#"{"model":null}"#), Ok(Envelope::default()));
    for value in ["1", "-1", "true", "false", "[]", "{}"] {
        let body = format!(r#"{{"model":{value}}}"#);
        assert_eq!(
            scan(body),
            Err(EnvelopeError::ModelNotString { at: 9 }),
            "{value}"
        );
    }
    assert_eq!(scan(r#"{"model":nul}"#), Err(EnvelopeError::NotJson { at: 12 }));
}

// [ENV-5]
#[test]
fn names_and_nesting_have_limits() {
    let named = |length| format!(r#"{{"model":"{}"}}"#, "m".repeat(length));
    assert_eq!(
        scan(named(MODEL_BYTES)).map(|it| it.model.map(|name| name.len())),
        Ok(Some(MODEL_BYTES))
    );
    assert_eq!(
        scan(named(MODEL_BYTES + 1)),
        Err(EnvelopeError::ModelTooLong { at: 9 })
    );
    let key = format!(r#"{{"{}":"x","model":"m"}}"#, "model".repeat(MODEL_BYTES));
    assert_eq!(scan(&key).map(|it| it.model), Ok(Some("m".to_owned())));

    let depth = usize::try_from(DEPTH).unwrap();
    let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(scan(nested(depth - 1)), Ok(Envelope::default()));
    assert_eq!(scan(nested(depth)), Err(EnvelopeError::TooDeep { at: 4 + depth }));
}

// [ENV-4]
#[test]
fn what_is_not_an_object_is_refused() {
    for body in ["[]", "\"x\"", "1", "-1", "true", "false", "null", " [1]"] {
        assert_eq!(scan(body), Err(EnvelopeError::NotObject), "{body}");
    }
}

// [ENV-4]
#[test]
fn what_is_not_json_is_refused_where_it_goes_wrong() {
    for (body, at) in [
        ("", 0),
        ("  ", 2),
        ("{", 1),
        ("x", 0),
        ("\u{feff}{}", 0),
        ("{}x", 2),
        ("{}{}", 2),
        ("{,}", 1),
        ("{a:1}", 1),
        ("{'a':1}", 1),
        (r#"{"a"}"#, 4),
        (r#"{"a":}"#, 5),
        (r#"{"a" 1}"#, 5),
        (r#"{"a":1,}"#, 7),
        (r#"{"a":1 "b":2}"#, 7),
        (r#"{"a":[1,]}"#, 8),
        (r#"{"a":[1}}"#, 7),
        (r#"{"a":1]"#, 6),
        (r#"{"a":tru}"#, 8),
        (r#"{"a":truE}"#, 8),
        (r#"{"a":nan}"#, 6),
        (r#"{"a":01}"#, 6),
        (r#"{"a":-}"#, 6),
        (r#"{"a":--1}"#, 6),
        (r#"{"a":+1}"#, 5),
        (r#"{"a":.5}"#, 5),
        (r#"{"a":1.}"#, 7),
        (r#"{"a":1e}"#, 7),
        (r#"{"a":1e+}"#, 8),
        (r#"{"a":1e5.0}"#, 8),
        (r#"{"a":0x1}"#, 6),
        (r#"{"a":"\x"}"#, 7),
        (r#"{"a":"\u12g4"}"#, 10),
        ("{\"a\":\"\n\"}", 6),
        ("{\"a\":\"\0\"}", 6),
        (r#"{"a":"x}"#, 8),
        (r#"{"a":1}/**/"#, 7),
    ] {
        assert_eq!(scan(body), Err(EnvelopeError::NotJson { at }), "{body}");
        let bytewise = scan_in(body.as_bytes().chunks(1));
        assert_eq!(
            bytewise,
            Err(EnvelopeError::NotJson { at }),
            "{body} byte by byte"
        );
    }
}

// [ENV-4]
#[test]
fn what_is_not_utf_8_is_refused() {
    for wrong in [
        &b"\xff"[..],
        b"\xc3(",
        b"\xe2\x82",
        b"\xf0\x9f\x98",
        b"\xed\xa0\x80",
        b"\xc0\xaf",
    ] {
        let body = [b"{\"model\":\"", wrong, b"\"}"].concat();
        for size in [1, 2, 3, body.len()] {
            let scanned = scan_in(body.chunks(size));
            assert!(
                matches!(scanned, Err(EnvelopeError::NotJson { at: 10..=13 })),
                "{wrong:x?} {scanned:?}"
            );
        }
    }
}

// [ENV-6]
#[test]
fn a_rewrite_changes_the_model_and_no_other_byte() {
    let body = Bytes::from_static(br#"{ "messages" : [] ,"model": "old\n" , "x":1.0e5}"#);
    let envelope = scan(&body).unwrap();
    let [before, name, after] = rewrite(&body, envelope.model_span, "new \"name\"/é");
    assert_eq!(before, &br#"{ "messages" : [] ,"model": "#[..]);
    assert_eq!(name, "\"new \\\"name\\\"/é\"".as_bytes());
    assert_eq!(after, &br#" , "x":1.0e5}"#[..]);
    let range = body.as_ptr_range();
    assert!(
        range.contains(&before.as_ptr()) && range.contains(&after.as_ptr()),
        "views, not copies"
    );
}

#[test]
fn a_refusal_says_what_is_wrong_and_where() {
    for (error, text) in [
        (
            EnvelopeError::DuplicateModel { at: 7 },
            "`model` is given a second time at byte 7",
        ),
        (
            EnvelopeError::DuplicateStream { at: 7 },
            "`stream` is given a second time at byte 7",
        ),
        (
            EnvelopeError::ModelNotString { at: 7 },
            "`model` is not a string at byte 7",
        ),
        (
            EnvelopeError::ModelTooLong { at: 7 },
            "`model` at byte 7 is longer than 4096 bytes",
        ),
        (
            EnvelopeError::NotJson { at: 7 },
            "the body is not valid JSON at byte 7",
        ),
        (EnvelopeError::NotObject, "the body is not a JSON object"),
        (
            EnvelopeError::TooDeep { at: 7 },
            "the body is nested deeper than 128 levels at byte 7",
        ),
    ] {
        assert_eq!(error.to_string(), text);
    }
}
