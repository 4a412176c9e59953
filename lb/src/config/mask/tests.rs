use super::*;
use crate::config::yaml;

// [CFG-6]
#[test]
fn the_value_of_a_secret_key_is_masked_at_its_length() {
    for (line, masked) in [
        ("    api_key: sk-123\n", "    api_key: ******\n"),
        ("    api_key: \"sk\" # mine\n", "    api_key: **** # mine\n"),
        ("a: { api_key: sk-1, b: 2 }\n", "a: { api_key: ************\n"),
        (
            "    \"authorization\": Bearer x\n",
            "    \"authorization\": ********\n",
        ),
        ("    api_key: null\n", "    api_key: null\n"),
        ("    api_key:\n", "    api_key:\n"),
        ("    api_key: ${KEY}\n", "    api_key: ${KEY}\n"),
        ("    api_key: ${KEY:-sk-1}\n", "    api_key: ${KEY:-****}\n"),
        ("    api_key: a${KEY:?ö}b\n", "    api_key: *${KEY:?**}*\n"),
        ("    api_key: ${KEY\n", "    api_key: ${KEY\n\n"),
        ("    api_key_file: /etc/key\n", "    api_key_file: /etc/key\n"),
        (
            "    auth_header: authorization\n",
            "    auth_header: authorization\n",
        ),
    ] {
        let shown = text(line);
        assert_eq!(shown.trim_end(), masked.trim_end(), "{line}");
        assert_eq!(shown.len(), line.len(), "{line}");
    }
}

#[test]
fn a_password_in_a_url_is_masked() {
    assert_eq!(text("url: http://me:pw@host/v1\n"), "url: http://*****@host/v1\n");
    assert_eq!(text("url: http://host/v1?a=@b\n"), "url: http://host/v1?a=@b\n");
}

#[test]
fn every_header_value_and_a_key_over_several_lines_are_masked() {
    let source = "providers:\n  gpu:\n    headers: { x-team: abc }\n    api_key: |\n      one\n      two\n";
    let shown = document(source, &yaml::read(source).unwrap());
    assert_eq!(shown.len(), source.len());
    for secret in ["abc", "one", "two"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}
