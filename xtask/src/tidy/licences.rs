//! What we depend on: licences, where it comes from, and how much of it.
//!
//! deny.toml says the same to cargo-deny; this needs no tool beyond cargo.

use std::path::Path;

use serde_json::Value;

use super::Problem;
use crate::{
    command::{self, Failure, Result},
    ebpf,
};

/// Licences that ask for nothing but notices. Kept equal to deny.toml by a test.
const ALLOWED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// All packages of a lock file, tests and other platforms included. A new one must be worth an old one.
const MOST: usize = 250;

pub(super) fn check() -> Result<Vec<Problem>> {
    let mut problems = check_workspace("Cargo.toml")?;
    if ebpf::present() {
        problems.extend(check_workspace(ebpf::MANIFEST)?);
    }
    Ok(problems)
}

fn check_workspace(manifest: &str) -> Result<Vec<Problem>> {
    let mut metadata = command::cargo();
    metadata.args([
        "metadata",
        "--format-version=1",
        "--locked",
        "--all-features",
        "--manifest-path",
        manifest,
    ]);
    let answer = command::capture(&mut metadata)?;
    let answer =
        serde_json::from_str(&answer).map_err(|error| Failure::new(format!("cargo metadata: {error}")))?;
    Ok(judge(
        &answer,
        &Path::new(manifest).with_file_name("Cargo.lock").to_string_lossy(),
    ))
}

/// The problems of what `cargo metadata` says, reported against the lock file.
fn judge(metadata: &Value, lock: &str) -> Vec<Problem> {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let registry = packages.iter().find_map(|package| package["source"].as_str());
    let mut problems = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or("?");
        let licence = package["license"].as_str().unwrap_or("none");
        if !allows(licence) {
            problems.push(Problem::whole(
                lock,
                format!("{name}: the licence `{licence}` is not allowed"),
            ));
        }
        let source = package["source"].as_str();
        if source.is_some_and(|source| !source.starts_with("registry+") || Some(source) != registry) {
            problems.push(Problem::whole(
                lock,
                format!("{name}: comes from outside the one registry"),
            ));
        }
    }
    if packages.len() > MOST {
        problems.push(Problem::whole(
            lock,
            format!("{} packages; at most {MOST}", packages.len()),
        ));
    }
    problems
}

/// Whether a licence expression can be met by allowed licences alone.
fn allows(expression: &str) -> bool {
    // Before SPDX expressions, a slash meant a choice.
    let words = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<_> = words.split_whitespace().collect();
    let mut rest = &words[..];
    let allowed = any(&mut rest);
    allowed && rest.is_empty()
}

fn any(words: &mut &[&str]) -> bool {
    let mut allowed = all(words);
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        // Not short-circuited: the rest has to be read in any case.
        allowed |= all(words);
    }
    allowed
}

fn all(words: &mut &[&str]) -> bool {
    let mut allowed = one(words);
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        allowed &= one(words);
    }
    allowed
}

fn one(words: &mut &[&str]) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let allowed = any(words);
            let closed = words.first() == Some(&")");
            *words = words.get(1..).unwrap_or_default();
            allowed && closed
        }
        [licence, "WITH", exception, rest @ ..] => {
            *words = rest;
            ALLOWED.contains(&format!("{licence} WITH {exception}").as_str())
        }
        [licence, rest @ ..] => {
            *words = rest;
            ALLOWED.contains(licence)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_choice_needs_one_allowed_licence_and_a_sum_needs_all() {
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "MIT/Apache-2.0",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
            "ISC AND (Apache-2.0 OR ISC)",
        ] {
            assert!(allows(good), "{good}");
        }
        for bad in [
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(GPL-3.0 OR MPL-2.0)",
            "MIT WITH Foo-exception",
            "",
            "none",
            "MIT MIT",
            "(MIT",
        ] {
            assert!(!allows(bad), "{bad}");
        }
    }

    #[test]
    fn a_package_needs_an_allowed_licence_and_the_one_registry() {
        let package = |name: &str, licence: Option<&str>, source: Option<&str>| json!({"name": name, "license": licence, "source": source});
        let packages = [
            package("ours", Some("MIT OR Apache-2.0"), None),
            package("good", Some("MIT"), Some("registry+one")),
            package("nameless", None, Some("registry+one")),
            package("elsewhere", Some("MIT"), Some("registry+two")),
            package("branch", Some("MIT"), Some("git+three")),
        ];
        let problems = judge(&json!({"packages": packages}), "Cargo.lock");
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            problems,
            [
                "Cargo.lock: nameless: the licence `none` is not allowed",
                "Cargo.lock: elsewhere: comes from outside the one registry",
                "Cargo.lock: branch: comes from outside the one registry"
            ]
        );
    }

    #[test]
    fn cargo_deny_is_told_the_same_licences() {
        let text = fs::read_to_string(command::root().join("deny.toml")).unwrap();
        let list = text.split_once("allow = [").unwrap().1.split_once(']').unwrap().0;
        let listed: Vec<_> = list.split('"').skip(1).step_by(2).collect();
        assert_eq!(listed, ALLOWED);
    }
}
