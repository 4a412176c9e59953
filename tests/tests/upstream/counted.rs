//! How many connections there are to an endpoint.

use lb_tests::client::End;
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Signal, token};
use lb_tests::setup::Setup;

use super::origin::{Answer, Origin, Then, rest};

/// Waits until so many connections to `gpu` are busy and idle.
async fn until(lb: &Lb, busy: u64, idle: u64) {
    let what = format!("{busy} busy and {idle} idle connections");
    lb.eventually(&what, async |lb| {
        let count = async |state: &str| {
            let labels = [
                "provider=\"gpu\"",
                "endpoint=\"gpu-0\"",
                &format!("state=\"{state}\""),
            ];
            lb.sum("lb_upstream_connections", &labels).await
        };
        (count("busy").await, count("idle").await) == (busy, idle)
    })
    .await;
}

// [NET-37]
#[tokio::test]
async fn a_connection_is_busy_until_its_response_is_over_and_then_idle() {
    let provider = Provider::start(Script::streamed(&["ok"])).await;
    let (one, two) = (Signal::new(), Signal::new());
    for gate in [&one, &two] {
        provider.next(Script::stream().token("begun").wait(gate).finish());
    }
    let setup = Setup::single(&provider).provider("connections: { idle_timeout_ms: 60000 }");
    let lb = Lb::start(&setup).await;
    until(&lb, 0, 0).await;
    let mut begun = Vec::new();
    for _ in 0..2 {
        let mut exchange = lb.begin().await;
        exchange.head().await;
        exchange.until("begun").await;
        begun.push(exchange);
    }
    until(&lb, 2, 0).await;
    one.fire();
    assert_eq!(rest(&mut begun[0]).await, End::Clean);
    drop(begun.pop());
    // The client's going ends the other.
    until(&lb, 0, 1).await;
}

// [NET-37]
#[tokio::test]
async fn a_connection_that_requests_share_counts_once() {
    let (one, two) = (Signal::new(), Signal::new());
    let waits = |gate: &Signal| {
        let pieces = vec![
            format!("data: {}\n\n", token("begun")),
            "data: [DONE]\n\n".to_owned(),
        ];
        Answer::Stream(pieces, None, Then::Wait(gate.clone()))
    };
    let origin = Origin::start(waits(&one), None).await;
    origin.next(waits(&one));
    origin.next(waits(&two));
    let setup = Setup::new()
        .at("gpu", &[&format!("http://{}/v1", origin.address)])
        .provider("connections: { http_version: http2 }");
    let lb = Lb::start(&setup).await;
    let mut begun = Vec::new();
    for _ in 0..2 {
        let mut exchange = lb.begin().await;
        exchange.head().await;
        exchange.until("begun").await;
        begun.push(exchange);
    }
    assert_eq!(origin.connections(), 1);
    until(&lb, 1, 0).await;
    one.fire();
    assert_eq!(rest(&mut begun[0]).await, End::Clean);
    lb.eventually("one request", async |lb| {
        lb.endpoint("gpu", 0).await["in_flight"] == 1
    })
    .await;
    until(&lb, 1, 0).await;
    two.fire();
    assert_eq!(rest(&mut begun[1]).await, End::Clean);
    until(&lb, 0, 1).await;
}
