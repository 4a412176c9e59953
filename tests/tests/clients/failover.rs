//! An application notices nothing of what its model's preferred provider does before the first token.

use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

use crate::door::Door;

/// Every way in which a preferred provider fails before its first token, streaming.
fn failures() -> [Script; 6] {
    [
        Script::silent().stall(),
        Script::stream().stall(),
        Script::error(503),
        Script::stream()
            .bytes("event: error\ndata: {\"error\":{\"type\":\"overloaded_error\"}}\n\n")
            .end(),
        Script::stream().close(),
        Script::silent().reset(),
    ]
}

async fn streaming(door: Door) {
    let preferred = Provider::start(Script::silent()).await;
    let alternate = Provider::start(Script::streamed(&["from ", "the ", "alternate"])).await;
    let setup = Setup::pair(&preferred, &alternate)
        .fallback("first_token_timeout_ms: 300")
        .fallback("aimd: { latency_budget_ms: 300 }");
    let Some(behind) = door.open(setup).await else {
        return;
    };
    for failure in failures() {
        preferred.next(failure);
    }
    let values = behind.values(&["chat-stream"; 6]).await;
    for (value, failure) in values.iter().zip(failures()) {
        assert_eq!(value["text"], "from the alternate", "{failure:?}");
    }
    assert_eq!(
        (preferred.requests().len(), alternate.requests().len()),
        (6, 6),
        "the package had nothing to retry"
    );
    behind.lb.idle().await;
}

async fn in_one_piece(door: Door) {
    let preferred = Provider::start(Script::silent()).await;
    let alternate = Provider::start(Script::completion("from the alternate")).await;
    let setup = Setup::pair(&preferred, &alternate).provider("timeouts: { read_ms: 300 }");
    let Some(behind) = door.open(setup).await else {
        return;
    };
    let failures = [
        Script::silent().stall(),
        Script::error(503),
        Script::silent().close(),
    ];
    for failure in &failures {
        preferred.next(failure.clone());
    }
    let values = behind.values(&["chat"; 3]).await;
    for (value, failure) in values.iter().zip(failures) {
        assert_eq!(value["text"], "from the alternate", "{failure:?}");
    }
    assert_eq!(alternate.requests().len(), 3, "the package had nothing to retry");
}

#[tokio::test]
async fn the_alternates_stream_is_all_that_pythons_package_sees() {
    streaming(Door::Python).await;
}

#[tokio::test]
async fn the_alternates_stream_is_all_that_pythons_package_sees_over_http2() {
    streaming(Door::Python2).await;
}

#[tokio::test]
async fn the_alternates_stream_is_all_that_nodes_package_sees() {
    streaming(Door::Node).await;
}

#[tokio::test]
async fn the_alternates_answer_is_all_that_each_package_sees_that_does_not_stream() {
    for door in [Door::Python, Door::Python2, Door::Node] {
        in_one_piece(door).await;
    }
}
