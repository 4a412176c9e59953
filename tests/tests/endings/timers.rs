//! What each timer does when it expires. The timers are short and real.

use std::time::{Duration, Instant};

use lb_tests::client::End;
use lb_tests::provider::Script;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::client::Asking;
use crate::column::{Column, Version, Wire, Wish};

/// Milliseconds of every timer here.
const SHORT: u64 = 300;

/// Asks, and how long it took.
async fn ask(column: &Column, version: Version, stream: bool) -> (crate::client::Seen, Duration) {
    let begun = Instant::now();
    let seen = Asking::begin(column, version, stream).await.seen().await;
    (seen, begun.elapsed())
}

/// That the timer expired, and no other that is longer.
fn in_time(name: &str, after: Duration) {
    assert!(after >= Duration::from_millis(SHORT), "{name}: after {after:?}");
}

async fn each(wish: Wish<'_>, test: impl AsyncFn(&Column, Version, &str)) {
    for client in [false, true] {
        for upstream in Wire::ALL {
            let column = Column::start((client, upstream), wish).await;
            for (version, name) in column.versions() {
                test(&column, version, &name).await;
                column.lb.idle().await;
            }
        }
    }
}

/// A port that takes one connection into its queue and answers no further SYN.
pub(crate) fn unanswering() -> (Socket, Vec<Socket>, String) {
    let socket = || Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
    let listener = socket();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    listener.bind(&any.into()).unwrap();
    listener.listen(0).unwrap();
    let address: SockAddr = listener.local_addr().unwrap();
    let mut queued = Vec::new();
    for _ in 0..4 {
        let filler = socket();
        filler.set_nonblocking(true).unwrap();
        // In progress, or for ever so.
        drop(filler.connect(&address));
        queued.push(filler);
    }
    let port = address.as_socket().unwrap().port();
    (listener, queued, format!("127.0.0.1:{port}"))
}

// [ACCESS-1]
#[tokio::test]
async fn connect_ms_sends_the_request_to_the_next_target() {
    for upstream in Wire::ALL {
        let scheme = if upstream.tls { "https" } else { "http" };
        let (_listener, _queued, address) = unanswering();
        let url = format!("{scheme}://{address}/v1");
        for client in [false, true] {
            let wish = Wish {
                instead: Some(&url),
                provider: &["timeouts: { connect_ms: 300 }"],
                ..Wish::default()
            };
            let column = Column::start((client, upstream), wish).await;
            for (version, name) in column.versions() {
                let (seen, after) = ask(&column, version, true).await;
                assert_eq!((seen.status, seen.end), (200, End::Clean), "{name}");
                assert!(seen.body.contains("\"ok\""), "{name}: {}", seen.body);
                in_time(&name, after);
            }
            let line = column
                .lb
                .logged(&["\"request_id\"", "\"outcome\":\"connect\""])
                .await;
            assert!(line.contains("\"provider\":\"alt\""), "{line}");
        }
    }
}

// [STREAM-10]
#[tokio::test]
async fn read_ms_bounds_the_wait_for_a_head() {
    let wish = Wish {
        alone: true,
        provider: &["timeouts: { read_ms: 300 }", "health: { enabled: false }"],
        ..Wish::default()
    };
    each(wish, async |column, version, name| {
        for stream in [false, true] {
            let (seen, after) = ask(column, version, stream).await;
            assert_eq!((seen.status, seen.end), (504, End::Clean), "{name}");
            assert!(seen.body.contains("upstream_timeout"), "{name}: {}", seen.body);
            in_time(name, after);
        }
    })
    .await;
}

// [STREAM-9]
#[tokio::test]
async fn first_token_timeout_ms_sends_the_request_to_the_next_target() {
    let wish = Wish {
        fallback: &["first_token_timeout_ms: 300", "aimd: { latency_budget_ms: 200 }"],
        provider: &["health: { enabled: false }"],
        ..Wish::default()
    };
    each(wish, async |column, version, name| {
        for silence in [
            Script::silent().stall(),
            Script::stream().bytes(": hm\n\n").stall(),
        ] {
            column.provider.next(silence);
            let (seen, after) = ask(column, version, true).await;
            assert_eq!((seen.status, seen.end), (200, End::Clean), "{name}");
            assert!(
                seen.body.contains("\"ok\"") && !seen.body.contains("hm"),
                "{name}"
            );
            in_time(name, after);
        }
    })
    .await;
}

// [STREAM-10]
#[tokio::test]
async fn stream_idle_timeout_ms_ends_what_is_committed_abnormally() {
    let wish = Wish {
        provider: &["health: { enabled: false }"],
        section: &["failover: { stream_idle_timeout_ms: 300 }"],
        ..Wish::default()
    };
    each(wish, async |column, version, name| {
        let json = Script::head(
            200,
            &[("content-type", "application/json"), ("content-length", "9")],
        );
        for (stream, script) in [(true, Script::stream().token("a").stall()), (false, json.stall())] {
            let number = column.provider.requests().len();
            column.provider.next(script);
            let (seen, after) = ask(column, version, stream).await;
            assert_eq!((seen.status, seen.end), (200, End::Cut), "{name}");
            assert!(!seen.body.contains("[DONE]"), "{name}");
            in_time(name, after);
            column.provider.left(number).await;
        }
        assert_eq!(column.alternate.requests().len(), 0, "{name}");
    })
    .await;
}

// [STREAM-10]
#[tokio::test]
async fn total_deadline_ms_ends_all_attempts_up_to_the_commit_and_none_after_it() {
    let wish = Wish {
        provider: &["health: { enabled: false }"],
        section: &["failover: { total_deadline_ms: 300 }"],
        ..Wish::default()
    };
    each(wish, async |column, version, name| {
        let (seen, after) = ask(column, version, true).await;
        assert_eq!((seen.status, seen.end), (504, End::Clean), "{name}");
        assert!(seen.body.contains("upstream_timeout"), "{name}: {}", seen.body);
        in_time(name, after);
        column
            .provider
            .next(Script::stream().token("a").pause(2 * SHORT).token("b").finish());
        let (seen, after) = ask(column, version, true).await;
        assert_eq!((seen.status, seen.end), (200, End::Clean), "{name}");
        assert!(seen.body.ends_with("data: [DONE]\n\n"), "{name}: {}", seen.body);
        in_time(name, after);
    })
    .await;
}
