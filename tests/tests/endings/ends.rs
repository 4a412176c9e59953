//! How a stream ends, by how its provider ends it.

use lb_tests::client::End;
use lb_tests::provider::{Script, Step, token};

use crate::client::{Asking, Seen};
use crate::column::{Column, Wish};

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
    tokens
        .iter()
        .map(|text| format!("data: {}\n\n", token(text)))
        .collect()
}

const DONE: &str = "data: [DONE]\n\n";

fn rows() -> Vec<Row> {
    let finish = token("")
        .replace("{\"content\":\"\"}", "{}")
        .replace("null", "\"stop\"");
    let two = || Script::stream().token("a").token("b");
    let clean = |name, script, body, incomplete| Row {
        name,
        script,
        stream: true,
        body,
        end: End::Clean,
        outcome: "ok",
        incomplete,
        failures: 0,
    };
    let cut = |name, script| Row {
        name,
        script,
        stream: true,
        body: events(&["a", "b"]),
        end: End::Cut,
        outcome: "truncated",
        incomplete: 0,
        failures: 1,
    };
    let sized = |length: &str| {
        Script::head(
            200,
            &[("content-type", "text/event-stream"), ("content-length", length)],
        )
        .bytes(events(&["a", "b"]))
    };
    let json = Row {
        name: "a JSON answer cut short",
        script: Script::head(
            200,
            &[("content-type", "application/json"), ("content-length", "1000")],
        )
        .bytes("{\"half\":")
        .close(),
        stream: false,
        body: "{\"half\":".to_owned(),
        ..cut("", Script::silent())
    };
    let whole = Row {
        name: "a whole JSON answer",
        script: Script::json(200, &[], &serde_json::json!({"ok": true})),
        stream: false,
        ..clean("", Script::silent(), "{\"ok\":true}".to_owned(), 0)
    };
    vec![
        clean(
            "[DONE] and the last chunk",
            two().finish(),
            format!("{}data: {finish}\n\n{DONE}", events(&["a", "b"])),
            0,
        ),
        clean(
            "a finish event and the last chunk",
            two().data(&finish).end(),
            format!("{}data: {finish}\n\n", events(&["a", "b"])),
            0,
        ),
        clean("neither, and the last chunk", two().end(), events(&["a", "b"]), 1),
        // Time for the tokens to be read: a reset throws away what its receiver has not.
        cut("a reset", two().pause(50).reset()),
        cut("a close without the last chunk", two().close()),
        cut("a short content-length", sized("9999").close()),
        cut("broken chunking", two().then(Step::Send("zz\r\n".into())).stall()),
        cut(
            "a close in a chunk",
            two().then(Step::Send("5\r\n".into())).close(),
        ),
        cut("silence", two().stall()),
        json,
        whole,
    ]
}

async fn ends(client: bool, upstream: bool) {
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
        for row in rows() {
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
async fn plain_clients_and_plain_providers() {
    ends(false, false).await;
}

// [STREAM-12] [STREAM-13] [ACCESS-1]
#[tokio::test]
async fn plain_clients_and_providers_over_tls() {
    ends(false, true).await;
}

// [STREAM-12] [STREAM-13] [ACCESS-1]
#[tokio::test]
async fn clients_over_tls_and_plain_providers() {
    ends(true, false).await;
}

// [STREAM-12] [STREAM-13] [ACCESS-1]
#[tokio::test]
async fn clients_and_providers_over_tls() {
    ends(true, true).await;
}
