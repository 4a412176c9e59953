use super::*;
use crate::config::yaml;

// [CFG-6]
#[test]
fn the_value_of_a_secret_key_is_masked_at_its_length() {
    for (line, masked) in [
        ("    api_key: sk-123\n", "    api_key: ******\n"),
        ("    api_key: \"sk\" # mine\n", "    api_key: ***********\n"),
        ("    api_key: \"sk #tail\"\n", "    api_key: **********\n"),
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
    assert_eq!(
        text("url: http://me:p/w@host/v1\n"),
        "url: http://******@host/v1\n"
    );
    assert_eq!(text("url: http://host:80/@cf/m\n"), "url: http://host:80/@cf/m\n");
}

// [CFG-6]
#[test]
fn the_values_of_a_urls_query_are_masked() {
    for (line, masked) in [
        ("url: http://host/v1?a=@b\n", "url: http://host/v1?a=**\n"),
        (
            "url: \"http://host?k=s&l=${L}&m\" # no\n",
            "url: \"http://host?k=*&l=${L}&*\" # no\n",
        ),
        (
            "url: unix:/run/x.sock:/v1?key\n",
            "url: unix:/run/x.sock:/v1?***\n",
        ),
        ("x: what? a=b\n", "x: what? a=b\n"),
    ] {
        assert_eq!(text(line), masked);
        assert_eq!(document(line, &yaml::read(line).expect("YAML")), masked);
    }
}

/// Ways to write a secret, `KEY #TAIL` in one form or another, as YAML's value at a column of six.
const WRITTEN: [&str; 14] = [
    "KEYSECRET#TAIL",
    "KEYSECRET\n        TAIL",
    "\"KEYSECRET #TAIL\"",
    "'KEYSECRET #TAIL'",
    "'KEY''SECRET #TAIL'",
    "\"KEY\\\"SECRET #TAIL: x\"",
    "\"KEYSECRET\n        #TAIL\"",
    "'KEYSECRET\n\n        #TAIL'",
    "|\n        KEYSECRET\n        #TAIL",
    ">-\n        KEYSECRET\n\n          #TAIL",
    "\n        \"KEYSECRET #TAIL\"",
    "!!str \"KEYSECRET #TAIL\"",
    "&a \"KEYSECRET #TAIL\"",
    "\"${A:-KEYSECRET} #TAIL\"",
];

/// Where a secret can stand, as `@`.
const PLACES: [&str; 8] = [
    "providers:\n  p:\n      api_key: @\n      b: 1\n",
    "providers:\n  p:\n      headers:\n       x-a: @\n",
    "providers:\n  p: { headers: { x-a: @, x-b: '#' }, api_key: \"KEYSECRET #TAIL\" } # TAI\n",
    "providers: { p: { b: 1, \"api_key\": @ } }\n",
    "routes:\n  - match:\n      headers:\n       x-a: @\n",
    "routes:\n  - request_headers:\n      set:\n       x-a: @\n    response_headers: { set: { x-b: @ } }\n",
    "auth:\n      token: @\n",
    "models:\n  m:\n      password: [@]\n",
];

// [CFG-6]
#[test]
fn no_secret_is_shown_however_it_is_written_and_wherever_it_stands() {
    let mut read = 0;
    for (place, written) in PLACES
        .iter()
        .flat_map(|place| WRITTEN.map(|written| (place, written)))
    {
        let source = place.replace('@', written);
        let mut shown = vec![text(&source), text(&format!("{source}x: [\n"))];
        if let Ok(root) = yaml::read(&source) {
            read += 1;
            shown.push(document(&source, &root));
        }
        for shown in shown {
            assert!(
                !shown.contains("SECRET") && !shown.contains("TAIL"),
                "{source}\n{shown}"
            );
            assert_eq!(
                shown.matches('\n').count(),
                source.matches('\n').count() + usize::from(shown.ends_with("[\n"))
            );
        }
    }
    // Not every way to write a value goes into every place.
    assert!(read > 60, "{read} were YAML");
}

// [CFG-6]
#[test]
fn no_secret_of_a_url_is_shown_however_it_is_written() {
    for url in [
        "http://h/v1?key=SECRET",
        "\"http://h/v1?key=SECRET\"",
        "'http://h/v1?a=1&SECRET'",
        "\"http:\\/\\/h/v1\\x3fkey=SECRET\"",
        "\"http://h/v1?key=a SECRET\"",
        "http://SECRET:x@h/v1",
        "\"http://me: SECRET@h/v1\"",
        "http://me:x/SECRET@h/v1",
        "|\n    http://h/v1?key=SECRET",
    ] {
        for source in [format!("url: {url}\n"), format!("a: [{{ url: {url} }}]\n")] {
            let Ok(root) = yaml::read(&source) else { continue };
            let shown = document(&source, &root);
            assert!(!shown.contains("SECRET"), "{source}\n{shown}");
            assert_eq!(shown.len(), source.len());
        }
    }
}

// [CFG-6]
#[test]
fn a_comment_with_a_secret_is_masked_and_others_stay() {
    let source = "a: 1 # api_key: \"KEY #SECRET\"\nproviders: { p: { api_key: \"a #SECRET\" } } # why\n";
    let shown = document(source, &yaml::read(source).expect("YAML"));
    assert!(!shown.contains("SECRET"), "{shown}");
    assert!(shown.ends_with(" # why\n"), "{shown}");
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
