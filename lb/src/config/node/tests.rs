use super::*;
use crate::config::yaml;

fn node(text: &str) -> Node {
    yaml::read(text).unwrap()
}

#[test]
fn a_path_leads_to_the_place() {
    let text = "providers:\n  gpu:\n    endpoints:\n      - url: x\n      - {url: y}\nmodels: {\"a.b\": 1}\n";
    let root = node(text);
    let path = |word: &str| {
        let start = text.rfind(word).unwrap();
        root.path_of(Span {
            start,
            end: start + word.len(),
        })
    };
    assert_eq!(path("y"), "providers.gpu.endpoints[1].url");
    assert_eq!(path("endpoints"), "providers.gpu.endpoints");
    assert_eq!(path("1"), "models.\"a.b\"");
}

#[test]
fn meaning_ignores_spelling_and_order() {
    for (a, b) in [
        ("1", "1.0"),
        ("~", "null"),
        ("", "null"),
        ("[1, 2]", "- 1\n- 2"),
        ("{a: 1, b: x}", "b: \"x\"\na: 1"),
    ] {
        assert!(node(a).means_the_same(&node(b)), "{a} and {b}");
    }
    for (a, b) in [
        ("1", "2"),
        ("null", "\"null\""),
        ("[1, 2]", "[2, 1]"),
        ("{a: 1}", "{a: 1, b: 2}"),
        ("a", "[a]"),
    ] {
        assert!(!node(a).means_the_same(&node(b)), "{a} and {b}");
    }
}
