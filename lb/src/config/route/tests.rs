use super::*;

fn prefix(text: &str) -> Match {
    Match {
        path_prefix: text.to_owned(),
        ..Match::default()
    }
}

// [ROUTE-12]
#[test]
fn a_path_prefix_is_matched_in_whole_segments() {
    let cases = [
        ("/v1", "/v1", Some("")),
        ("/v1", "/v1/", Some("/")),
        ("/v1", "/v1/models", Some("/models")),
        ("/v1", "/v10", None),
        ("/v1", "/", None),
        ("", "/", Some("/")),
        ("", "/a", Some("/a")),
        ("/a/b", "/a", None),
    ];
    for (written, path, rest) in cases {
        assert_eq!(prefix(written).rest(path), rest, "{path} behind {written}");
    }
}

// [ROUTE-12]
#[test]
fn a_host_is_one_name_or_all_under_one() {
    let exact = HostPattern::Exact("app.example".into());
    assert!(exact.takes("APP.example") && !exact.takes("b.app.example"));
    let under = HostPattern::Under(".example".into());
    assert!(under.takes("app.example") && under.takes("b.APP.Example"));
    assert!(!under.takes(".example") && !under.takes("example") && !under.takes("appexample"));
}
