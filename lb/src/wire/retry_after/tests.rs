use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::wire::tests::seeded;

/// Wed, 21 Oct 2026 07:26:00 GMT.
const NOW: Duration = Duration::from_mins(29_876_126);

fn parsed(headers: &[(&'static str, &str)]) -> Option<Duration> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(
            HeaderName::from_static(name),
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    parse(&map, NOW)
}

fn wait(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

// [AFTER-1]
#[test]
fn every_form_in_the_field_is_read() {
    for (name, value, expected) in [
        ("retry-after", "120", Some(wait(120_000))),
        ("retry-after", "1.5", Some(wait(1500))),
        ("retry-after", " 0 ", Some(wait(0))),
        ("retry-after", "86400000", Some(wait(86_400_000_000))),
        (
            "retry-after",
            "Wed, 21 Oct 2026 07:28:00 GMT",
            Some(wait(120_000)),
        ),
        (
            "retry-after",
            "Wednesday, 21-Oct-26 07:28:00 GMT",
            Some(wait(120_000)),
        ),
        ("retry-after", "Wed Oct 21 07:28:00 2026", Some(wait(120_000))),
        ("retry-after-ms", "250", Some(wait(250))),
        ("retry-after-ms", "12.5", Some(Duration::from_micros(12_500))),
        ("x-ratelimit-reset-requests", "1m30.5s", Some(wait(90_500))),
        ("x-ratelimit-reset-requests", "500ms", Some(wait(500))),
        ("x-ratelimit-reset-tokens", "6m0s", Some(wait(360_000))),
        ("x-ratelimit-reset-tokens", "1d2h3m4s5ms", Some(wait(93_784_005))),
        (
            "x-ratelimit-reset-tokens",
            "10us20ns",
            Some(Duration::from_nanos(10_020)),
        ),
        ("x-ratelimit-reset-tokens", "7.66s", Some(wait(7660))),
        ("x-ratelimit-reset-tokens", "30", Some(wait(30_000))),
        ("x-ratelimit-reset", "1792567575", Some(wait(15_000))),
        ("x-ratelimit-reset", "1792567575500", Some(wait(15_500))),
        ("x-ratelimit-reset", "45", Some(wait(45_000))),
    ] {
        assert_eq!(parsed(&[(name, value)]), expected, "{name}: {value}");
    }
}

// [AFTER-2]
#[test]
fn a_moment_that_has_passed_is_no_wait() {
    for (name, value) in [
        ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"),
        ("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("x-ratelimit-reset", "1700000000"),
        ("x-ratelimit-reset", "1700000000000"),
    ] {
        assert_eq!(parsed(&[(name, value)]), Some(Duration::ZERO), "{name}: {value}");
    }
}

// [AFTER-1]
#[test]
fn what_cannot_be_read_is_as_if_absent() {
    assert_eq!(parsed(&[]), None);
    let plain = [
        "",
        "-1",
        "+1",
        "abc",
        "1e3",
        "inf",
        "NaN",
        ".",
        "1.2.3",
        "0x10",
        "1 2",
        "99999999999999999999999",
        "é",
    ];
    for name in [
        "retry-after",
        "retry-after-ms",
        "x-ratelimit-reset-requests",
        "x-ratelimit-reset-tokens",
        "x-ratelimit-reset",
    ] {
        for value in plain {
            assert_eq!(parsed(&[(name, value)]), None, "{name}: {value:?}");
        }
    }
    for value in ["Wed, 21 Oct 2026", "1m30.5s", "tomorrow"] {
        assert_eq!(parsed(&[("retry-after", value)]), None, "{value:?}");
    }
    for value in [
        "1m30",
        "m",
        "1x",
        "-1s",
        "1m-30s",
        "1 m",
        "18446744073709551615s1s",
        "1..5s",
    ] {
        assert_eq!(parsed(&[("x-ratelimit-reset-tokens", value)]), None, "{value:?}");
    }
}

// [AFTER-1]
#[test]
fn the_most_exact_readable_header_wins() {
    let all = [
        ("x-ratelimit-reset", "50"),
        ("x-ratelimit-reset-tokens", "40s"),
        ("x-ratelimit-reset-requests", "30s"),
        ("retry-after", "20"),
        ("retry-after-ms", "10000"),
    ];
    for (count, expected) in [(1, 50), (2, 40), (3, 40), (4, 20), (5, 10)] {
        assert_eq!(
            parsed(&all[..count]),
            Some(wait(expected * 1000)),
            "the first {count}"
        );
    }
    let broken = [
        ("retry-after-ms", "soon"),
        ("retry-after", "-5"),
        ("x-ratelimit-reset-requests", "x"),
        all[1],
    ];
    assert_eq!(parsed(&broken), Some(wait(40_000)));
}

proptest! {
    #![proptest_config(seeded(1000))]

    // [AFTER-1]
    #[test]
    fn no_value_panics(value in "[-+0-9a-zA-Z.,: ]{0,24}") {
        for name in ["retry-after", "retry-after-ms", "x-ratelimit-reset-tokens", "x-ratelimit-reset"] {
            let _: Option<Duration> = parsed(&[(name, &value)]);
        }
    }
}
