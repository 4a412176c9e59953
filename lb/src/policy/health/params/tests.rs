use std::time::Duration;

use super::{Params, Settings};

type Edit = fn(&mut Settings);

fn refused(edit: Edit) -> Vec<&'static str> {
    let mut settings = Settings::default();
    edit(&mut settings);
    Params::new(settings)
        .err()
        .into_iter()
        .flatten()
        .map(|out| out.field)
        .collect()
}

// [HEALTH-1]
#[test]
fn the_defaults_are_the_documented_ones() {
    let documented = Settings {
        consecutive_failures: 5,
        failure_ratio: 0.5,
        failure_min_volume: 20,
        window: Duration::from_mins(1),
        ejection: Duration::from_secs(30),
        max_ejection: Duration::from_mins(5),
        half_open_probes: 1,
        max_ejection_percent: 100,
        slow_start: None,
        active: None,
    };
    assert_eq!(Params::default().settings(), &documented);
}

// [HEALTH-1]
#[test]
fn every_bound_itself_is_within_bounds() {
    let edits: [Edit; 8] = [
        |s| s.consecutive_failures = 1,
        |s| s.failure_ratio = 1.0,
        |s| s.failure_min_volume = 1,
        |s| s.window = Duration::from_secs(1),
        |s| s.window = Duration::from_hours(1),
        |s| s.ejection = s.max_ejection,
        |s| s.half_open_probes = 100,
        |s| s.max_ejection_percent = 0,
    ];
    for (at, edit) in edits.into_iter().enumerate() {
        assert_eq!(refused(edit), [""; 0], "case {at}");
    }
}

// [HEALTH-1]
#[test]
fn what_is_out_of_bounds_is_refused_by_name() {
    let cases: [(Edit, &str); 12] = [
        (|s| s.consecutive_failures = 0, "consecutive_failures"),
        (|s| s.failure_ratio = 0.0, "failure_ratio"),
        (|s| s.failure_ratio = 1.1, "failure_ratio"),
        (|s| s.failure_ratio = f64::NAN, "failure_ratio"),
        (|s| s.failure_min_volume = 0, "failure_min_volume"),
        (|s| s.window = Duration::from_millis(999), "window_ms"),
        (|s| s.window = Duration::from_millis(3_600_001), "window_ms"),
        (|s| s.ejection = Duration::ZERO, "ejection_ms"),
        (|s| s.ejection = Duration::from_millis(300_001), "ejection_ms"),
        (|s| s.half_open_probes = 0, "half_open_probes"),
        (|s| s.half_open_probes = 101, "half_open_probes"),
        (|s| s.max_ejection_percent = 101, "max_ejection_percent"),
    ];
    for (at, (edit, field)) in cases.into_iter().enumerate() {
        assert_eq!(refused(edit), [field], "case {at}");
    }
}

// [HEALTH-11]
#[test]
fn no_more_of_a_provider_is_out_than_its_percentage() {
    //           percent  out  endpoints  one more
    let cases = [
        (100, 0, 1, true),
        (100, 2, 3, true),
        (100, 3, 3, false),
        (50, 0, 1, false),
        (50, 0, 2, true),
        (50, 1, 3, false),
        (50, 1, 4, true),
        (10, 0, 9, false),
        (10, 0, 10, true),
        (0, 0, 100, false),
    ];
    for (percent, out, endpoints, expected) in cases {
        let settings = Settings {
            max_ejection_percent: percent,
            ..Settings::default()
        };
        let params = Params::new(settings).expect("within bounds");
        assert_eq!(
            params.may_eject(out, endpoints),
            expected,
            "{percent} % of {endpoints} with {out} out"
        );
    }
}
