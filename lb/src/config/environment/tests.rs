use std::fs;

use super::*;

fn problems(what: What) -> Vec<(&'static str, String)> {
    let need = Need {
        span: Span::default(),
        key: "here".to_owned(),
        what,
    };
    check(&[need])
        .into_iter()
        .map(|problem| (problem.code, problem.message))
        .collect()
}

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("lb-environment-{}-{name}", std::process::id()));
    fs::write(&path, "x").unwrap();
    path
}

// [CFG-11]
#[test]
fn a_file_that_is_not_there_or_not_a_file_is_an_error() {
    let missing = problems(What::File("/no/such/file".into()));
    let text = "`here` cannot be read: no such file or directory".to_owned();
    assert_eq!(missing, [("E401", text)]);
    assert_eq!(problems(What::Secret("/no/such/file".into()))[0].0, "E401");
    assert_eq!(problems(What::File("/tmp".into()))[0].0, "E401");
}

// [CFG-11]
#[test]
fn a_secret_that_everybody_can_read_is_warned_of() {
    let path = scratch("secret");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(problems(What::Secret(path.clone()))[0].0, "W402");
    assert_eq!(problems(What::File(path.clone())), []);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(problems(What::Secret(path.clone())), []);
    fs::remove_file(path).unwrap();
}

// [CFG-11]
#[test]
fn an_address_in_use_is_warned_of_and_one_of_another_machine_is_an_error() {
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(problems(What::Address(held.local_addr().unwrap()))[0].0, "W404");
    assert_eq!(
        problems(What::Address("192.0.2.1:80".parse().unwrap()))[0].0,
        "E403"
    );
    assert_eq!(problems(What::Address("127.0.0.1:0".parse().unwrap())), []);
}

// [CFG-11]
#[test]
fn a_host_that_nobody_knows_is_warned_of() {
    assert_eq!(
        problems(What::Host("no-such-host.invalid".to_owned(), 80))[0].0,
        "W405"
    );
    assert_eq!(problems(What::Host("127.0.0.1".to_owned(), 80)), []);
}
