//! What an HTTP/1.1 upstream may answer, byte by byte, and what becomes of it: section 3 of the HTTP checklist. The
//! table in docs/HTTP.md under Upstreams is this one in words.

use lb_tests::client::{Answer, End, chat_body, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

const OK: &str = "HTTP/1.1 200 OK\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const EVENTS: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// What the origin does behind its bytes.
#[derive(Clone, Copy, Debug)]
enum Then {
    Close,
    /// Keeps the connection, so that it would take the next request.
    Keep,
    Reset,
}

/// What the client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// This payload, and an abnormal end.
    Cut(&'static str),
    /// The next target's answer, or 502.
    Failed,
    /// This status and payload.
    Whole(u16, &'static str),
}

type Row = (String, Then, Fate);

fn row(bytes: impl Into<String>, then: Then, fate: Fate) -> Row {
    (bytes.into(), then, fate)
}

fn script((bytes, then, _): &Row) -> Script {
    let script = Script::raw(bytes.clone());
    match then {
        Then::Close => script.close(),
        Then::Keep => script,
        // Long enough that what was sent has been read: a reset throws the rest away.
        Then::Reset => script.pause(100).reset(),
    }
}

/// No answer at all, and heads that are none.
fn heads() -> Vec<Row> {
    let unfinished = [
        ("", Then::Close),
        ("", Then::Reset),
        ("HTTP/1.", Then::Close),
        ("HTTP/1.1 200 OK\r\ncontent-le", Then::Close),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n", Then::Reset),
        ("HTTP/1.1 103 Early Hints\r\n\r\n", Then::Close),
    ];
    let lines = [
        "nonsense\r\n\r\n",
        "\0\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 099 Low\r\n\r\n",
        "HTTP/1.1200 OK\r\n\r\n",
        "HTTP/1.2 200 OK\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/0.9 200 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "http/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 O\0K\r\n\r\n",
        "HTTP/1.1 200 O\rK\r\n\r\n",
    ];
    let fields = [
        "x-a : 1",
        ": 1",
        "no colon",
        "x-a: 1\r\n folded",
        " x-a: 1",
        "x(a: 1",
        "x-a: 1\0",
        "x-a: 1\r2",
        "x-a: \u{7f}",
    ];
    let fields = fields.map(|field| format!("{OK}{field}\r\ncontent-length: 2\r\n\r\n{{}}"));
    let lines = lines.map(str::to_owned).into_iter().chain(fields);
    let lines = lines.map(|text| row(text, Then::Keep, Fate::Failed));
    let unfinished = unfinished.map(|(text, then)| row(text, then, Fate::Failed));
    unfinished.into_iter().chain(lines).collect()
}

/// Framings that two readers could take differently.
fn framings() -> Vec<Row> {
    let framings = [
        "content-length: 2\r\ncontent-length: 3",
        "content-length: +2",
        "content-length: -2",
        "content-length: 0x2",
        "content-length: 2, 2",
        "content-length: 2 2",
        "content-length: 2.0",
        "content-length:",
        "content-length: 99999999999999999999999",
        "content-length: 2\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 2",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: chunked, gzip",
        "transfer-encoding: gzip",
        "transfer-encoding: identity",
        "transfer-encoding: xchunked",
        "transfer-encoding: ,chunked",
        "transfer-encoding: \"chunked\"",
        "transfer-encoding: \x0bchunked",
        "transfer-encoding:",
    ];
    let mut rows: Vec<Row> = framings
        .map(|framing| row(format!("{OK}{framing}\r\n\r\n{{}}"), Then::Keep, Fate::Failed))
        .into();
    let old = "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    rows.push(row(old, Then::Keep, Fate::Failed));
    rows
}

/// Heads beyond the limits, and answers that nobody asked for.
fn limits() -> Vec<Row> {
    let rows = [
        format!("{OK}x: {}\r\n\r\n", "x".repeat(70_000)),
        format!("HTTP/1.1 200 {}\r\n\r\n", "x".repeat(70_000)),
        format!("{OK}{}\r\n", "x: y\r\n".repeat(101)),
        "HTTP/1.1 102 Processing\r\n\r\n".repeat(33),
        format!("HTTP/1.1 103 Early\r\nx: {}\r\n\r\n", "x".repeat(70_000)),
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n".to_owned(),
    ];
    rows.into_iter()
        .map(|text| row(text, Then::Keep, Fate::Failed))
        .collect()
}

/// Chunks and lengths that break off behind a good head: the client has it already.
fn bodies() -> Vec<Row> {
    let chunks = [
        "2\r\n{}\r\nzz\r\n",
        "2\r\n{}\r\n0x2\r\n",
        "2\r\n{}\r\n-1\r\n",
        "2\r\n{}\r\n+1\r\n",
        "2\r\n{}\r\n 1\r\n",
        "2\r\n{}\r\n\r\n",
        "2\r\n{}\r\n11111111111111111\r\n",
        "2\r\n{}XX",
        "2\r\n{}\n0\r\n\r\n",
        "2\r\n{}\r\n0\n\n",
        "2\r\n{}\r\n0\r\nno colon\r\n\r\n",
        "2\r\n{}\r\n0\r\nx : 1\r\n\r\n",
        "2\r\n{}\r\n0\r\nx: 1\r\n folded\r\n\r\n",
        "2\r\n{}\r\n0\r\n\rX",
    ];
    let long = [
        format!("2\r\n{{}}\r\n0;{}\r\n\r\n", "x".repeat(5_000)),
        format!("2\r\n{{}}\r\n0\r\nx: {}\r\n\r\n", "x".repeat(70_000)),
        format!("2\r\n{{}}\r\n0\r\n{}\r\n", "x: y\r\n".repeat(101)),
    ];
    let broken = chunks.map(str::to_owned).into_iter().chain(long);
    let broken = broken.map(|body| row(format!("{CHUNKED}{body}"), Then::Keep, Fate::Cut("{}")));
    let cut = [
        "2\r\n{}",
        "2\r\n{}\r\n",
        "5\r\n{}",
        "2\r\n{}\r\n0",
        "2\r\n{}\r\n0\r\n",
    ];
    let cut = cut.iter().flat_map(|body| {
        [Then::Close, Then::Reset].map(|then| row(format!("{CHUNKED}{body}"), then, Fate::Cut("{}")))
    });
    let short = [Then::Close, Then::Reset].map(|then| {
        row(
            format!("{OK}content-length: 3\r\n\r\n{{}}"),
            then,
            Fate::Cut("{}"),
        )
    });
    let reset = row(format!("{OK}\r\n{{}}"), Then::Reset, Fate::Cut("{}"));
    broken.chain(cut).chain(short).chain([reset]).collect()
}

/// The same in an event stream before its first event, when nothing has been said to the client.
fn events() -> Vec<Row> {
    let broken = [
        "zz\r\n",
        "-1\r\n",
        "2\r\n: XX",
        "0\nX",
        "0\r\nno colon\r\n\r\n",
        "6\r\ndata: \r\nzz\r\n",
    ]
    .map(|body| row(format!("{EVENTS}{body}"), Then::Keep, Fate::Failed));
    let cut = ["", "2\r\n:", "6\r\ndata: \r\n", "3\r\n:\n\n\r\n0\r\n"]
        .map(|body| row(format!("{EVENTS}{body}"), Then::Close, Fate::Failed));
    broken.into_iter().chain(cut).collect()
}

/// What is whole, and no reason to use its connection again.
fn poisoned() -> Vec<Row> {
    let evil = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    let whole = |text: String, status, body| row(text, Then::Keep, Fate::Whole(status, body));
    vec![
        whole(format!("{OK}content-length: 2\r\n\r\n{{}}{evil}"), 200, "{}"),
        whole(format!("{OK}content-length: 2\r\n\r\n{{}}\n"), 200, "{}"),
        whole(format!("{CHUNKED}2\r\n{{}}\r\n0\r\n\r\n{evil}"), 200, "{}"),
        whole(format!("HTTP/1.1 204 No Content\r\n\r\n{evil}"), 204, ""),
        whole(
            "HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\n{}".into(),
            204,
            "",
        ),
        whole(
            "HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n".into(),
            204,
            "",
        ),
        whole(
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 2\r\n\r\n{}".into(),
            304,
            "",
        ),
        whole(
            format!("{OK}connection: close\r\ncontent-length: 2\r\n\r\n{{}}"),
            200,
            "{}",
        ),
        whole(
            format!("{OK}connection: x, Close\r\ncontent-length: 2\r\n\r\n{{}}"),
            200,
            "{}",
        ),
        whole("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}".into(), 200, "{}"),
        row(format!("{OK}\r\n{{}}"), Then::Close, Fate::Whole(200, "{}")),
        row(
            "HTTP/1.0 200 OK\r\n\r\n{}".to_owned(),
            Then::Close,
            Fate::Whole(200, "{}"),
        ),
    ]
}

/// What is odd and can be read in one way only: its connection is used again.
fn kept() -> Vec<Row> {
    let heads = [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\ncontent-length: 2\n\n",
        "HTTP/1.1 200\r\ncontent-length: 2\r\n\r\n",
        "HTTP/1.1 200 \r\ncontent-length: 002\r\n\r\n",
        "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTRANSFER-ENCODING: CHUNKED\r\n\r\n00002;a=\"b\"\r\n",
    ];
    let body = |head: &str| {
        if head.contains("CHUNKED") {
            "{}\r\n0\r\nx: y\r\n\r\n"
        } else {
            "{}"
        }
    };
    let rows = heads.map(|head| {
        row(
            format!("{head}{}", body(head)),
            Then::Keep,
            Fate::Whole(200, "{}"),
        )
    });
    let none = ["204 No Content", "304 Not Modified"].map(|line| {
        let status = line[..3].parse().expect("three digits");
        row(
            format!("HTTP/1.1 {line}\r\n\r\n"),
            Then::Keep,
            Fate::Whole(status, ""),
        )
    });
    rows.into_iter().chain(none).collect()
}

/// An event stream is asked for where the answer is one.
async fn ask(lb: &Lb, row: &Row) -> Answer {
    lb.chat(row.0.contains("text/event-stream")).await
}

fn without_health(setup: Setup) -> Setup {
    // Nor is anything tried twice, or left alone.
    setup
        .provider("health: { enabled: false }")
        .provider("circuit_breaker: { enabled: false }")
        .provider("retries: { max_attempts: 1 }")
}

// HTTP checklist 24, 29, 31, 35
// [HTTP-11] [HTTP-56]
#[tokio::test]
async fn an_answer_that_is_none_is_tried_elsewhere_and_ends_its_connection() {
    let preferred = Provider::start(Script::silent()).await;
    let alternate = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&without_health(Setup::pair(&preferred, &alternate))).await;
    let rows = [heads(), framings(), limits(), events()].concat();
    for (number, row) in rows.iter().enumerate() {
        preferred.next(script(row));
        let answer = ask(&lb, row).await;
        assert_eq!(answer.status(), 200, "{row:.120?}: {}", answer.text());
        assert!(answer.text().contains("\"ok\""), "{row:.120?}: {}", answer.text());
        assert_eq!(answer.end, End::Clean, "{row:.120?}");
        assert_eq!(
            preferred.requests().len(),
            number + 1,
            "{row:.120?} was tried once"
        );
        if matches!(row.1, Then::Keep) {
            preferred.left(number).await;
        }
        assert_eq!(
            preferred.request(number).await.connection,
            number,
            "{row:.120?} used before"
        );
    }
    assert_eq!(alternate.requests().len(), rows.len());
}

// HTTP checklist 24, 29, 31, 35
// [HTTP-11] [HTTP-56]
#[tokio::test]
async fn an_answer_that_is_none_and_has_no_alternate_is_a_bad_gateway_that_tells_nothing_of_it() {
    let provider = Provider::start(Script::silent()).await;
    let lb = Lb::start(&without_health(Setup::single(&provider))).await;
    for row in [heads(), framings(), limits(), events()].concat() {
        provider.next(script(&row));
        let answer = ask(&lb, &row).await;
        let empty = answer.code() == "upstream_empty" && row.0.contains("text/event-stream");
        assert!(
            empty || answer.code() == "upstream_error",
            "{row:.120?}: {}",
            answer.text()
        );
        assert_eq!((answer.status(), answer.end), (502, End::Clean), "{row:.120?}");
        for inside in ["127.0.0.1", "gpu", "malformed", "HTTP/1"] {
            assert!(!answer.text().contains(inside), "{row:.120?}: {}", answer.text());
        }
    }
}

// HTTP checklist 32, 33
// [HTTP-56] [STREAM-12]
#[tokio::test]
async fn a_body_that_breaks_is_cut_for_the_client_and_its_connection_ends() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&without_health(Setup::single(&provider))).await;
    for (number, row) in bodies().iter().enumerate() {
        provider.next(script(row));
        let answer = ask(&lb, row).await;
        let Fate::Cut(text) = row.2 else {
            unreachable!("all are cut")
        };
        assert_eq!(
            (answer.status(), answer.text().as_str(), answer.end),
            (200, text, End::Cut),
            "{row:.120?}"
        );
        if matches!(row.1, Then::Keep) {
            provider.left(number).await;
        }
        assert_eq!(
            provider.request(number).await.connection,
            number,
            "{row:.120?} used before"
        );
    }
}

