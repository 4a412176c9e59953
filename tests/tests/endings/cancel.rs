//! A client's going, in every phase of its request.

use std::time::{Duration, Instant};

use lb_tests::client::End;
use lb_tests::patience::Patience;
use lb_tests::provider::{Script, Signal};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::client::Asking;
use crate::column::{Column, Version, Wire, Wish};
use crate::timers::unanswering;

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

/// A time that was taken, less what the two processes waited for a CPU meanwhile: that is how busy the machine is and
/// nothing of lb's.
fn own(after: Duration, patience: &Patience) -> Duration {
    if after < PROMISE {
        return after;
    }
    after.saturating_sub(patience.end().all)
}

/// How soon the upstream connection is gone after the client.
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
    let after = own(left.saturating_duration_since(leaving), &patience);
    column.lb.idle().await;
    after
}

async fn in_every_phase(upstream: Wire) {
    for client in Wire::ALL {
        let wish = Wish {
            alone: true,
            ..Wish::default()
        };
        let column = Column::start((client.tls, upstream), wish).await;
        let (version, name) = (client.version, format!("{client:?}, {}", column.name));
        let mut gone = 0;
        for (phase, stream, script, text) in phases() {
            let after = left_after(&column, version, (stream, &script, text)).await;
            assert!(after < PROMISE, "{phase}, {name}: {after:?}");
            gone += 1;
        }
        all_told(&column, gone, &name).await;
    }
}

/// So many cancellations, and nothing else, are told and counted, and nobody is blamed.
async fn all_told(column: &Column, gone: u64, name: &str) {
    let cancelled = column
        .lb
        .sum("lb_client_cancellations_total", &["model=\"chat\""])
        .await;
    assert_eq!(cancelled, gone, "{name}");
    assert_eq!(column.lb.endpoint("gpu", 0).await["state"], "healthy", "{name}");
    column
        .lb
        .eventually("a line for each", async |lb| {
            lb.log().matches("\"cancelled\":true").count() == usize::try_from(gone).unwrap()
        })
        .await;
}

// [STREAM-14] [ACCESS-2]
#[tokio::test]
async fn a_client_that_goes_ends_its_request_over_http1_within_a_tenth_of_a_second() {
    in_every_phase(Wire::ONE).await;
}

// [STREAM-14] [ACCESS-2]
#[tokio::test]
async fn a_client_that_goes_ends_its_request_over_http1_in_tls_within_a_tenth_of_a_second() {
    in_every_phase(Wire::ONE_TLS).await;
}

// [STREAM-14] [ACCESS-2] [NET-30]
#[tokio::test]
async fn a_client_that_goes_ends_its_request_over_http2_within_a_tenth_of_a_second() {
    in_every_phase(Wire::TWO).await;
}

// [STREAM-14] [ACCESS-2] [NET-30]
#[tokio::test]
async fn a_client_that_goes_ends_its_request_over_http2_in_tls_within_a_tenth_of_a_second() {
    in_every_phase(Wire::TWO_TLS).await;
}

/// Waits until so many attempts are in flight, and returns how long that took.
async fn in_flight(column: &Column, count: u64) -> Duration {
    let begun = Instant::now();
    column
        .lb
        .eventually("the attempts in flight", async |lb| {
            lb.endpoint("gpu", 0).await["in_flight"] == count
        })
        .await;
    begun.elapsed()
}

/// No packet tells of a connection that is given up before it is made, so the gauge has to.
// [STREAM-14] [NET-11]
#[tokio::test]
async fn a_client_that_goes_while_its_connection_is_made_is_forgotten_at_once() {
    for upstream in Wire::ALL {
        let (_listener, _queued, address) = unanswering();
        let scheme = if upstream.tls { "https" } else { "http" };
        let url = format!("{scheme}://{address}/v1");
        for client in Wire::ALL {
            let wish = Wish {
                alone: true,
                instead: Some(&url),
                ..Wish::default()
            };
            let column = Column::start((client.tls, upstream), wish).await;
            let asking = Asking::begin(&column, client.version, true).await;
            in_flight(&column, 1).await;
            let patience = Patience::begin(Some(column.lb.pid()));
            drop(asking);
            let after = own(in_flight(&column, 0).await, &patience);
            column.lb.idle().await;
            let name = format!("{client:?}, {}", column.name);
            assert!(after < PROMISE, "{name}: {after:?}");
            all_told(&column, 1, &name).await;
        }
    }
}

// [STREAM-14] [NET-11]
#[tokio::test]
async fn a_client_that_goes_during_the_upstreams_handshake_closes_that_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    for upstream in [Wire::ONE_TLS, Wire::TWO_TLS] {
        for client in Wire::ALL {
            let wish = Wish {
                alone: true,
                instead: Some(&url),
                ..Wish::default()
            };
            let column = Column::start((client.tls, upstream), wish).await;
            let asking = Asking::begin(&column, client.version, true).await;
            let (mut socket, _) = listener.accept().await.unwrap();
            assert_eq!(socket.read_u8().await.unwrap(), HANDSHAKE);
            let patience = Patience::begin(Some(column.lb.pid()));
            let leaving = Instant::now();
            drop(asking);
            let mut hello = Vec::new();
            drop(socket.read_to_end(&mut hello).await);
            let after = own(leaving.elapsed(), &patience);
            column.lb.idle().await;
            let name = format!("{client:?}, {}", column.name);
            assert!(after < PROMISE, "{name}: {after:?}");
            all_told(&column, 1, &name).await;
        }
    }
}

/// The first byte of a TLS record that carries a `ClientHello`.
const HANDSHAKE: u8 = 22;

// [STREAM-14] [NET-21]
#[tokio::test]
async fn a_client_that_goes_while_it_waits_for_a_connection_is_never_heard_of_upstream() {
    for upstream in Wire::ALL {
        for client in Wire::ALL {
            let wish = Wish {
                alone: true,
                connections: &["max_per_endpoint: 1", "max_streams_per_connection: 1"],
                ..Wish::default()
            };
            let column = Column::start((client.tls, upstream), wish).await;
            let busy = Signal::new();
            column
                .provider
                .next(Script::stream().token("a").wait(&busy).finish());
            let mut first = Asking::begin(&column, client.version, true).await;
            first.until("\"a\"").await;
            let second = Asking::begin(&column, client.version, true).await;
            in_flight(&column, 2).await;
            let patience = Patience::begin(Some(column.lb.pid()));
            drop(second);
            let after = own(in_flight(&column, 1).await, &patience);
            let name = format!("{client:?}, {}", column.name);
            assert!(after < PROMISE, "{name}: {after:?}");
            busy.fire();
            assert_eq!(first.seen().await.end, End::Clean, "{name}");
            column.lb.idle().await;
            assert_eq!(column.provider.requests().len(), 1, "{name}");
            all_told(&column, 1, &name).await;
        }
    }
}
