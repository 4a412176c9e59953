use super::*;
use crate::config::yaml;

fn environment(name: &str) -> Option<String> {
    match name {
        "KEY" => Some("sk-1".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn expanded(value: &str) -> Result<(String, bool), Vec<Diagnostic>> {
    let text = format!("a: {value}\n");
    let mut root = yaml::read(&text).unwrap();
    let problems = expand(&mut root, &text, &environment);
    let Form::Scalar(scalar) = &root.entries()[0].1.form else {
        panic!("not a scalar: {value}")
    };
    if problems.is_empty() {
        Ok((scalar.text.clone(), scalar.from_environment))
    } else {
        Err(problems)
    }
}

// [CFG-5]
#[test]
fn references_are_replaced_anywhere_in_a_plain_value() {
    for (value, expected) in [
        ("${KEY}", "sk-1"),
        ("a/${KEY}/b/${KEY}", "a/sk-1/b/sk-1"),
        ("${EMPTY}", ""),
        ("${KEY:-x}", "sk-1"),
        ("${NONE:-x y}", "x y"),
        ("${NONE:-}", ""),
        ("${EMPTY:-x}", "x"),
        ("${KEY:?say what}", "sk-1"),
    ] {
        assert_eq!(expanded(value), Ok((expected.to_owned(), true)), "{value}");
    }
    for value in ["$KEY", "a$b", "5", "'${KEY}'"] {
        assert_eq!(expanded(value).unwrap().0, value.trim_matches('\''));
        assert!(!expanded(value).unwrap().1);
    }
}

#[test]
fn what_cannot_be_replaced_is_reported_at_its_place() {
    let problem = |value: &str| expanded(value).unwrap_err().remove(0);
    let missing = problem("x${NONE}");
    assert_eq!(missing.message, "the environment variable `NONE` is not set");
    assert_eq!(missing.primary.span, Span { start: 4, end: 11 });
    assert_eq!(problem("${NONE:?export it}").primary.text, "export it");
    assert_eq!(problem("${EMPTY:?export it}").primary.text, "export it");
    assert_eq!(problem("${KEY").message, "`${` is not closed");
    for value in ["${1}", "${}", "${KEY:+x}", "${KEY-x}", "${a b}"] {
        assert!(
            problem(value)
                .message
                .ends_with("is not a reference to a variable"),
            "{value}"
        );
    }
}

#[test]
fn double_quotes_around_a_reference_are_warned_of() {
    assert_eq!(expanded("\"${KEY}\"").unwrap_err()[0].code, "W004");
    assert!(expanded("\"$ {KEY}\"").is_ok());
}

#[test]
fn every_missing_variable_is_reported() {
    let text = "a: ${A}\nb: [1, {c: x}]\nd:\n  - ${B}\n";
    let mut root = yaml::read(text).unwrap();
    assert_eq!(expand(&mut root, text, &environment).len(), 2);
}
