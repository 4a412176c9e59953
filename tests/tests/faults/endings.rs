//! How a stream ends.

use lb_tests::client::End;
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Signal, token};
use lb_tests::setup::Setup;

/// U1 with this script, and U2 that would answer "from alt".
async fn pair(preferred: Script) -> (Provider, Provider, Lb) {
    let preferred = Provider::start(preferred).await;
    let alternate = Provider::start(Script::streamed(&["from ", "alt"])).await;
    let lb = Lb::start(&Setup::pair(&preferred, &alternate)).await;
    (preferred, alternate, lb)
}

/// The bytes of one event per token.
fn events(tokens: &[&str]) -> String {
    tokens.iter().fold(String::new(), |all, text| {
        format!("{all}data: {}\n\n", token(text))
    })
}

/// The bytes of the whole answer of U2.
fn whole() -> String {
    let finish = token("")
        .replace("{\"content\":\"\"}", "{}")
        .replace("null", "\"stop\"");
    format!("{}data: {finish}\n\ndata: [DONE]\n\n", events(&["from ", "alt"]))
}

// field faults S1, S3
#[tokio::test]
async fn a_stream_that_is_reset_ends_abnormally_with_nothing_invented() {
    let seen = Signal::new();
    let four = ["a", "b", "c", "d"]
        .iter()
        .fold(Script::stream(), |script, text| script.token(text));
    let (_preferred, alternate, lb) = pair(four.wait(&seen).reset()).await;
    let mut exchange = lb.begin().await;
    assert_eq!(exchange.head().await.status, 200);
    let mut body = exchange.until("\"d\"").await;
    seen.fire();
    let end = loop {
        match exchange.piece().await {
            Ok(piece) => body.extend_from_slice(&piece),
            Err(end) => break end,
        }
    };
    assert_eq!(end, End::Cut);
    assert_eq!(String::from_utf8(body).unwrap(), events(&["a", "b", "c", "d"]));
    assert_eq!(
        alternate.requests().len(),
        0,
        "never another attempt after the commit"
    );
    lb.idle().await;
    let pool = lb.pool().await;
    assert_eq!(
        (&pool["window_samples"], &pool["breach_rate"]),
        (&1.into(), &0.0.into()),
        "healthy by its first frame"
    );
}

// field fault S3: every way to be cut short stays visible
// [STREAM-12]
#[tokio::test]
async fn an_answer_that_is_cut_short_is_never_ended_cleanly() {
    let (preferred, alternate) = (
        Provider::start(Script::silent()).await,
        Provider::start(Script::silent()).await,
    );
    // All of these are failures of one endpoint, which is not to be ejected meanwhile.
    let setup = Setup::pair(&preferred, &alternate).provider("health: { consecutive_failures: 100 }");
    let lb = Lb::start(&setup).await;
    let sized = || {
        Script::head(
            200,
            &[("content-type", "text/event-stream"), ("content-length", "1000")],
        )
    };
    let json = || {
        Script::head(
            200,
            &[("content-type", "application/json"), ("content-length", "1000")],
        )
    };
    let cuts = [
        Script::stream().token("a").close(),
        Script::stream()
            .token("a")
            .then(lb_tests::provider::Step::Send("zz\r\n".into()))
            .stall(),
        Script::stream()
            .token("a")
            .then(lb_tests::provider::Step::Send("5\r\nab".into()))
            .close(),
        sized().bytes(events(&["a"])).close(),
        sized().bytes(events(&["a"])).reset(),
        json().bytes("{\"half\":").close(),
    ];
    for cut in cuts {
        preferred.next(cut.clone());
        let answer = lb.chat(true).await;
        assert_eq!((answer.status(), answer.end), (200, End::Cut), "{cut:?}");
        assert!(
            !answer.text().contains("[DONE]") && !answer.text().contains("error"),
            "{cut:?}"
        );
    }
    lb.idle().await;
}

// field fault S2
// [STREAM-13]
#[tokio::test]
async fn a_clean_end_without_a_finish_passes_unchanged_and_is_counted() {
    let (_preferred, _alternate, lb) = pair(Script::stream().token("a").token("b").end()).await;
    let answer = lb.chat(true).await;
    assert_eq!((answer.end, answer.text()), (End::Clean, events(&["a", "b"])));
    lb.eventually("the count", async |lb| {
        lb.sum("lb_stream_incomplete_total", &["model=\"chat\""]).await == 1
    })
    .await;
}

