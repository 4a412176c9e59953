//! How a stream ends, by how its provider ends it.

use lb_tests::client::End;
use lb_tests::provider::{Script, Step, token};

use crate::client::{Asking, Seen};
use crate::column::{Column, Wire, Wish};

/// An ending of the table in the specification.
struct Row {
    name: &'static str,
    script: Script,
    stream: bool,
    /// What comes of it to the client.
    body: String,
    end: End,
    /// What its line in the access log says.
    outcome: &'static str,
    /// What it adds to `lb_stream_incomplete_total` and `lb_stream_failures_total`.
    incomplete: u64,
    failures: u64,
}

fn events(tokens: &[&str]) -> String {
    tokens.iter().fold(String::new(), |all, text| {
        format!("{all}data: {}\n\n", token(text))
    })
}

const DONE: &str = "data: [DONE]\n\n";

fn two() -> Script {
    Script::stream().token("a").token("b")
}

/// Those that end as their framing promised.
fn whole() -> Vec<Row> {
    let finish = token("")
        .replace("{\"content\":\"\"}", "{}")
        .replace("null", "\"stop\"");
    let row = |name, script, body, incomplete| Row {
        name,
        script,
        stream: true,
        body,
        end: End::Clean,
        outcome: "ok",
        incomplete,
        failures: 0,
    };
    let tokens = events(&["a", "b"]);
    let finished = format!("{tokens}data: {finish}\n\n");
    let json = Script::json(200, &[], &serde_json::json!({"ok": true}));
    vec![
        row("[DONE]", two().finish(), format!("{finished}{DONE}"), 0),
        row("a finish event", two().data(&finish).end(), finished, 0),
        row("neither", two().end(), tokens, 1),
        Row {
            stream: false,
            ..row("JSON", json, "{\"ok\":true}".to_owned(), 0)
        },
    ]
}

/// Those that are cut short.
fn cut() -> Vec<Row> {
    let row = |name, script, body| Row {
        name,
        script,
        stream: true,
        body,
        end: End::Cut,
        outcome: "truncated",
        incomplete: 0,
        failures: 1,
    };
    let sized = |kind| Script::head(200, &[("content-type", kind), ("content-length", "9999")]);
    let tokens = || events(&["a", "b"]);
    let stream = sized("text/event-stream").bytes(tokens()).close();
    let json = sized("application/json").bytes("{\"half\":").close();
    vec![
        // Time for the tokens to be read: a reset throws away what its receiver has not.
        row("a reset", two().pause(50).reset(), tokens()),
        row("a close without the last chunk", two().close(), tokens()),
        row("a short content-length", stream, tokens()),
        row(
            "broken chunking",
            two().then(Step::Send("zz\r\n".into())).stall(),
            tokens(),
        ),
        row(
            "a close in a chunk",
            two().then(Step::Send("5\r\n".into())).close(),
            tokens(),
        ),
        row("silence", two().stall(), tokens()),
        Row {
            stream: false,
            ..row("JSON cut short", json, "{\"half\":".to_owned())
        },
    ]
}

async fn ends(upstream: Wire) {
    for client in [false, true] {
        ends_between(client, upstream).await;
    }
}

async fn ends_between(client: bool, upstream: Wire) {
    let wish = Wish {
        alone: true,
        // All of these are failures of one endpoint, which is not to be ejected meanwhile.
        provider: &["health: { consecutive_failures: 1000 }"],
        section: &["failover: { stream_idle_timeout_ms: 300 }"],
        ..Wish::default()
    };
    let column = Column::start((client, upstream), wish).await;
    let count = async |name: &str| column.lb.sum(name, &["model=\"chat\""]).await;
    for (version, name) in column.versions() {
        for row in whole().into_iter().chain(cut()) {
            let name = format!("{}: {name}", row.name);
            let before = (
                count("lb_stream_incomplete_total").await,
                count("lb_stream_failures_total").await,
            );
            let lines = column.lb.log().matches("\"request_id\"").count();
            column.provider.next(row.script);
            let asking = Asking::begin(&column, version, row.stream).await;
            let expected = Seen {
                status: 200,
                body: row.body,
                end: row.end,
            };
            assert_eq!(asking.seen().await, expected, "{name}");
            column
                .lb
                .eventually("the request's line", async |lb| {
                    lb.log().matches("\"request_id\"").count() > lines
                })
                .await;
            let log = column.lb.log();
            let line = log.lines().rfind(|line| line.contains("\"request_id\"")).unwrap();
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["outcome"], row.outcome, "{name}: {line}");
            assert_eq!(line["bytes_out"], expected.body.len(), "{name}: {line}");
            column.lb.idle().await;
            let after = (
                count("lb_stream_incomplete_total").await - before.0,
                count("lb_stream_failures_total").await - before.1,
            );
            assert_eq!(after, (row.incomplete, row.failures), "{name}");
        }
    }
    assert_eq!(column.alternate.requests().len(), 0);
}

// [STREAM-12] [STREAM-13] [ACCESS-1]
#[tokio::test]
async fn providers_of_http1() {
    ends(Wire::ONE).await;
}

// [STREAM-12] [STREAM-13] [ACCESS-1]
#[tokio::test]
async fn providers_of_http1_over_tls() {
    ends(Wire::ONE_TLS).await;
}

// [STREAM-12] [STREAM-13] [STREAM-29] [ACCESS-1] [NET-12] [NET-30]
#[tokio::test]
async fn providers_of_http2_by_prior_knowledge() {
    ends(Wire::TWO).await;
}

// [STREAM-12] [STREAM-13] [STREAM-29] [ACCESS-1] [NET-12] [NET-30]
#[tokio::test]
async fn providers_of_http2_by_alpn() {
    ends(Wire::TWO_TLS).await;
}
