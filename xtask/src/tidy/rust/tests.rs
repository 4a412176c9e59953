use super::*;

fn found(code: &str) -> Vec<String> {
    paths(&blank(code))
        .iter()
        .map(|path| path.parts.join("::"))
        .collect()
}

#[test]
fn comments_and_literals_name_nothing() {
    let code = r##"
// crate::a::b
/* crate::c /* nested::d */ still::e */
let text = "crate::f::g \" h::i";
let raw = r#"j::k " l::m"#;
let byte = br"n::o";
let quote = '"'; let c = '\''; let colon = ':';
fn lifetime<'a>(x: &'a p::Q) {}
"##;
    assert_eq!(found(code), ["p::Q"]);
}

#[test]
fn lines_stay_where_they_were() {
    let paths_found = blank("/* one\ntwo */\n\"three\nfour\"; a::b\n");
    assert_eq!(paths(&paths_found)[0].line, 4);
}

#[test]
fn a_use_tree_is_followed_into_its_branches() {
    let code =
        "use crate::{policy::aimd::{self, Share}, wire as w, net::*};\nuse ::bytes::Bytes;\nuse serde;";
    assert_eq!(
        found(code),
        [
            "crate::policy::aimd::self",
            "crate::policy::aimd::Share",
            "crate::wire",
            "crate::net",
            "bytes::Bytes",
            "serde"
        ]
    );
}

#[test]
fn paths_in_expressions_types_and_attributes_are_seen() {
    let code = "#[derive(thiserror::Error)] fn f(x: Vec<http::Uri>) { tokio::select! { _ = crate::net::dial::<a::B>() => {} } }";
    assert_eq!(
        found(code),
        [
            "thiserror::Error",
            "http::Uri",
            "tokio::select",
            "crate::net::dial",
            "a::B"
        ]
    );
}

#[test]
fn a_path_knows_the_inline_modules_around_it() {
    let code = "mod outer { mod tests { use super::x; } } fn f() { super::y() }";
    let code = blank(code);
    let paths = paths(&code);
    assert_eq!(paths[0].inside, ["outer", "tests"]);
    assert_eq!(paths[1].parts, ["super", "y"]);
    assert!(paths[1].inside.is_empty());
}

#[test]
fn broken_code_ends() {
    for code in [
        "use crate::{",
        "use a::{{",
        "mod x {",
        "/* never closed",
        "\"open",
        "r#\"open",
        "'",
        "use crate::{+}",
    ] {
        let _ = found(code);
    }
}
