//! The table.

use lb_tests::provider::Script;
use serde_json::json;

use super::Cooling::{Cleared, Starts, StartsFor};
use super::Ending::{NoTls, Refuses, Says, SaysAfterCooling, SaysOnReused, Unknown};
use super::Verdict::{Both, Failure, Success};
use super::{Ask, ROW, Retry, Row};

const FAILED: Row = Row {
    health: Failure,
    breaker: Failure,
    cooldown: Starts,
    retry: Retry::First,
    fails_over: true,
    ..ROW
};

const BUSY: Row = Row {
    cooldown: Starts,
    retry: Retry::IfAlone,
    fails_over: true,
    share: Some("breach"),
    ..ROW
};

const COMMITTED: Row = Row {
    health: Success,
    breaker: Success,
    share: Some("healthy"),
    ..ROW
};

fn error_event(code: u16) -> Script {
    let error = json!({"error": {"message": "scripted", "code": code}});
    Script::stream().data(&error.to_string()).end()
}

pub(super) const ROWS_OF_ANSWERS: &[Row] = &[
    Row {
        name: "2xx, stream committed",
        ending: Says(|| Script::streamed(&["good"])),
        ask: Ask::Stream,
        ..COMMITTED
    },
    Row {
        name: "2xx, of an attempt that was begun after its endpoint cooled",
        ending: SaysAfterCooling(|| Script::streamed(&["good"])),
        cooldown: Cleared,
        // The 429 was its breach.
        ask: Ask::Stream,
        ..COMMITTED
    },
    Row {
        name: "3xx",
        ending: Says(|| Script::head(303, &[("location", "/elsewhere"), ("content-length", "0")])),
        share: Some("unknown"),
        ..COMMITTED
    },
    Row {
        name: "500",
        ending: Says(|| Script::error(500)),
        ..FAILED
    },
    Row {
        name: "502",
        ending: Says(|| Script::error(502)),
        ..FAILED
    },
    Row {
        name: "504",
        ending: Says(|| Script::error(504)),
        ..FAILED
    },
    Row {
        name: "5xx that the controller lists as an overload",
        ending: Says(|| Script::error(500)),
        fallback: &[
            "first_token_timeout_ms: 8000",
            "aimd: { latency_budget_ms: 6000, overload_statuses: [500] }",
        ],
        share: Some("breach"),
        ..FAILED
    },
    Row {
        name: "5xx that asks for longer than any backoff",
        ending: Says(|| Script::json(500, &[("retry-after", "2")], &json!({}))),
        retry: Retry::Never,
        ..FAILED
    },
    Row {
        name: "5xx not in on_status",
        ending: Says(|| Script::error(501)),
        cooldown: super::Cooling::Left,
        retry: Retry::Never,
        fails_over: false,
        ..FAILED
    },
    Row {
        name: "5xx as an event before any data",
        ending: Says(|| error_event(500)),
        ask: Ask::Stream,
        ..FAILED
    },
    Row {
        name: "429",
        ending: Says(|| Script::error(429)),
        ..BUSY
    },
    Row {
        name: "503",
        ending: Says(|| Script::error(503)),
        ..BUSY
    },
    // Not in retries.on_status.
    Row {
        name: "529",
        ending: Says(|| Script::error(529)),
        retry: Retry::Never,
        ..BUSY
    },
    Row {
        name: "429 with a Retry-After",
        ending: Says(|| Script::json(429, &[("retry-after", "120")], &json!({}))),
        cooldown: StartsFor(90_000),
        // Nobody waits for two minutes.
        retry: Retry::Never,
        ..BUSY
    },
    Row {
        name: "429 as an event before any data",
        ending: Says(|| error_event(429)),
        ask: Ask::Stream,
        ..BUSY
    },
    Row {
        name: "503 that counts",
        ending: Says(|| Script::error(503)),
        provider: &["health: { count_backpressure: true }"],
        health: Failure,
        breaker: Failure,
        ..BUSY
    },
    // Not in on_status, so that it does not switch.
    Row {
        name: "408",
        ending: Says(|| Script::error(408)),
        fails_over: false,
        ..FAILED
    },
    Row {
        name: "408, where listed",
        ending: Says(|| Script::error(408)),
        fallback: &["on_status: [408]"],
        ..FAILED
    },
    Row {
        name: "499",
        ending: Says(|| Script::error(499)),
        ..FAILED
    },
    Row {
        name: "other 4xx",
        ending: Says(|| Script::error(404)),
        ..ROW
    },
    Row {
        name: "other 4xx, where listed",
        ending: Says(|| Script::error(404)),
        fallback: &["on_status: [404]"],
        cooldown: Starts,
        fails_over: true,
        ..ROW
    },
    Row {
        name: "400, where listed",
        ending: Says(|| Script::error(400)),
        fallback: &["on_status: [400]"],
        fails_over: true,
        ..ROW
    },
    Row {
        name: "empty stream",
        ending: Says(|| Script::stream().end()),
        ask: Ask::Stream,
        retry: Retry::Never,
        ..FAILED
    },
    Row {
        name: "a head that cannot be understood",
        ending: Says(|| Script::raw("HTTP/1.1 OK\r\n\r\n").close()),
        retry: Retry::Never,
        ..FAILED
    },
];

