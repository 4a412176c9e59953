use std::time::Duration;

use serde_json::{Value, json};

use super::{Report, gone, kernel as kernel_line, quantile};
use crate::demo::client::{Ending, Noticed, Sample};

fn sample(provider: &str, milliseconds: u64) -> Sample {
    let first_token = Some(Duration::from_millis(milliseconds));
    Sample {
        provider: provider.to_owned(),
        first_token,
        ending: Ending::Answered,
    }
}

fn state(share: f64) -> Value {
    json!({
        "models": [{"name": "chat", "pools": [{"name": "default", "share": share, "breach_rate": 0.12}]}],
        "providers": [
            {"name": "gpu", "endpoints": [{"name": "gpu-0", "state": "ejected", "in_flight": 0}]},
            {"name": "vendor-a", "endpoints": [{"name": "vendor-a-0", "state": "healthy", "in_flight": 1}]},
        ],
    })
}

// [DEMO-5]
#[test]
fn a_death_is_told_with_its_cause_and_its_milliseconds() {
    let noticed = |milliseconds, cause: &str| Noticed {
        after: Duration::from_millis(milliseconds),
        cause: cause.to_owned(),
    };
    assert_eq!(
        gone("gpu", &[noticed(23, "kernel_refused")]),
        "-- gpu is out 23 ms after its death: kernel_refused"
    );
    let both = [noticed(2, "consecutive_failures"), noticed(10, "kernel_refused")];
    assert_eq!(
        gone("gpu", &both),
        "-- gpu is out 2 ms after its death: consecutive_failures, kernel_refused after 10 ms"
    );
    assert_eq!(gone("gpu", &[]), "-- gpu is not out after its death");
}

// [DEMO-5]
#[test]
fn it_is_told_whether_the_kernel_watches() {
    let said = |kernel: Value| kernel_line(&json!({ "kernel": kernel }));
    assert_eq!(
        said(json!({"mode": "cgroup", "missing": []})),
        "kernel plane: cgroup"
    );
    assert_eq!(
        said(json!({"mode": "off", "missing": ["not permitted"]})),
        "kernel plane: off, not permitted"
    );
}

// [DEMO-2]
#[test]
fn a_second_is_one_plain_line_of_what_happened_in_it() {
    let mut report = Report::new();
    report.add(sample("gpu", 150));
    report.add(sample("vendor-a", 250));
    report.add(Sample {
        ending: Ending::Cut,
        ..sample("gpu", 160)
    });
    report.add(Sample {
        provider: String::new(),
        first_token: None,
        ending: Ending::Failed,
    });
    let line = report.second(Duration::from_millis(7_001), &state(0.53));
    let expected = "t=7s share=0.53 breach=0.12 requests=4 ttft p50=0.16s p95=0.25s alternates=33% cut=1 failed=1 \
                    gpu=ejected vendor-a=healthy";
    assert_eq!(line, expected);
    assert!(
        line.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
        "no escape codes"
    );
}

// [DEMO-2]
#[test]
fn a_second_without_requests_or_state_still_has_its_line() {
    let line = Report::new().second(Duration::from_secs(1), &Value::Null);
    let expected =
        "t=1s share=1.00 breach=- requests=0 ttft p50=0.00s p95=0.00s alternates=0% cut=0 failed=0";
    assert_eq!(line, expected);
}

// [DEMO-3]
#[test]
fn the_totals_sum_up_all_seconds_and_remember_the_lowest_share() {
    let mut report = Report::new();
    for (share, provider) in [(0.9, "gpu"), (0.4, "vendor-a"), (0.75, "vendor-b")] {
        report.add(sample(provider, 100));
        report.second(Duration::from_secs(1), &state(share));
    }
    let expected = "total requests=3 answered=3 cut=0 failed=0 alternates=66% lowest share=0.40 last share=0.75 \
                    ttft p50=0.10s p95=0.10s";
    assert_eq!(report.totals().to_string(), expected);
}

#[test]
fn a_quantile_is_a_value_that_was_seen() {
    let times: Vec<_> = (1..=20).map(Duration::from_millis).collect();
    assert_eq!(quantile(&times, 50), Duration::from_millis(10));
    assert_eq!(quantile(&times, 95), Duration::from_millis(19));
    assert_eq!(quantile(&times[..1], 95), Duration::from_millis(1));
    assert_eq!(quantile(&[], 95), Duration::ZERO);
}
