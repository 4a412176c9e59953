use std::time::Duration;

use super::{Outcome, Params, Scope, Settings};

type Edit = fn(&mut Settings);

/// The fields that are out of bounds after `edit`.
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

// [AIMD-2]
#[test]
fn the_defaults_are_the_documented_ones() {
    let documented = Settings {
        latency_budget: Duration::from_secs(10),
        breach_rate_target: 0.10,
        recovery_breach_rate: 0.03,
        window_samples: 100,
        min_samples: 20,
        share_step: 0.05,
        share_decay: 0.8,
        share_floor: 0.05,
        dwell: Duration::from_secs(30),
        idle_recovery: Some(Duration::from_mins(5)),
        overload_statuses: vec![429, 503, 529],
        scope: Scope::Strict,
    };
    assert_eq!(Params::default().settings(), &documented);
}

// [AIMD-1]
#[test]
fn every_bound_itself_is_within_bounds() {
    let edits: [Edit; 17] = [
        |s| s.latency_budget = Duration::from_millis(1),
        |s| s.latency_budget = Duration::from_hours(1),
        |s| s.breach_rate_target = 0.999_999,
        |s| (s.breach_rate_target, s.recovery_breach_rate) = (0.0, 0.0),
        |s| s.recovery_breach_rate = 0.10,
        |s| s.recovery_breach_rate = 0.0,
        |s| s.window_samples = 20,
        |s| s.window_samples = 100_000,
        |s| (s.min_samples, s.window_samples) = (2, 2),
        |s| (s.share_step, s.share_floor) = (1.0, 1.0),
        |s| (s.share_step, s.share_floor) = (f64::MIN_POSITIVE, f64::MIN_POSITIVE),
        |s| s.dwell = Duration::from_millis(1),
        |s| s.dwell = Duration::from_hours(24),
        |s| s.idle_recovery = Some(Duration::from_hours(24)),
        |s| s.idle_recovery = Some(Duration::from_millis(1)),
        |s| s.overload_statuses = vec![],
        |s| s.overload_statuses = (400..432).collect(),
    ];
    for (at, edit) in edits.into_iter().enumerate() {
        assert_eq!(refused(edit), [""; 0], "case {at}");
    }
}

// [AIMD-1]
#[test]
fn what_is_out_of_bounds_is_refused_by_name() {
    let cases: [(Edit, &str); 28] = [
        (|s| s.latency_budget = Duration::ZERO, "latency_budget_ms"),
        (
            |s| s.latency_budget = Duration::from_millis(3_600_001),
            "latency_budget_ms",
        ),
        (|s| s.breach_rate_target = 1.0, "breach_rate_target"),
        (|s| s.recovery_breach_rate = 0.100_001, "recovery_breach_rate"),
        (|s| s.recovery_breach_rate = -0.000_001, "recovery_breach_rate"),
        (|s| s.recovery_breach_rate = f64::NAN, "recovery_breach_rate"),
        (
            |s| s.recovery_breach_rate = f64::NEG_INFINITY,
            "recovery_breach_rate",
        ),
        (|s| s.window_samples = 19, "window_samples"),
        (|s| s.window_samples = 100_001, "window_samples"),
        (|s| s.min_samples = 1, "min_samples"),
        (|s| s.share_step = 0.0, "share_step"),
        (|s| s.share_step = 1.000_001, "share_step"),
        (|s| s.share_step = f64::NAN, "share_step"),
        (|s| s.share_step = f64::INFINITY, "share_step"),
        (|s| s.share_decay = 0.0, "share_decay"),
        (|s| s.share_decay = 1.0, "share_decay"),
        (|s| s.share_decay = f64::NAN, "share_decay"),
        (|s| s.share_decay = f64::INFINITY, "share_decay"),
        (|s| s.share_floor = 0.0, "share_floor"),
        (|s| s.share_floor = 1.000_001, "share_floor"),
        (|s| s.share_floor = f64::NAN, "share_floor"),
        (|s| s.dwell = Duration::ZERO, "dwell_ms"),
        (|s| s.dwell = Duration::from_millis(86_400_001), "dwell_ms"),
        (
            |s| s.idle_recovery = Some(Duration::from_millis(86_400_001)),
            "idle_recovery_ms",
        ),
        (
            |s| s.overload_statuses = (400..433).collect(),
            "overload_statuses",
        ),
        (|s| s.overload_statuses = vec![399], "overload_statuses"),
        (|s| s.overload_statuses = vec![600], "overload_statuses"),
        (|s| s.overload_statuses = vec![503, 429, 503], "overload_statuses"),
    ];
    for (at, (edit, field)) in cases.into_iter().enumerate() {
        assert_eq!(refused(edit), [field], "case {at}");
    }
}

