//! A client's going, in every phase of its request.

use std::time::{Duration, Instant};

use lb_tests::patience::Patience;
use lb_tests::provider::Script;

use crate::client::Asking;
use crate::column::{CLIENTS, Column, Version, Wish};

/// How soon after the client the upstream connection is gone.
const PROMISE: Duration = Duration::from_millis(100);

/// A phase: what the provider does, and what the client waits for before it leaves.
fn phases() -> [(&'static str, bool, Script, Option<&'static str>); 5] {
    [
        ("waiting for a head", false, Script::silent().stall(), None),
        (
            "waiting for a stream's head",
            true,
            Script::silent().stall(),
            None,
        ),
        (
            "waiting for the first event",
            true,
            Script::stream().bytes(": hm\n\n").stall(),
            None,
        ),
        (
            "streaming",
            true,
            Script::stream().token("a").stall(),
            Some("\"a\""),
        ),
        (
            "in the middle of a JSON answer",
            false,
            Script::head(
                200,
                &[("content-type", "application/json"), ("content-length", "99")],
            )
            .bytes("{\"a\":")
            .stall(),
            Some("\"a\""),
        ),
    ]
}

/// How soon the upstream connection is gone after the client, less what the two processes waited for a CPU meanwhile:
/// that is how busy the machine is and nothing of lb's.
async fn left_after(
    column: &Column,
    version: Version,
    (stream, script, text): (bool, &Script, Option<&str>),
) -> Duration {
    let number = column.provider.requests().len();
    column.provider.next(script.clone());
    let mut asking = Asking::begin(column, version, stream).await;
    column.provider.request(number).await;
    if let Some(text) = text {
        asking.until(text).await;
    }
    let patience = Patience::begin(Some(column.lb.pid()));
    let leaving = Instant::now();
    drop(asking);
    let left = column.provider.left(number).await;
    let after = left.saturating_duration_since(leaving);
    let starved = if after < PROMISE {
        Duration::ZERO
    } else {
        patience.end().all
    };
    column.lb.idle().await;
    after.saturating_sub(starved)
}

// [STREAM-14] [ACCESS-2]
#[tokio::test]
async fn a_client_that_goes_ends_its_upstream_request_within_a_tenth_of_a_second() {
    for upstream in [false, true] {
        for (version, client) in CLIENTS {
            let wish = Wish {
                alone: true,
                ..Wish::default()
            };
            let column = Column::start((client, upstream), wish).await;
            let mut gone = 0;
            for (phase, stream, script, text) in phases() {
                for _ in 0..3 {
                    let after = left_after(&column, version, (stream, &script, text)).await;
                    assert!(
                        after < PROMISE,
                        "{phase}, {version:?}, {}: {after:?}",
                        column.name
                    );
                    gone += 1;
                }
            }
            let cancelled = column
                .lb
                .sum("lb_client_cancellations_total", &["model=\"chat\""])
                .await;
            assert_eq!(cancelled, gone, "{version:?}, {}", column.name);
            assert_eq!(column.lb.endpoint("gpu", 0).await["state"], "healthy");
            column
                .lb
                .eventually("a line for each", async |lb| {
                    lb.log().matches("\"cancelled\":true").count() == usize::try_from(gone).unwrap()
                })
                .await;
        }
    }
}
