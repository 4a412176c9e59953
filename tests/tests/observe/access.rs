//! The access log.

use std::net::SocketAddr;

use lb_tests::client::{Exchange, ask, chat, chat_body, get, post};
use lb_tests::daemon::{Folder, Lb, command};
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::line;

const PATH: &str = "/v1/chat/completions";

// [ACCESS-1]
#[tokio::test]
async fn a_request_that_failed_over_is_one_line_with_both_its_attempts() {
    let preferred = Provider::start(Script::error(503)).await;
    let alternate = Provider::start(Script::streamed(&["a", "b"])).await;
    let lb = Lb::start(&Setup::pair(&preferred, &alternate)).await;
    let body = chat_body("chat", true);
    let answer = lb.ask(post(&format!("{PATH}?a=secret"), "", &body)).await;
    let line = line(&lb, 0).await;
    let id = answer.head.header("x-request-id").unwrap();
    for (key, expected) in [
        ("request_id", json!(id)),
        ("trace_id", json!(null)),
        ("key", json!(null)),
        ("client", json!("127.0.0.1")),
        ("method", json!("POST")),
        ("path", json!(PATH)),
        ("model", json!("chat")),
        ("preset", json!(null)),
        ("stream", json!(true)),
        ("status", json!(200)),
        ("outcome", json!("ok")),
        ("provider", json!("alt")),
        ("endpoint", json!("alt-0")),
        ("upstream_model", json!("alt-model")),
        ("bytes_in", json!(body.len())),
        ("bytes_out", json!(answer.body.len())),
        ("exempt", json!(false)),
        ("cancelled", json!(false)),
    ] {
        assert_eq!(line[key], expected, "{key} in {line}");
    }
    let told = |n: usize| ["provider", "endpoint", "outcome"].map(|key| line["attempts"][n][key].clone());
    assert_eq!(told(0), ["gpu", "gpu-0", "status"]);
    assert_eq!(told(1), ["alt", "alt-0", "ok"]);
    assert_eq!(line["attempts"].as_array().unwrap().len(), 2);
    let ms = |key: &str| line[key].as_f64().unwrap_or_else(|| panic!("{key} in {line}"));
    assert!(ms("queue_ms") <= ms("first_token_ms") && ms("first_token_ms") <= ms("total_ms"));
    assert!(line["attempts"][1]["ms"].as_f64().unwrap() <= ms("total_ms"));
}