// HTTP checklist 29, 30, 31, 32
// [HTTP-56] [HTTP-57]
#[tokio::test]
async fn a_connection_is_used_again_only_where_nothing_can_be_left_on_it() {
    let provider = Provider::start(Script::completion("next")).await;
    let lb = Lb::start(&without_health(Setup::single(&provider))).await;
    for (row, again) in poisoned()
        .iter()
        .map(|row| (row, false))
        .chain(kept().iter().map(|row| (row, true)))
    {
        let before = provider.requests().len();
        provider.next(script(row));
        let answer = ask(&lb, row).await;
        let Fate::Whole(status, text) = row.2 else {
            unreachable!("all are whole")
        };
        assert_eq!(
            (answer.status(), answer.text().as_str(), answer.end),
            (status, text, End::Clean),
            "{row:?}"
        );
        assert_eq!(
            lb.chat(false).await.json()["choices"][0]["message"]["content"],
            "next",
            "{row:?}"
        );
        let first = provider.request(before).await.connection;
        let second = provider.request(before + 1).await.connection;
        assert_eq!(first == second, again, "{row:?}");
    }
}

// HTTP checklist 30
// [HTTP-57]
#[tokio::test]
async fn what_comes_on_an_idle_connection_ends_it_and_answers_nobody() {
    let provider = Provider::start(Script::completion("next")).await;
    let lb = Lb::start(&without_health(Setup::single(&provider))).await;
    let evil = Script::raw("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
        .pause(50)
        .bytes("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil");
    provider.next(evil);
    assert_eq!(lb.chat(false).await.text(), "{}");
    provider.left(0).await;
    assert_eq!(
        lb.chat(false).await.json()["choices"][0]["message"]["content"],
        "next"
    );
    assert_eq!(provider.request(1).await.connection, 1);
}

// HTTP checklist 30
// [HTTP-12] [HTTP-57]
#[tokio::test]
async fn an_answer_to_head_has_no_body_whatever_it_says_and_bytes_behind_it_end_its_connection() {
    let provider = Provider::start(Script::completion("next")).await;
    let lb = Lb::start(&without_health(Setup::single(&provider))).await;
    let request = String::from_utf8(post("/v1/chat/completions", "", chat_body("chat", false))).unwrap();
    let request = request.replacen("POST", "HEAD", 1);
    for (number, (fields, again)) in [
        ("content-length: 5\r\n\r\n", true),
        ("transfer-encoding: chunked\r\n\r\n", true),
        ("content-length: 5\r\n\r\nhello", false),
        ("transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", false),
    ]
    .into_iter()
    .enumerate()
    {
        provider.next(Script::raw(format!("{OK}{fields}")));
        let mut exchange = lb_tests::client::Exchange::begin(lb.data(), request.as_bytes()).await;
        let head = exchange.head().await;
        assert_eq!(head.status, 200, "{fields:?}");
        exchange
            .again(post("/v1/chat/completions", "", chat_body("chat", false)))
            .await;
        let next = exchange.answer().await;
        assert_eq!(
            next.json()["choices"][0]["message"]["content"],
            "next",
            "{fields:?}"
        );
        let first = provider.request(2 * number).await.connection;
        assert_eq!(
            first == provider.request(2 * number + 1).await.connection,
            again,
            "{fields:?}"
        );
    }
}