pub(super) const ROWS_OF_CONNECTIONS: &[Row] = &[
    Row {
        name: "connect failure",
        ending: Refuses,
        ..FAILED
    },
    Row {
        name: "TLS failure",
        ending: NoTls,
        ..FAILED
    },
    Row {
        name: "DNS: breaker only",
        ending: Unknown,
        health: super::Verdict::Neutral,
        cooldown: super::Cooling::Left,
        ..FAILED
    },
    Row {
        name: "reused connection broken at once",
        ending: SaysOnReused {
            at_once: true,
            script: || Script::silent().close(),
        },
        // What the fresh one makes of it.
        health: Success,
        breaker: Success,
        retry: Retry::Fresh,
        share: Some("healthy"),
        ..ROW
    },
    Row {
        name: "reused connection broken later",
        ending: SaysOnReused {
            at_once: false,
            script: || Script::silent().pause(300).close(),
        },
        ..FAILED
    },
    Row {
        name: "an unanswered request that may be repeated",
        ending: Says(|| Script::silent().close()),
        ..FAILED
    },
    Row {
        name: "an unanswered request that may not",
        ending: Says(|| Script::silent().close()),
        ask: Ask::Stored,
        retry: Retry::Never,
        fails_over: false,
        ..FAILED
    },
    Row {
        name: "failed after commit",
        ending: Says(|| Script::stream().token("half").pause(50).reset()),
        ask: Ask::Stream,
        health: Both,
        breaker: Both,
        ..COMMITTED
    },
    Row {
        name: "an error event after commit",
        ending: Says(|| {
            let error = json!({"error": {"message": "scripted", "code": 500}});
            Script::stream().token("half").data(&error.to_string()).end()
        }),
        ask: Ask::Stream,
        health: Both,
        breaker: Both,
        ..COMMITTED
    },
];

pub(super) const ROWS_OF_TIME: &[Row] = &[
    Row {
        name: "request timeout",
        ending: Says(|| Script::silent().stall()),
        provider: &["timeouts: { read_ms: 150 }"],
        retry: Retry::Never,
        ..FAILED
    },
    Row {
        name: "first-token deadline below the latency budget",
        ending: Says(|| Script::silent().stall()),
        ask: Ask::Stream,
        // A shorter deadline than the default budget is allowed where the controller has no settings of its own.
        fallback: &["first_token_timeout_ms: 150"],
        // Switching is the retry; at the last target a replica is.
        retry: Retry::IfAlone,
        ..FAILED
    },
    Row {
        name: "first-token deadline at the latency budget",
        ending: Says(|| Script::silent().stall()),
        ask: Ask::Stream,
        fallback: &["first_token_timeout_ms: 150", "aimd: { latency_budget_ms: 150 }"],
        retry: Retry::IfAlone,
        share: Some("breach"),
        ..FAILED
    },
    Row {
        name: "stalled after commit",
        ending: Says(|| Script::stream().token("half").stall()),
        ask: Ask::Stream,
        section: &["failover: { stream_idle_timeout_ms: 150 }"],
        health: Both,
        breaker: Both,
        ..COMMITTED
    },
    Row {
        name: "client gone",
        ending: Says(|| Script::silent().stall()),
        ask: Ask::Left,
        ..ROW
    },
    Row {
        name: "client gone after commit",
        ending: Says(|| Script::stream().token("half").stall()),
        ask: Ask::LeftStreaming,
        ..COMMITTED
    },
    Row {
        name: "cut by the total deadline",
        ending: Says(|| Script::silent().stall()),
        section: &["failover: { total_deadline_ms: 150 }"],
        ..ROW
    },
    Row {
        name: "cut by the total deadline of the visit",
        ending: Says(|| Script::silent().stall()),
        provider: &["retries: { total_deadline_ms: 150 }"],
        fails_over: true,
        ..ROW
    },
];