// field fault S2
// [STREAM-13]
#[tokio::test]
async fn a_clean_end_after_done_or_a_finish_event_is_complete() {
    let (preferred, _alternate, lb) = pair(Script::streamed(&["a"])).await;
    assert_eq!(lb.chat(true).await.end, End::Clean);
    let finish = token("").replace("null", "\"stop\"");
    preferred.next(Script::stream().token("a").data(&finish).end());
    assert_eq!(lb.chat(true).await.end, End::Clean);
    lb.idle().await;
    assert_eq!(lb.sum("lb_stream_incomplete_total", &[]).await, 0);
}

// field fault S5
#[tokio::test]
async fn two_frames_and_a_close_in_one_go_are_delivered_before_the_end() {
    let both = Script::raw(format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n{}",
        events(&["a", "b"])
    ));
    let (_preferred, alternate, lb) = pair(both.close()).await;
    let answer = lb.chat(true).await;
    assert_eq!(
        (answer.status(), answer.end, answer.text()),
        (200, End::Cut, events(&["a", "b"]))
    );
    assert_eq!(alternate.requests().len(), 0);
}

// field fault S5
#[tokio::test]
async fn a_head_without_a_frame_fails_over_however_it_ends() {
    let (preferred, _alternate, lb) = pair(Script::silent()).await;
    let heads = [
        Script::stream().close(),
        Script::stream().reset(),
        Script::stream().bytes(": hello\n\n").close(),
        Script::stream().bytes("data: {\"half").close(),
    ];
    for head in heads {
        preferred.next(head.clone());
        let answer = lb.chat(true).await;
        assert_eq!(
            (answer.status(), answer.end, answer.text()),
            (200, End::Clean, whole()),
            "{head:?}"
        );
    }
    lb.idle().await;
}

// field fault S6
// [STREAM-6]
#[tokio::test]
async fn an_error_behind_preamble_events_fails_over() {
    let created = "event: response.created\ndata: {\"type\":\"response.created\"}\n\n";
    let progress = "event: response.in_progress\ndata: {\"type\":\"response.in_progress\"}\n\n";
    let error = "event: error\ndata: {\"type\":\"error\",\"code\":\"server_is_overloaded\"}\n\n";
    let script = Script::stream().bytes(created).bytes(progress).bytes(error).end();
    let (preferred, _alternate, lb) = pair(script).await;
    let answer = lb.chat(true).await;
    assert_eq!((answer.status(), answer.text()), (200, whole()));
    let message = "event: message_start\ndata: {\"type\":\"message_start\"}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n";
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    preferred.next(Script::stream().bytes(message).bytes(overloaded).end());
    assert_eq!(lb.chat(true).await.text(), whole());
}

// field faults S8, S10
// [STREAM-2]
#[tokio::test]
async fn an_overload_in_disguise_is_a_breach_and_fails_over_without_a_trace() {
    let overloaded = "event: error\ndata: {\"error\":{\"type\":\"overloaded_error\"}}\n\n";
    let (preferred, alternate, lb) = pair(Script::stream().bytes(overloaded).end()).await;
    let answer = lb.chat(true).await;
    assert_eq!(
        (answer.status(), answer.end, answer.text()),
        (200, End::Clean, whole())
    );
    assert_eq!((preferred.requests().len(), alternate.requests().len()), (1, 1));
    lb.idle().await;
    assert_eq!(lb.sum("lb_aimd_samples_total", &["outcome=\"breach\""]).await, 1);
    assert_eq!(
        lb.sum("lb_aimd_overload_breaches_total", &["status=\"529\""])
            .await,
        1
    );
}