// [ACCESS-1] [ACCESS-2]
#[tokio::test]
async fn what_lb_answers_itself_is_a_line_too() {
    let provider = Provider::start(Script::error(500)).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let cases = [
        (post(PATH, "", "{"), 400, "refused", json!(null)),
        (
            post(PATH, "", r#"{"model":"nothing"}"#),
            404,
            "refused",
            json!(null),
        ),
        (get("/v1/models"), 200, "ok", json!(null)),
        (get("/elsewhere"), 404, "refused", json!(null)),
        (
            post(PATH, "", chat_body("chat", false)),
            500,
            "failed",
            json!("chat"),
        ),
    ];
    for (number, (request, status, outcome, model)) in cases.into_iter().enumerate() {
        let answer = lb.ask(&request).await;
        let line = line(&lb, number).await;
        assert_eq!(
            [
                &line["status"],
                &line["outcome"],
                &line["model"],
                &line["bytes_out"]
            ],
            [&json!(status), &json!(outcome), &model, &json!(answer.body.len())],
            "{line}"
        );
    }
}

// [ACCESS-2]
#[tokio::test]
async fn a_client_that_leaves_is_a_line_however_far_its_request_was() {
    let provider = Provider::start(Script::silent().stall()).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    // In the middle of its body, waiting, and streaming.
    let half = post(PATH, "content-length: 100\r\n", "");
    let half = String::from_utf8(half)
        .unwrap()
        .replace("content-length: 0\r\n", "");
    drop(Exchange::begin(lb.data(), format!("{half}{{\"mod")).await);
    let early = line(&lb, 0).await;
    // The end of its body may be seen before its going.
    assert!(
        early["status"] == json!(null) || early["status"] == 400,
        "{early}"
    );
    assert_eq!((&early["model"], &early["attempts"]), (&json!(null), &json!([])));

    let waiting = lb.begin().await;
    provider.request(0).await;
    drop(waiting);
    let waiting = line(&lb, 1).await;
    assert_eq!(
        (&waiting["status"], &waiting["outcome"]),
        (&json!(null), &json!("cancelled"))
    );
    assert_eq!(waiting["attempts"][0]["outcome"], "cancelled");

    provider.next(Script::stream().token("a").stall());
    let mut streaming = lb.begin().await;
    streaming.head().await;
    streaming.until("\"a\"").await;
    drop(streaming);
    let streaming = line(&lb, 2).await;
    assert_eq!(
        (&streaming["status"], &streaming["outcome"]),
        (&json!(200), &json!("cancelled"))
    );
    assert_eq!(streaming["attempts"][0]["outcome"], "ok");
    assert!(streaming["first_token_ms"].is_number() && streaming["bytes_out"].as_u64() > Some(0));
}

// [ACCESS-5] [ADMIN-10]
#[tokio::test]
async fn a_line_has_the_keys_name_and_nothing_that_is_anybodys_secret() {
    let provider = Provider::start(Script::completion("the-answer")).await;
    let folder = Folder::new();
    // The SHA-256 of `open sesame`.
    let digest = "41ef4bb0b23661e66301aac36066912dac037827b4ae63a7b1165a5aa93ed4eb";
    let other = "0".repeat(64);
    let keys = format!(
        "auth: {{ required: true, keys: [{{ name: other, sha256_file: {} }}, {{ name: team, sha256_file: {} }}] }}",
        folder.write("other.sha256", &other).display(),
        folder.write("key.sha256", digest).display(),
    );
    let lb = Lb::start(&Setup::single(&provider).section(&keys)).await;
    let headers = "authorization: Bearer open sesame\r\nx-private: hush\r\n";
    let body = json!({"model": "chat", "messages": [{"role": "user", "content": "the-prompt"}]});
    lb.ask(post(&format!("{PATH}?token=hush"), headers, body.to_string()))
        .await;
    lb.ask(post(PATH, "x-api-key: wrong-key\r\n", chat_body("chat", false)))
        .await;
    assert_eq!(line(&lb, 0).await["key"], "team");
    let refused = line(&lb, 1).await;
    assert_eq!((&refused["key"], &refused["status"]), (&json!(null), &json!(401)));
    let log = lb.log();
    for secret in [
        "sesame",
        "hush",
        "the-prompt",
        "the-answer",
        "wrong-key",
        "key-of-gpu",
        "?",
    ] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

// [ACCESS-6]
#[tokio::test]
async fn the_log_can_be_off_text_and_is_written_whatever_the_level() {
    let provider = Provider::start(Script::completion("ok")).await;
    let text = Setup::single(&provider).text();
    let with = |log: &str| text.replace("log: { format: json }", log);
    let lb = Lb::with(&with("log: { format: json, access: false }")).await;
    lb.chat(false).await;
    lb.idle().await;
    let mut lb = lb;
    lb.signal(rustix::process::Signal::TERM);
    lb.exit().await;
    assert!(!lb.log().contains("request_id"), "{}", lb.log());

    let folder = Folder::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let quiet =
        with("log: { format: text, level: error }").replace("127.0.0.1:0\" }]", &format!("{address}\" }}]"));
    let file = folder.write("lb.yaml", &quiet);
    let mut child = command(["run", "-c"]).arg(&file).spawn().unwrap();
    while tokio::net::TcpStream::connect(address).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(ask(address, chat("chat", false)).await.status(), 200);
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut log = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut child.stderr.take().unwrap(), &mut log)
        .await
        .unwrap();
    assert_eq!(log.lines().count(), 1, "only the request's line: {log}");
    assert!(
        log.contains("INFO request") && log.contains("outcome=\"ok\"") && log.contains("model=\"chat\""),
        "{log}"
    );
}

// [ACCESS-3]
#[tokio::test]
async fn every_line_is_written_before_lb_ends() {
    let provider = Provider::start(Script::completion("ok")).await;
    let mut lb = Lb::start(&Setup::single(&provider)).await;
    for _ in 0..50 {
        lb.chat(false).await;
    }
    assert_eq!(lb.sum("lb_access_log_dropped_total", &[]).await, 0);
    lb.signal(rustix::process::Signal::TERM);
    assert!(lb.exit().await.success());
    lb.eventually("all of the log", async |lb| {
        lb.log().matches("\"request_id\"").count() == 50
    })
    .await;
}

// [ACCESS-3] [ACCESS-6]
#[tokio::test]
async fn lines_of_text_that_nobody_reads_in_time_are_counted_too() {
    let provider = Provider::start(Script::completion("ok")).await;
    let text = Setup::single(&provider)
        .text()
        .replace("log: { format: json }", "log: { format: text }");
    let folder = Folder::new();
    let mut run = command(["run", "-c", folder.write("lb.yaml", &text).to_str().unwrap()]);
    let mut child = run.env("RUNTIME_DIRECTORY", folder.path()).spawn().unwrap();
    // Read until it has started, and not again for now.
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut said = String::new();
    while !said.contains(" started ") {
        said.push_str(&log.next_line().await.unwrap().expect("it starts"));
        said.push('\n');
    }
    let address = |field: &str| -> SocketAddr {
        let (_, rest) = said.split_once(field).expect("it says where");
        rest.split_whitespace()
            .next()
            .unwrap()
            .trim_matches('"')
            .parse()
            .unwrap()
    };
    let (data, admin) = (address(" address="), address(" admin="));
    let dropped = async || {
        let page = ask(admin, get("/metrics")).await.text();
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix("lb_access_log_dropped_total "));
        line.unwrap().parse::<usize>().unwrap()
    };
    // More than the pipe and the queue hold: 8192 lines, and what is being written.
    let mut client = Exchange::begin(data, "").await;
    let mut sent = 0;
    while dropped().await == 0 {
        assert!(sent < 50_000, "nothing is counted");
        client.send(get("/v1/models").repeat(500)).await;
        for _ in 0..500 {
            assert_eq!(client.answer().await.status(), 200);
        }
        sent += 500;
    }
    let lost = dropped().await;
    let pid = rustix::process::Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let mut written = 0;
    while let Some(line) = log.next_line().await.unwrap() {
        written += usize::from(line.contains(" request request_id="));
    }
    assert_eq!(written + lost, sent);
    assert!(child.wait().await.unwrap().success());
}
