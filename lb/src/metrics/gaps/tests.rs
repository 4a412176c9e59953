use super::*;
use crate::metrics::Metrics;

fn count(metrics: &Metrics) -> u64 {
    let text = metrics.exposition();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("lb_inter_frame_gap_seconds_count{model=\"chat\"} "));
    line.unwrap().parse().unwrap()
}

// [MEASURE-2]
#[test]
fn gaps_are_seen_a_batch_at_a_time_and_at_the_streams_end() {
    let metrics = Metrics::new(&[]);
    let model = metrics.model("chat");
    let mut gaps = model.gaps();
    for _ in 1..BATCH {
        gaps.record(Duration::from_millis(30));
    }
    assert_eq!(count(&metrics), 0);
    gaps.record(Duration::from_millis(30));
    assert_eq!(count(&metrics), 64);
    gaps.record(Duration::from_secs(3));
    drop(gaps);
    assert_eq!(count(&metrics), 65);
    let text = metrics.exposition();
    for line in [
        "lb_inter_frame_gap_seconds_bucket{model=\"chat\",le=\"0.025\"} 0",
        "lb_inter_frame_gap_seconds_bucket{model=\"chat\",le=\"0.05\"} 64",
        "lb_inter_frame_gap_seconds_bucket{model=\"chat\",le=\"5\"} 65",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}");
    }
}
