use http::HeaderMap;

use super::*;

fn traced(value: &str) -> u128 {
    let mut headers = HeaderMap::new();
    headers.insert("traceparent", value.parse().unwrap());
    trace_id(&headers)
}

// [ACCESS-4]
#[test]
fn only_a_valid_traceparent_names_a_trace() {
    let id = "4bf92f3577b34da6a3ce929d0e0e4736";
    let expected = u128::from_str_radix(id, 16).unwrap();
    for valid in [
        format!("00-{id}-00f067aa0ba902b7-01"),
        format!("cc-{id}-00f067aa0ba902b7-01-what-comes-later"),
    ] {
        assert_eq!(traced(&valid), expected, "{valid}");
    }
    let none = "0".repeat(32);
    for invalid in [
        String::new(),
        id.to_owned(),
        format!("ff-{id}-00f067aa0ba902b7-01"),
        format!("0-{id}-00f067aa0ba902b7-01"),
        format!("00-{}-00f067aa0ba902b7-01", id.to_uppercase()),
        format!("00-{}-00f067aa0ba902b7-01", &id[1..]),
        format!("00-+{}-00f067aa0ba902b7-01", &id[1..]),
        format!("00-{none}-00f067aa0ba902b7-01"),
        format!("00-{id}"),
    ] {
        assert_eq!(traced(&invalid), 0, "{invalid}");
    }
    assert_eq!(trace_id(&HeaderMap::new()), 0);
}
