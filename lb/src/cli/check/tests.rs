use std::fs;

use super::*;

const GOOD: &str = "version: 1\nlisteners: [{ name: a, address: \"127.0.0.1:0\" }]\nproviders:\n  gpu: { endpoints: [{ \
                    url: \"http://127.0.0.1:9\" }], api_key_file: /no/such/file }\nmodels:\n  m: { targets: [{ \
                    provider: gpu }] }\n";

/// Runs `lb check` on `text` and gives the exit code, standard output and standard error.
fn run_on(name: &str, text: Option<&str>, change: impl FnOnce(&mut Check)) -> (u8, String, String) {
    let folder = std::env::temp_dir().join(format!("lb-check-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("lb.yaml");
    if let Some(text) = text {
        fs::write(&path, text).unwrap();
    }
    let mut args = Check {
        config: ConfigFile { path },
        no_environment: true,
        format: Format::Text,
        explain: false,
    };
    change(&mut args);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = run(&args, false, &mut out, &mut err).unwrap();
    fs::remove_dir_all(folder).unwrap();
    (
        code,
        String::from_utf8(out).unwrap(),
        String::from_utf8(err).unwrap(),
    )
}

// [CFG-10]
#[test]
fn a_good_file_ends_with_0_and_one_line() {
    let (code, out, err) = run_on("good", Some(GOOD), |_| {});
    assert_eq!((code, out.as_str()), (0, ""));
    assert!(
        err.ends_with("lb.yaml: ok\n") && err.lines().count() == 1,
        "{err}"
    );
}

// [CFG-10]
#[test]
fn a_missing_file_ends_with_66() {
    let (code, _, err) = run_on("missing", None, |_| {});
    assert_eq!(code, 66);
    assert!(
        err.starts_with("error: cannot read ") && err.contains("lb.yaml: No such file"),
        "{err}"
    );
}

// [CFG-10]
#[test]
fn a_bad_file_ends_with_78() {
    let (code, out, err) = run_on("bad", Some("version: 2\n"), |_| {});
    assert_eq!((code, out.as_str()), (78, ""));
    assert!(
        err.contains("error[E002]") && err.ends_with("4 errors, 0 warnings\n"),
        "{err}"
    );
}

// [CFG-11]
#[test]
fn what_the_machine_lacks_is_an_error_unless_the_environment_is_left_out() {
    let (code, _, err) = run_on("environment", Some(GOOD), |args| args.no_environment = false);
    assert_eq!(code, 78);
    assert!(
        err.contains("error[E401]: `providers.gpu.api_key_file` cannot be read: no such file"),
        "{err}"
    );
}

#[test]
fn json_goes_to_standard_output_alone() {
    let (code, out, err) = run_on("json", Some("version: 2\n"), |args| args.format = Format::Json);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, err.as_str(), &json["ok"]), (78, "", &false.into()));
}

#[test]
fn an_explanation_has_a_line_for_every_setting() {
    let (code, out, _) = run_on("explain", Some(GOOD), |args| args.explain = true);
    assert_eq!(code, 0);
    assert!(
        out.contains("listeners[0].max_connections: 20000  # default\n"),
        "{out}"
    );
    assert!(
        out.contains("providers.gpu.api_key_file: /no/such/file  # line 4\n"),
        "{out}"
    );
}