// field fault S8
// [STREAM-3]
#[tokio::test]
async fn an_error_in_disguise_on_the_last_attempt_becomes_a_real_one() {
    let preferred = Provider::start(Script::silent()).await;
    let lb = Lb::start(&Setup::single(&preferred).provider("retries: { max_attempts: 1 }")).await;
    let cases = [
        (r#"{"error":{"type":"overloaded_error","message":"busy"}}"#, 529),
        (r#"{"error":{"code":503,"message":"down"}}"#, 503),
        (r#"{"error":{"code":"429"}}"#, 429),
        (r#"{"error":"something else"}"#, 502),
        (
            r#"{"error":{"type":"invalid_request_error","message":"too long"}}"#,
            400,
        ),
    ];
    for (json, status) in cases {
        preferred.next(
            Script::stream()
                .bytes(format!("event: error\ndata: {json}\n\n"))
                .end(),
        );
        let answer = lb.chat(true).await;
        assert_eq!((answer.status(), answer.text()), (status, json.to_owned()));
        assert_eq!(answer.head.header("content-type"), Some("application/json"));
    }
}

// field fault S8
#[tokio::test]
async fn a_client_error_in_disguise_is_not_tried_elsewhere() {
    let error = r#"{"error":{"type":"invalid_request_error","message":"too long"}}"#;
    let (_preferred, alternate, lb) = pair(Script::stream().data(error).end()).await;
    let answer = lb.chat(true).await;
    assert_eq!((answer.status(), answer.text()), (400, error.to_owned()));
    assert_eq!(alternate.requests().len(), 0);
}

// field fault S11
// [STREAM-4]
#[tokio::test]
async fn an_empty_stream_is_a_failed_attempt_that_says_nothing_of_the_share() {
    let (preferred, _alternate, lb) = pair(Script::stream().end()).await;
    assert_eq!(lb.chat(true).await.text(), whole());
    preferred.next(Script::stream().bytes(": only\n\n").bytes("data:\n\n").end());
    assert_eq!(lb.chat(true).await.text(), whole());
    lb.idle().await;
    assert_eq!(lb.sum("lb_aimd_samples_total", &["outcome=\"unknown\""]).await, 2);
    assert_eq!(lb.pool().await["window_samples"], 0);
}

// field fault S11
// [STREAM-4]
#[tokio::test]
async fn an_empty_stream_on_the_last_attempt_is_a_bad_gateway() {
    let preferred = Provider::start(Script::stream().end()).await;
    let lb = Lb::start(&Setup::single(&preferred)).await;
    let answer = lb.chat(true).await;
    assert_eq!((answer.status(), answer.code().as_str()), (502, "upstream_empty"));
}

// field fault S11
// [STREAM-5]
#[tokio::test]
async fn a_stream_of_nothing_but_done_is_a_valid_answer() {
    let (_preferred, alternate, lb) = pair(Script::stream().data("[DONE]").end()).await;
    let answer = lb.chat(true).await;
    assert_eq!(
        (answer.status(), answer.end, answer.text().as_str()),
        (200, End::Clean, "data: [DONE]\n\n")
    );
    assert_eq!(alternate.requests().len(), 0);
}

// [STREAM-12]
#[tokio::test]
async fn a_stream_that_has_told_its_failure_has_no_second_one() {
    let error = r#"{"error":{"message":"out of memory","code":500}}"#;
    let told = || Script::stream().token("a").data(error);
    for script in [told().close(), told().data(error).close(), told().stall()] {
        let gpu = Provider::start(script.clone()).await;
        let setup = Setup::single(&gpu).section("failover: { stream_idle_timeout_ms: 300 }");
        let lb = Lb::start(&setup).await;
        let answer = lb.chat(true).await;
        assert_eq!(answer.end, End::Cut, "{script:?}");
        lb.idle().await;
        let endpoint = lb.endpoint("gpu", 0).await;
        assert_eq!(endpoint["consecutive_failures"], 1, "{script:?}: {endpoint}");
    }
}

// [STREAM-3]
#[tokio::test]
async fn an_error_event_that_is_no_json_is_not_called_json() {
    for (data, kind) in [
        ("out of memory", "text/plain; charset=utf-8"),
        (r#"{"error":"out of memory"}"#, "application/json"),
    ] {
        let event = format!("event: error\ndata: {data}\n\n");
        let gpu = Provider::start(Script::stream().bytes(event).end()).await;
        let lb = Lb::start(&Setup::single(&gpu)).await;
        let answer = lb.chat(true).await;
        assert_eq!(
            (answer.text().as_str(), answer.head.header("content-type")),
            (data, Some(kind))
        );
    }
}
