//! Configuration files and what lb says about them.
//!
//! Each `golden/config/NAME.yaml` has what is said of it beside it in `NAME.txt`; `UPDATE=1` accepts what is said now.

use std::{collections::BTreeSet, fs, path::PathBuf};

use lb::config::{self, Checked, Failure, Origin, Report};

/// What a test's environment holds; none of these values may ever be shown.
fn environment(name: &str) -> Option<String> {
    match name {
        "SECRET" => Some(SECRET.to_owned()),
        "PORT" => Some("8081".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

const SECRET: &str = "never-to-be-shown";

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/config")
}

fn configs() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../configs")
}

fn cases() -> Vec<(String, String)> {
    let mut cases: Vec<_> = fs::read_dir(golden())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    cases.sort();
    cases
}

fn said(name: &str, text: &str) -> (Report, u8) {
    match config::parse(text, &format!("{name}.yaml"), &environment) {
        Ok(checked) => (checked.warnings, 0),
        Err(Failure::Invalid(report)) => (report, 78),
        Err(failure @ Failure::Unreadable { .. }) => panic!("{failure}"),
    }
}

fn parse(text: &str) -> Checked {
    match config::parse(text, "lb.yaml", &environment) {
        Ok(checked) => checked,
        Err(Failure::Invalid(report)) => panic!("{}", report.render(false)),
        Err(failure @ Failure::Unreadable { .. }) => panic!("{failure}"),
    }
}

// [CFG-1] [CFG-2] [CFG-3] [CFG-7] [CFG-8]
#[test]
fn every_bad_file_is_answered_with_the_message_on_record() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut wrong = Vec::new();
    for (name, text) in cases() {
        let (report, code) = said(&name, &text);
        let said = format!("{}{}\nexit code {code}\n", report.render(false), report.summary());
        let path = golden().join(format!("{name}.txt"));
        if update {
            fs::write(path, said).unwrap();
        } else if fs::read_to_string(path).unwrap_or_default() != said {
            wrong.push(format!("=== {name}\n{said}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "run with UPDATE=1 if this is right:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn a_case_is_named_after_a_code_that_it_shows() {
    for (name, text) in cases() {
        let (report, _) = said(&name, &text);
        let codes: BTreeSet<_> = report
            .diagnostics()
            .iter()
            .map(|diagnostic| diagnostic.code)
            .collect();
        let wanted = name.split('-').next().unwrap();
        assert!(codes.contains(wanted), "{name} shows {codes:?}");
    }
}

#[test]
fn every_code_of_the_specification_is_shown_by_a_case() {
    let shown: BTreeSet<_> = cases()
        .iter()
        .flat_map(|(name, text)| said(name, text).0.diagnostics().to_vec())
        .map(|diagnostic| diagnostic.code)
        .collect();
    let missing: Vec<_> = CODES.iter().filter(|code| !shown.contains(**code)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let unknown: Vec<_> = shown.iter().filter(|code| !CODES.contains(*code)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// All codes but those of the environment, which depends on the machine (see `environment` below).
const CODES: [&str; 57] = [
    "E001", "E002", "E003", "W004", "E100", "E101", "E102", "E103", "E104", "E105", "E106", "W107", "W108",
    "E109", "E110", "E111", "E200", "E201", "E202", "E203", "E204", "E205", "E206", "E210", "E211", "E212",
    "E213", "W214", "W215", "E216", "E220", "E221", "E222", "E223", "E230", "E231", "E240", "E250", "E251",
    "E252", "E253", "E254", "E255", "E256", "E300", "E301", "E302", "E303", "E304", "E305", "W306", "W307",
    "E308", "W309", "E310", "E900", "W900",
];

// [CFG-6]
#[test]
fn no_message_in_any_form_holds_a_value_of_the_environment_or_a_secret() {
    for (name, text) in cases() {
        let (report, _) = said(&name, &text);
        for output in [report.render(false), report.render(true), report.to_json()] {
            for secret in [SECRET, "literal-secret"] {
                assert!(!output.contains(secret), "{name}:\n{output}");
            }
        }
    }
}

#[test]
fn a_report_as_json_names_file_line_column_key_and_mend() {
    let text = "version: 1\nlisteners: [{ name: a, address: \"127.0.0.1:1\" }]\nproviders:\n  gpu:\n    endpoints: \
                [{ url: http://gpu }]\nmodels:\n  m: { targets: [{ provider: gpo }] }\n";
    let (report, _) = said("x", text);
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!((&json["ok"], &json["file"]), (&false.into(), &"x.yaml".into()));
    let first = &json["diagnostics"][1];
    assert_eq!(first["code"], "E101");
    assert_eq!((&first["line"], &first["column"]), (&7.into(), &31.into()));
    assert_eq!(first["key"], "models.m.targets[0].provider");
    assert_eq!(first["help"][0], "did you mean `gpu`?");
}
