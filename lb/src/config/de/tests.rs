use serde::Deserialize;

use super::*;
use crate::config::{Span, span::Spanned, yaml};

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Shape {
    count: Option<u64>,
    ratio: Option<f64>,
    flag: Option<bool>,
    text: Option<Spanned<String>>,
    word: Option<Word>,
    list: Option<Vec<u64>>,
    inner: Option<Box<Inner>>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Inner {
    needed: u64,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Word {
    One,
    Two,
}

fn shape(text: &str) -> Result<Shape, (String, String)> {
    let root = yaml::read(text).unwrap();
    read::<Shape>(&root).map_err(|fault| (fault.path().to_string(), format!("{:?}", fault.kind)))
}

#[test]
fn each_type_is_read_from_its_spelling() {
    let read =
        shape("count: 5\nratio: 1e-2\nflag: true\ntext: 007\nword: two\nlist: [1, 2]\ninner: {needed: 1}\n");
    let read = read.unwrap();
    assert_eq!(
        (read.count, read.ratio, read.flag),
        (Some(5), Some(0.01), Some(true))
    );
    assert_eq!(
        read.text,
        Some(Spanned {
            value: "007".to_owned(),
            span: Span { start: 38, end: 41 }
        })
    );
    assert_eq!((read.word, read.list), (Some(Word::Two), Some(vec![1, 2])));
    assert_eq!(shape("count: ~\nratio:\nflag: null\n").unwrap().count, None);
}

#[test]
fn a_value_of_the_wrong_type_is_told_with_its_path() {
    for (text, path, must, is) in [
        ("count: -1\n", "count", "a whole number", "a number"),
        ("count: 1.5\n", "count", "a whole number", "a number"),
        ("count: \"5\"\n", "count", "a whole number", "text in quotes"),
        ("count: 5s\n", "count", "a whole number", "text"),
        ("count: 0x10\n", "count", "a whole number", "text"),
        ("ratio: .nan\n", "ratio", "a number", "text"),
        ("ratio: inf\n", "ratio", "a number", "a number"),
        ("flag: yes\n", "flag", "true or false", "text"),
        ("flag: 1\n", "flag", "true or false", "a number"),
        ("text: [a]\n", "text", "text", "a list"),
        ("list: 5\n", "list", "a list", "a number"),
        ("list: [1, x]\n", "list[1]", "a whole number", "text"),
        ("inner: [1]\n", "inner", "a block of keys", "a list"),
        (
            "inner: {needed: ~}\n",
            "inner.needed",
            "a whole number",
            "nothing",
        ),
    ] {
        let expected = format!("Type {{ must: {must:?}, is: {is:?} }}");
        assert_eq!(shape(text), Err((path.to_owned(), expected)), "{text}");
    }
}

#[test]
fn unknown_and_missing_keys_are_told_with_their_block() {
    let (path, kind) = shape("inner: {}\n").unwrap_err();
    assert_eq!((path.as_str(), kind.as_str()), ("inner", "Missing(\"needed\")"));
    let (path, kind) = shape("colour: 1\n").unwrap_err();
    assert!(path.is_empty() && kind.starts_with("UnknownKey"), "{path} {kind}");
    let (path, kind) = shape("word: three\n").unwrap_err();
    assert_eq!(
        (path.as_str(), kind.as_str()),
        ("word", "UnknownWord { known: [\"one\", \"two\"] }")
    );
}
