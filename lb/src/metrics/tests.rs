use std::time::Duration;

use super::*;

fn metrics() -> Metrics {
    Metrics::new(&[Duration::from_millis(50), Duration::from_secs(10)])
}

fn line<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines()
        .find(|line| line.starts_with(start))
        .unwrap_or_default()
}

// [METRIC-1]
#[test]
fn every_series_of_a_model_is_there_before_its_first_request() {
    let metrics = metrics();
    let _model = metrics.model("chat");
    let _link = metrics.link("chat", "default", "gpu", Role::Preferred);
    let _pool = metrics.pool("chat", "default", &[429, 529]);
    let text = metrics.exposition();
    for start in [
        "lb_requests_total{model=\"chat\",outcome=\"cancelled\"} 0",
        "lb_inflight_requests{model=\"chat\"} 0",
        "lb_attempts_total{model=\"chat\",outcome=\"first_token_timeout\",provider=\"gpu\"} 0",
        "lb_first_token_seconds_bucket{model=\"chat\",pool=\"default\",role=\"preferred\",le=\"10\"} 0",
        "lb_aimd_overload_breaches_total{model=\"chat\",pool=\"default\",status=\"529\"} 0",
        "lb_aimd_adjustments_total{direction=\"idle\",model=\"chat\",pool=\"default\"} 0",
        "lb_failovers_total{model=\"chat\",reason=\"status\"} 0",
    ] {
        assert!(text.lines().any(|line| line == start), "missing: {start}");
    }
}

// [METRIC-2]
#[test]
fn an_outcome_is_counted_under_its_own_name() {
    let metrics = metrics();
    let link = metrics.link("chat", "default", "gpu", Role::Alternate);
    for outcome in AttemptOutcome::ALL {
        link.attempts(outcome).inc();
    }
    let model = metrics.model("chat");
    model.requests(RequestOutcome::Truncated).inc();
    model.failovers(AttemptOutcome::Connect).inc();
    let text = metrics.exposition();
    let attempts = text
        .lines()
        .filter(|line| line.starts_with("lb_attempts_total{") && line.ends_with(" 1"));
    assert_eq!(attempts.count(), AttemptOutcome::ALL.len());
    assert!(line(&text, "lb_requests_total{model=\"chat\",outcome=\"truncated\"}").ends_with(" 1"));
    assert!(line(&text, "lb_requests_total{model=\"chat\",outcome=\"ok\"}").ends_with(" 0"));
    assert!(line(&text, "lb_failovers_total{model=\"chat\",reason=\"connect\"}").ends_with(" 1"));
}

// [METRIC-3]
#[test]
fn what_the_kernel_counted_is_taken_over_as_it_stands() {
    let metrics = metrics();
    let traffic = metrics.traffic("gpu", "gpu-0", &["refused", "streak"]);
    traffic.event("streak");
    for bytes in [100, 250, 250] {
        let counted = [
            ("bytes_sent", bytes),
            ("handshake_microseconds", bytes * 1000),
            ("events_lost", 1),
            ("not known to this build", 7),
        ];
        traffic.publish(counted.into_iter());
    }
    // Another address of the same name.
    let other = metrics.traffic("gpu", "gpu-0", &["refused", "streak"]);
    other.publish([("bytes_sent", 50)].into_iter());
    let text = metrics.exposition();
    for expected in [
        "lb_endpoint_bytes_total{direction=\"sent\",endpoint=\"gpu-0\",provider=\"gpu\"} 300",
        "lb_endpoint_handshake_seconds_total{endpoint=\"gpu-0\",provider=\"gpu\"} 0.25",
        "lb_kernel_events_missed_total{endpoint=\"gpu-0\",provider=\"gpu\",reason=\"ring_full\"} 1",
        "lb_kernel_events_total{endpoint=\"gpu-0\",kind=\"refused\",provider=\"gpu\"} 0",
        "lb_kernel_events_total{endpoint=\"gpu-0\",kind=\"streak\",provider=\"gpu\"} 1",
    ] {
        assert!(text.lines().any(|line| line == expected), "missing: {expected}");
    }
}

#[test]
fn an_ejection_is_counted_by_its_cause() {
    let metrics = metrics();
    let endpoint = metrics.endpoint("gpu", "gpu-0", &["probe", "failure_ratio"]);
    endpoint.ejected_for("failure_ratio");
    let text = metrics.exposition();
    assert!(line(&text, "lb_ejections_total{cause=\"failure_ratio\"").ends_with(" 1"));
    assert!(line(&text, "lb_ejections_total{cause=\"probe\"").ends_with(" 0"));
}
