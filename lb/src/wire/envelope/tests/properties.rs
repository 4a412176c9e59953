//! Random bodies, whole and broken, against `serde_json`.

use std::fmt;

use proptest::prelude::*;
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::*;
use crate::wire::tests::seeded;

/// What `serde_json` and the rules make of a body; `None` if it is not JSON. Offsets are not compared.
fn reference(body: &[u8]) -> Option<Result<Envelope, EnvelopeError>> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let members = reader.deserialize_map(Members).ok()?;
    reader.end().ok()?;
    let mut envelope = Envelope::default();
    let (mut models, mut streams) = (0, 0);
    for (name, value) in members {
        models += u32::from(name.eq_ignore_ascii_case("model"));
        streams += u32::from(name.eq_ignore_ascii_case("stream"));
        if models > 1 {
            return Some(Err(EnvelopeError::DuplicateModel { at: 0 }));
        }
        if streams > 1 {
            return Some(Err(EnvelopeError::DuplicateStream { at: 0 }));
        }
        match name.as_str() {
            "model" if value.get() != "null" => {
                if !value.get().starts_with('"') {
                    return Some(Err(EnvelopeError::ModelNotString { at: 0 }));
                }
                let start = value.get().as_ptr().addr() - body.as_ptr().addr();
                envelope.model_span = start..start + value.get().len();
                // Half a surrogate pair is no text.
                envelope.model = Some(serde_json::from_str(value.get()).ok()?);
            }
            "stream" => envelope.stream = value.get() == "true",
            "store" | "background" => envelope.stored |= value.get() == "true",
            _ => {}
        }
    }
    Some(Ok(envelope))
}

/// The members in order, with duplicates.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "null", "true", "false", "0", "-0.0", "12e3", "1.5E-7", "[]", "{}", " [ ] "
        ])
        .prop_map(str::to_owned),
        string(),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(" ,"))),
            prop::collection::vec((key(), inner), 0..4).prop_map(|members| object(&members)),
        ]
    })
}

fn string() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "model",
        "é",
        "😀",
        "\\n",
        "\\\"",
        "\\\\",
        "\\/",
        "\\u0041",
        "\\u00e9",
        "\\ud83d\\ude00",
        "\\ud83d",
        "{",
        "]",
        ",",
        "twenty bytes of text",
        " ",
        "\u{7f}",
    ]);
    prop::collection::vec(piece, 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn key() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "\"model\"",
        "\"\\u006dodel\"",
        "\"Model\"",
        "\"stream\"",
        "\"store\"",
        "\"background\"",
        "\"messages\"",
        "\"models\"",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => string()]
}

fn object(members: &[(String, String)]) -> String {
    let members: Vec<_> = members
        .iter()
        .map(|(key, value)| format!("{key} : {value}"))
        .collect();
    format!("{{\n{}\n}}", members.join(","))
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec((key(), value()), 0..6).prop_map(|members| object(&members).into_bytes())
}

/// A body with one byte taken out, put in or changed.
fn broken() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        prop::sample::select(b"{}[]\",:\\ntu0-.e \x00\xff\xc3".to_vec()),
        any::<u8>()
    ];
    (body(), any::<prop::sample::Index>(), byte, 0..3).prop_map(|(mut body, at, byte, how)| {
        let at = at.index(body.len());
        match how {
            0 => _ = body.remove(at),
            1 => body.insert(at, byte),
            _ => body[at] = byte,
        }
        body
    })
}

fn in_chunks(body: &[u8], places: &[prop::sample::Index]) -> Result<Envelope, EnvelopeError> {
    let mut places: Vec<_> = places.iter().map(|place| place.index(body.len() + 1)).collect();
    places.extend([0, body.len()]);
    places.sort_unstable();
    scan_in(places.windows(2).map(|pair| &body[pair[0]..pair[1]]))
}

proptest! {
    #![proptest_config(seeded(4000))]

    // [ENV-1] [ENV-2] [ENV-3] [ENV-4]
    #[test]
    fn a_body_says_what_serde_json_says(
        body in prop_oneof![body(), broken()],
        places in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let scanned = scan(&body);
        prop_assert_eq!(in_chunks(&body, &places), scanned.clone(), "however it is cut");
        match reference(&body) {
            None => prop_assert!(scanned.is_err(), "serde_json refuses it"),
            Some(Ok(envelope)) => prop_assert_eq!(scanned, Ok(envelope)),
            Some(Err(error)) => {
                let same = scanned.is_err_and(|it| std::mem::discriminant(&it) == std::mem::discriminant(&error));
                prop_assert!(same, "{:?}", error);
            }
        }
    }

    // [ENV-6]
    #[test]
    fn a_rewritten_body_names_the_new_model_and_is_otherwise_the_same(body in body(), name in ".{0,8}") {
        let Ok(envelope) = scan(&body) else { return Ok(()) };
        let Some(_) = envelope.model else { return Ok(()) };
        let body = Bytes::from(body);
        let pieces = rewrite(&body, envelope.model_span.clone(), &name);
        prop_assert_eq!(&pieces[0], &body[..envelope.model_span.start]);
        prop_assert_eq!(&pieces[2], &body[envelope.model_span.end..]);
        let rewritten = scan_in(pieces.iter().map(|piece| &**piece)).unwrap();
        prop_assert_eq!(rewritten.model, Some(name));
        prop_assert_eq!((rewritten.stream, rewritten.stored), (envelope.stream, envelope.stored));
    }

    #[test]
    fn arbitrary_bytes_never_panic(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..32), 0..6)) {
        let mut scanner = Scanner::default();
        // Even a caller who does not mind an error gets no more than another.
        let refused = chunks.iter().filter(|chunk| scanner.feed(chunk).is_err()).count();
        prop_assert_eq!(refused > 0 || scanner.finish().is_err(), scan(chunks.concat()).is_err());
    }
}
