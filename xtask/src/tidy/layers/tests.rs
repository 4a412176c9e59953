use super::*;

const CARGO: (&str, &str) = (
    MANIFEST,
    "[dependencies]\ntokio.workspace = true\nserde_json = \"1\"\n[dev-dependencies]\nproptest.workspace = true\n",
);

fn problems(path: &str, code: &str) -> Vec<String> {
    check(&Tree::of(&[CARGO, (path, code)]))
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn an_import_upwards_is_a_problem_with_its_line() {
    let code = "use std::fmt;\nuse crate::{policy::aimd, config::Config};\n";
    assert_eq!(
        problems("lb/src/metrics/share.rs", code),
        ["lb/src/metrics/share.rs:2: `metrics` may not import `config`"]
    );
}

#[test]
fn a_path_in_an_expression_counts_as_an_import() {
    let code = "fn f() { crate::proxy::serve() }";
    assert_eq!(
        problems("lb/src/admin/mod.rs", code),
        ["lb/src/admin/mod.rs:1: `admin` may not import `proxy`"]
    );
}

#[test]
fn supers_are_counted_from_where_they_stand() {
    assert!(problems("lb/src/wire/sse/tests.rs", "use super::super::openai;").is_empty());
    let out = problems("lb/src/wire/sse/tests.rs", "use super::super::super::policy;");
    assert_eq!(
        out,
        ["lb/src/wire/sse/tests.rs:1: `wire` may not import `policy`"]
    );
    assert!(problems("lb/src/wire/sse.rs", "mod tests { use super::super::openai; }").is_empty());
}

#[test]
fn the_root_of_the_crate_may_not_be_imported() {
    for code in ["use crate::*;", "use crate::{self as lb};"] {
        assert_eq!(problems("lb/src/net/mod.rs", code).len(), 1, "{code}");
    }
    assert_eq!(
        problems("lb/src/net/mod.rs", "use crate::run;"),
        ["lb/src/net/mod.rs:1: `net` may not import `run`"]
    );
}

#[test]
fn a_pure_layer_may_not_name_a_crate_outside_its_tests() {
    assert_eq!(
        problems("lb/src/policy/aimd.rs", "fn f() { tokio::spawn(x) }"),
        ["lb/src/policy/aimd.rs:1: `policy` may not name the crate `tokio`"]
    );
    assert!(problems("lb/src/wire/openai.rs", "use serde_json::Value;").is_empty());
    assert!(problems("lb/src/policy/aimd/tests.rs", "use proptest::prelude::*;").is_empty());
    assert!(problems("lb/src/policy/aimd.rs", "mod tests { use proptest::prelude::*; }").is_empty());
}

#[test]
fn some_crates_belong_to_one_module() {
    let out = problems("lb/src/proxy/mod.rs", "use aya::Ebpf;");
    assert_eq!(
        out,
        ["lb/src/proxy/mod.rs:1: `proxy` may not name the crate `aya`"]
    );
    assert!(problems("lb/src/kernel/attach.rs", "use aya::Ebpf;").is_empty());
}

#[test]
fn a_local_module_is_not_mistaken_for_a_crate() {
    assert!(
        problems(
            "lb/src/policy/mod.rs",
            "use self::tokio::x; use super::policy::tokio::y;"
        )
        .is_empty()
    );
}

#[test]
fn what_ties_the_parts_together_may_import_all() {
    for path in [
        "lb/src/lib.rs",
        "lb/src/main.rs",
        "lb/src/cli/run.rs",
        "lb/src/demo/mod.rs",
    ] {
        assert!(
            problems(path, "use crate::{admin, kernel, proxy}; use tokio::net;").is_empty(),
            "{path}"
        );
    }
}

#[test]
fn a_new_module_has_to_be_placed() {
    let out = problems("lb/src/shiny.rs", "");
    assert_eq!(
        out,
        ["lb/src/shiny.rs: `shiny` has no layer yet: place it in xtask/src/tidy/layers.rs"]
    );
}
