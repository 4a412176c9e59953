//! Configuration files and what lb says about them.
//!
//! Each `golden/config/NAME.yaml` has what is said of it beside it in `NAME.txt`; `UPDATE=1` accepts what is said now.

#![expect(
    clippy::tests_outside_test_module,
    clippy::unwrap_used,
    reason = "the whole file is a test module"
)]

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
const CODES: [&str; 60] = [
    "E001", "E002", "E003", "W004", "E100", "E101", "E102", "E103", "E104", "E105", "E106", "W107", "W108",
    "E109", "E110", "E111", "E200", "E201", "E202", "E203", "E204", "E205", "E206", "E210", "E211", "E212",
    "E213", "W214", "W215", "E216", "E220", "E221", "E222", "E223", "W224", "W225", "E230", "E231", "E240",
    "E250", "E251", "E252", "E253", "E254", "E255", "E256", "E300", "E301", "E302", "E303", "E304", "E305",
    "W306", "W307", "E308", "W309", "E310", "E311", "E900", "W900",
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

// [CFG-6]
#[test]
fn no_line_that_is_shown_with_a_fault_holds_a_quoted_secret_a_header_or_a_query() {
    let file = |provider: &str, route: &str| {
        format!(
            "version: 1\nlisteners: [{{ name: a, address: \"127.0.0.1:1\" }}]\nproviders:\n  gpu: {{ {provider} }}\n\
             models:\n  m: {{ targets: [{{ provider: gpu }}] }}\nroutes: [{{ match: {{}}, to: models, {route} }}]\n"
        )
    };
    let url = "endpoints: [{ url: \"http://gpu/v1?key=SECRET\", weight: 1001 }, { url: \"http://gpu/v1?key=SECRET\" }]";
    for (provider, route) in [
        (
            "endpoints: [{ url: http://gpu, weight: 1001 }], api_key: \"KEY #SECRET\"",
            "",
        ),
        (
            "endpoints: [{ url: http://gpu, weight: 1001 }], api_key: 'KEY #SECRET', nonsense: 1",
            "",
        ),
        (
            "endpoints: [{ url: http://gpu, weight: 1001 }], headers: { x-a: \"KEY #SECRET\" }",
            "",
        ),
        (
            "endpoints: [{ url: http://gpu, weight: 1001 }], headers: \"KEY #SECRET\"",
            "",
        ),
        (
            "endpoints: [{ url: http://gpu, weight: 1001 }], api_key: [\"KEY #SECRET\"]",
            "",
        ),
        (
            "endpoints: [{ url: http://gpu, weight: 1001 }], api_key: \"KEY #SECRET\", x: [",
            "",
        ),
        (url, ""),
        (
            "endpoints: [{ url: http://gpu }]",
            "request_headers: { set: { x-a: \"KEY #SECRET\", host: SECRET } }",
        ),
        (
            "endpoints: [{ url: http://gpu }]",
            "response_headers: { set: { x-a: SECRET }, remov: [] }",
        ),
        (
            "endpoints: [{ url: http://gpu }]",
            "match: { headers: { x-a: SECRET, \"x y\": a } }",
        ),
    ] {
        let text = file(provider, route);
        let (report, _) = said("secret", &text);
        assert!(!report.diagnostics().is_empty(), "{text}");
        for output in [report.render(false), report.render(true), report.to_json()] {
            assert!(!output.contains("SECRET"), "{text}\n{output}");
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
    let first = &json["diagnostics"][0];
    assert_eq!(first["code"], "E101");
    assert_eq!((&first["line"], &first["column"]), (&7.into(), &30.into()));
    assert_eq!(first["key"], "models.m.targets[0].provider");
    assert_eq!(first["help"][0], "did you mean `gpu`?");
}

fn read_config(name: &str) -> (String, Checked) {
    let text = fs::read_to_string(configs().join(name)).unwrap();
    let environment = |name: &str| (name == "HOSTED_API_KEY").then(|| SECRET.to_owned());
    match config::parse(&text, name, &environment) {
        Ok(checked) => (text, checked),
        Err(Failure::Invalid(report)) => panic!("{}", report.render(false)),
        Err(failure @ Failure::Unreadable { .. }) => panic!("{failure}"),
    }
}

// [CFG-9]
#[test]
fn the_reference_file_shows_every_default() {
    let (text, checked) = read_config("lb.yaml");
    let lines: Vec<&str> = text.lines().collect();
    for setting in &checked.settings {
        let Origin::Line(line) = setting.origin else {
            continue;
        };
        let example = lines[line - 1].contains("# example");
        if let Some(default) = setting.default.as_ref().filter(|_| !example) {
            assert_eq!(&setting.value, default, "line {line}: {}", setting.key);
        }
    }
}

// [CFG-9]
#[test]
fn the_reference_file_has_every_knob() {
    let (_, checked) = read_config("lb.yaml");
    // The first of each kind spells everything out; the others show what may be left out.
    let shortened = [
        "providers.vendor",
        "models.chat-small",
        "models.embed",
        "presets.assistant-fast",
    ];
    let second = ["endpoints[1]", "targets[1]", "targets[2]"];
    for setting in &checked.settings {
        let brief = shortened.iter().any(|key| setting.key.starts_with(key))
            || second.iter().any(|key| setting.key.contains(key));
        assert!(
            brief || setting.origin != Origin::Default,
            "lb.yaml lacks {}",
            setting.key
        );
    }
}

#[test]
fn the_reference_file_is_warned_of_only_for_what_comes_later() {
    let (_, checked) = read_config("lb.yaml");
    for warning in checked.warnings.diagnostics() {
        assert_eq!(warning.code, "W900", "{}: {}", warning.key, warning.message);
    }
}

#[test]
fn the_quickstart_is_accepted_without_a_warning() {
    let (_, checked) = read_config("quickstart.yaml");
    assert_eq!(checked.warnings.render(false), "");
    assert_eq!(checked.config.models[0].targets.len(), 2);
}

// [CFG-6]
#[test]
fn an_explanation_shows_variables_by_name_and_secrets_not_at_all() {
    let text = "version: 1\nlisteners:\n  - name: a\n    address: 127.0.0.1:${PORT}\nproviders:\n  gpu:\n    endpoints: \
                [{ url: \"http://gpu/v1?key=literal-secret\" }]\n    api_key: ${SECRET}\n    headers: { x-team: literal-secret }\nmodels:\n  m: { \
                targets: [{ provider: gpu }] }\n";
    let checked = parse(text);
    let explained: Vec<String> = checked.settings.iter().map(ToString::to_string).collect();
    let line = |key: &str| {
        explained
            .iter()
            .find(|line| line.starts_with(&format!("{key}: ")))
            .unwrap()
            .as_str()
    };
    assert_eq!(
        line("listeners[0].address"),
        "listeners[0].address: 127.0.0.1:${PORT}  # line 4"
    );
    assert_eq!(
        line("providers.gpu.api_key"),
        "providers.gpu.api_key: set  # line 8"
    );
    assert_eq!(
        line("providers.gpu.headers.x-team"),
        "providers.gpu.headers.x-team: set  # line 9"
    );
    assert_eq!(
        line("providers.gpu.endpoints[0].url"),
        "providers.gpu.endpoints[0].url: http://gpu/v1?key=**************  # line 7"
    );
    assert_eq!(line("server.workers"), "server.workers: 0  # default");
    assert_eq!(
        line("models.m.fallback.first_token_timeout_ms"),
        "models.m.fallback.first_token_timeout_ms: 20000  # from failover.first_token_timeout_ms"
    );
    assert_eq!(checked.config.listeners[0].place.to_string(), "127.0.0.1:8081");
    let all = explained.join("\n") + &format!("{:?}", checked.config);
    assert!(!all.contains(SECRET) && !all.contains("literal-secret"), "{all}");
}

// [CFG-9]
#[test]
fn the_reference_file_names_every_key_of_the_schema() {
    fn keys(schema: &serde_json::Value, into: &mut BTreeSet<String>) {
        match schema {
            serde_json::Value::Object(members) => {
                if let Some(properties) = members
                    .get("properties")
                    .and_then(|properties| properties.as_object())
                {
                    into.extend(properties.keys().cloned());
                }
                members.values().for_each(|member| keys(member, into));
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| keys(item, into)),
            _ => {}
        }
    }
    let mut known = BTreeSet::new();
    keys(&serde_json::from_str(&config::schema()).unwrap(), &mut known);
    assert!(known.len() > 150, "{known:?}");
    let text = fs::read_to_string(configs().join("lb.yaml")).unwrap();
    let words: BTreeSet<&str> = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))
        .collect();
    let missing: Vec<_> = known.iter().filter(|key| !words.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
