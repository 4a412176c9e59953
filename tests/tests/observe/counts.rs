//! What is counted.

use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

// [MEASURE-1] [MEASURE-2]
#[tokio::test]
async fn durations_of_all_requests_and_gaps_of_streams_are_measured() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    lb.chat(false).await;
    provider.next(
        Script::stream()
            .token("a")
            .pause(120)
            .token("b")
            .pause(120)
            .finish(),
    );
    lb.chat(true).await;
    provider.next(Script::silent().stall());
    drop(lb.begin().await);
    provider.request(2).await;
    lb.eventually("three durations", async |lb| {
        lb.sum("lb_request_duration_seconds_count", &["model=\"chat\""])
            .await
            == 3
    })
    .await;
    let under = |edge: &str| format!("lb_request_duration_seconds_bucket{{model=\"chat\",le=\"{edge}\"}}");
    assert!(lb.metric(&under("0.1")).await >= 1.0);
    let slow = lb.metric("lb_request_duration_seconds_sum{model=\"chat\"}").await;
    assert!(slow >= 0.24, "{slow}");
    let gaps = lb
        .metric("lb_inter_frame_gap_seconds_count{model=\"chat\"}")
        .await;
    let sum = lb.metric("lb_inter_frame_gap_seconds_sum{model=\"chat\"}").await;
    assert!(
        (2.0..=5.0).contains(&gaps) && (0.15..=1.0).contains(&sum),
        "{gaps} gaps of {sum} s"
    );
    let early = lb
        .metric("lb_inter_frame_gap_seconds_bucket{model=\"chat\",le=\"0.1\"}")
        .await;
    assert!(gaps - early >= 1.0, "a gap over a tenth of a second");
}

// [MEASURE-3]
#[tokio::test]
async fn tokens_are_counted_where_that_is_asked_for() {
    let stream = || {
        Script::stream()
            .token("a")
            .data(r#"{"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":34}}"#)
            .finish()
    };
    for (section, expected) in [("", (0, 0)), ("metrics: { usage: true }", (13, 35))] {
        let provider = Provider::start(Script::completion("ok")).await;
        let lb = Lb::start(&Setup::single(&provider).section(section)).await;
        // One prompt token and one completion token.
        lb.chat(false).await;
        provider.next(stream());
        lb.chat(true).await;
        // What is compressed cannot be read, and an error has no tokens.
        provider.next(
            Script::stream_with(&[("content-encoding", "br")])
                .bytes("\"usage\":{\"prompt_tokens\":5}")
                .end(),
        );
        lb.chat(true).await;
        lb.idle().await;
        let counted = async |kind: &str| lb.sum("lb_tokens_total", &["model=\"chat\"", kind]).await;
        assert_eq!(
            (
                counted("kind=\"prompt\"").await,
                counted("kind=\"completion\"").await
            ),
            expected
        );
    }
}

// [MEASURE-4]
#[tokio::test]
async fn the_process_itself_is_measured() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    for name in [
        "cpu_seconds_total",
        "open_fds",
        "resident_memory_bytes",
        "start_time_seconds",
        "threads",
    ] {
        let value = lb.metric(&format!("process_{name}")).await;
        assert!(value > 0.0 || name == "cpu_seconds_total", "{name}: {value}");
    }
    assert!(lb.metric("process_open_fds").await < lb.metric("process_max_fds").await);
}