// [AIMD-1]
#[test]
fn a_target_that_is_no_number_takes_the_recovery_rate_below_it_along() {
    for target in [f64::NAN, f64::NEG_INFINITY, -0.1] {
        let settings = Settings {
            breach_rate_target: target,
            ..Settings::default()
        };
        let fields: Vec<_> = Params::new(settings)
            .expect_err("no rate")
            .iter()
            .map(|out| out.field)
            .collect();
        assert_eq!(fields, ["breach_rate_target", "recovery_breach_rate"]);
    }
}

// [AIMD-1]
#[test]
fn everything_that_is_wrong_is_named_at_once() {
    let fields = refused(|s| {
        s.latency_budget = Duration::ZERO;
        s.share_decay = 2.0;
        s.min_samples = 0;
        s.overload_statuses = vec![200, 200];
    });
    assert_eq!(
        fields,
        [
            "latency_budget_ms",
            "min_samples",
            "share_decay",
            "overload_statuses",
            "overload_statuses"
        ]
    );
}

// [AIMD-3]
#[test]
fn settings_that_mean_the_same_make_equal_params() {
    let reordered = Settings {
        overload_statuses: vec![529, 429, 503],
        ..Settings::default()
    };
    assert_eq!(Params::new(reordered), Ok(Params::default()));
    let off = |idle_recovery| {
        Params::new(Settings {
            idle_recovery,
            ..Settings::default()
        })
    };
    assert_eq!(off(Some(Duration::ZERO)), off(None));
    assert_ne!(off(None), Ok(Params::default()));
}

// [AIMD-4]
#[test]
fn only_streams_of_strict_models_without_the_exempt_header_take_part() {
    let strict = Params::default();
    let streaming = Params::new(Settings {
        scope: Scope::Streaming,
        ..Settings::default()
    })
    .expect("within bounds");
    //            stream strict exempt   scope: strict, streaming
    let cases = [
        ((true, true, false), (true, true)),
        ((true, true, true), (false, false)),
        ((true, false, false), (false, true)),
        ((true, false, true), (false, false)),
        ((false, true, false), (false, false)),
        ((false, false, false), (false, false)),
    ];
    for ((stream, is_strict, exempt), expected) in cases {
        let answers = [&strict, &streaming].map(|params| params.takes_part(stream, is_strict, exempt));
        assert_eq!(
            <(bool, bool)>::from(answers),
            expected,
            "stream {stream}, strict {is_strict}, exempt {exempt}"
        );
    }
}

// [AIMD-7]
#[test]
fn a_first_data_frame_is_healthy_up_to_the_budget_and_a_breach_after_it() {
    let params = Params::default();
    let budget = Duration::from_secs(10);
    assert_eq!(params.on_first_data(Duration::ZERO), Outcome::Healthy);
    assert_eq!(params.on_first_data(budget), Outcome::Healthy);
    assert_eq!(
        params.on_first_data(budget + Duration::from_nanos(1)),
        Outcome::Breach
    );
}

// [AIMD-8]
#[test]
fn a_deadline_that_expires_before_the_budget_is_up_says_nothing() {
    let params = Params::default();
    let budget = Duration::from_secs(10);
    assert_eq!(
        params.on_deadline(budget.saturating_sub(Duration::from_nanos(1))),
        Outcome::Unknown
    );
    assert_eq!(params.on_deadline(budget), Outcome::Breach);
}

// [AIMD-9]
#[test]
fn only_a_listed_status_is_an_overload() {
    let params = Params::default();
    for (status, expected) in [
        (429, Outcome::Breach),
        (503, Outcome::Breach),
        (529, Outcome::Breach),
        (500, Outcome::Unknown),
        (200, Outcome::Unknown),
    ] {
        assert_eq!(params.on_status(status), expected, "of {status}");
    }
}
