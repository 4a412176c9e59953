//! The daemon as a process: how it starts, refuses to start, and ends.

#![cfg(test)]

use std::process::Output;

use lb_tests::client::{End, Exchange, ask, chat, get};
use lb_tests::daemon::{Folder, Lb, command, skip};
use lb_tests::provider::{Provider, Refusing, Script, Signal};
use lb_tests::setup::Setup;
use rustix::process::Signal as Unix;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;

async fn lb<const N: usize>(arguments: [&str; N]) -> Output {
    command(arguments).output().await.expect("the binary starts")
}

/// What `lb run` and `lb check` say to this file; they must say the same.
async fn refused(text: &str) -> (i32, String) {
    let folder = Folder::new();
    let file = folder.write("lb.yaml", text);
    let file = file.to_str().expect("a plain path");
    let (run, check) = (lb(["run", "-c", file]).await, lb(["check", "-c", file]).await);
    let said =
        |output: &Output| String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).into_owned();
    assert_eq!(
        run.status.code(),
        check.status.code(),
        "{}\n{}",
        said(&run),
        said(&check)
    );
    assert!(said(&run).contains(file), "names the file: {}", said(&run));
    (run.status.code().expect("an exit, not a signal"), said(&run))
}

async fn valid() -> (Provider, String) {
    let provider = Provider::start(Script::completion("ok")).await;
    let text = Setup::single(&provider).text();
    (provider, text)
}

// [ADMIN-6]
#[tokio::test]
async fn bad_configuration_is_refused_with_its_place_and_a_way_out() {
    let (_provider, text) = valid().await;
    let cases = [
        ("server: { workerz: 1 }", vec!["workerz", "workers"]),
        ("server: { workers: lots }", vec!["workers"]),
        ("server: {}\nserver: {}", vec!["server"]),
        ("server: { workers: 1", vec![]),
        (
            "failover: { first_token_timeout_ms: 99999999 }",
            vec!["first_token_timeout_ms", "3600000"],
        ),
        (
            "auth: { keys: [{ name: a, sha256_file: /nonexistent/key }] }",
            vec!["/nonexistent/key"],
        ),
        ("log: { level: \"${LB_TEST_UNSET}\" }", vec!["LB_TEST_UNSET"]),
    ];
    for (bad, words) in cases {
        let section = bad.split(':').next().unwrap();
        let kept = text
            .lines()
            .filter(|line| !line.starts_with(&format!("{section}:")));
        let broken = format!("{}\n{bad}\n", kept.collect::<Vec<_>>().join("\n"));
        let (code, said) = refused(&broken).await;
        assert_eq!(code, 78, "{bad}: {said}");
        for word in words {
            assert!(said.contains(word), "{word} in the answer to {bad}: {said}");
        }
    }
}

// [ADMIN-6]
#[tokio::test]
async fn all_contradictions_are_told_at_once() {
    let (_provider, text) = valid().await;
    let fallback =
        "    fallback: { first_token_timeout_ms: 1000, aimd: { latency_budget_ms: 5000, share_step: 2 } }";
    let (code, said) = refused(&format!("{text}{fallback}\n")).await;
    assert_eq!(code, 78, "{said}");
    assert!(
        said.contains("share_step") && said.contains("latency_budget_ms"),
        "{said}"
    );
}

// [ADMIN-7]
#[tokio::test]
async fn exit_codes_say_what_kind_of_failure_it_was() {
    assert_eq!(
        lb(["run", "-c", "/nonexistent/lb.yaml"]).await.status.code(),
        Some(66)
    );
    assert_eq!(
        lb(["check", "-c", "/nonexistent/lb.yaml"]).await.status.code(),
        Some(66)
    );
    assert_eq!(lb(["no-such-verb"]).await.status.code(), Some(2));
    assert_eq!(lb(["--version"]).await.status.code(), Some(0));
    assert_eq!(lb(["--help"]).await.status.code(), Some(0));
    let (_provider, text) = valid().await;
    let folder = Folder::new();
    let file = folder.write("lb.yaml", &text);
    assert_eq!(
        lb(["check", "-c", file.to_str().unwrap()]).await.status.code(),
        Some(0)
    );
}

// [ADMIN-7]
#[tokio::test]
async fn a_port_in_use_ends_the_start_with_nothing_half_started() {
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (_provider, text) = valid().await;
    let folder = Folder::new();
    for line in ["listeners:", "admin:"] {
        let put = |text: &str| {
            let address = if text.starts_with(line) {
                &address
            } else {
                "127.0.0.1:0"
            };
            text.replace("127.0.0.1:0", address)
        };
        let text = text.lines().map(put).collect::<Vec<_>>().join("\n");
        let file = folder.write("lb.yaml", &text);
        let output = lb(["run", "-c", file.to_str().unwrap()]).await;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(69), "{line} {said}");
        assert!(said.contains(&address), "{said}");
    }
}

// [ADMIN-7]
#[tokio::test]
async fn a_port_that_takes_a_privilege_is_refused_by_name() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can take a privilege away from a child");
    }
    let (_provider, text) = valid().await;
    let folder = Folder::new();
    let file = folder.write("lb.yaml", &text.replacen("127.0.0.1:0", "127.0.0.1:81", 1));
    let binary = command([]).as_std().get_program().to_owned();
    let mut unprivileged = tokio::process::Command::new("setpriv");
    unprivileged
        .args(["--bounding-set", "-net_bind_service"])
        .arg(binary);
    let output = unprivileged.args(["run", "-c"]).arg(&file).output().await;
    let output = output.expect("util-linux is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(77), "{said}");
    for words in ["127.0.0.1:81", "CAP_NET_BIND_SERVICE", "lb.yaml:", "E403"] {
        assert!(said.contains(words), "{words} in {said}");
    }
}

// field fault X10
// [ADMIN-8]
#[tokio::test]
async fn a_stream_under_way_finishes_while_the_daemon_drains() {
    let late = Signal::new();
    let provider = Provider::start(Script::stream().token("a").wait(&late).token("b").finish()).await;
    let mut lb = Lb::start(&Setup::single(&provider)).await;
    let mut exchange = lb.begin().await;
    exchange.head().await;
    exchange.until("\"a\"").await;
    lb.signal(Unix::TERM);
    lb.eventually("readiness to end", async |lb| {
        ask(lb.admin(), get("/readyz")).await.status() == 503
    })
    .await;
    lb.eventually("new connections to be refused", async |lb| {
        tokio::net::TcpStream::connect(lb.data()).await.is_err()
    })
    .await;
    late.fire();
    exchange.until("[DONE]").await;
    assert_eq!(exchange.piece().await, Err(End::Clean));
    assert_eq!(lb.exit().await.code(), Some(0));
}

// field fault X10
// [ADMIN-8]
#[tokio::test]
async fn a_second_signal_ends_at_once_and_cuts_visibly() {
    let provider = Provider::start(Script::stream().token("a").stall()).await;
    for signals in [
        [Unix::TERM, Unix::TERM],
        [Unix::INT, Unix::INT],
        [Unix::QUIT, Unix::TERM],
    ] {
        let mut lb = Lb::start(&Setup::single(&provider)).await;
        let mut exchange = lb.begin().await;
        exchange.head().await;
        exchange.until("\"a\"").await;
        lb.signal(signals[0]);
        lb.eventually("readiness to end", async |lb| {
            ask(lb.admin(), get("/readyz")).await.status() == 503
        })
        .await;
        lb.signal(signals[1]);
        assert_eq!(exchange.piece().await, Err(End::Cut));
        assert_eq!(lb.exit().await.code(), Some(0));
    }
}

// [ADMIN-8]
#[tokio::test]
async fn at_the_drains_end_what_is_left_is_cut_visibly() {
    let provider = Provider::start(Script::stream().token("a").stall()).await;
    let mut lb = Lb::start(&Setup::single(&provider).server("drain_timeout_ms: 200")).await;
    let mut exchange = lb.begin().await;
    exchange.head().await;
    exchange.until("\"a\"").await;
    lb.signal(Unix::TERM);
    assert_eq!(exchange.piece().await, Err(End::Cut));
    assert_eq!(lb.exit().await.code(), Some(0));
    provider.left(0).await;
}

// [ADMIN-8]
#[tokio::test]
async fn an_idle_daemon_ends_at_once() {
    let (provider, _text) = valid().await;
    let mut lb = Lb::start(&Setup::single(&provider)).await;
    // A kept connection without a request does not hold the drain.
    let mut kept = Exchange::begin(lb.data(), chat("chat", false)).await;
    kept.answer().await;
    lb.signal(Unix::TERM);
    assert_eq!(lb.exit().await.code(), Some(0));
    assert!(kept.closed().await);
}

// [ADMIN-9]
#[tokio::test]
async fn signals_that_operators_send_by_habit_do_not_kill_it() {
    let (provider, _text) = valid().await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    for signal in [Unix::USR1, Unix::USR2, Unix::HUP, Unix::PIPE] {
        lb.signal(signal);
        assert_eq!(lb.chat(false).await.status(), 200, "{signal:?}");
    }
}

// [ADMIN-10]
#[tokio::test]
async fn nothing_secret_and_nothing_of_a_prompt_is_logged() {
    let (provider, _text) = valid().await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let body = r#"{"model":"chat","messages":[{"role":"user","content":"a private thing"}]}"#;
    let secrets = "authorization: Bearer client-secret\r\n";
    assert_eq!(
        lb.ask(lb_tests::client::post("/v1/chat/completions", secrets, body))
            .await
            .status(),
        200
    );
    provider.request(0).await;
    lb.idle().await;
    let log = lb.log();
    for secret in ["client-secret", "key-of-gpu", "a private thing"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

// [ACCESS-3] [ACCESS-7]
#[tokio::test]
async fn a_log_that_nobody_reads_stops_neither_service_nor_end() {
    let alternate = Provider::start(Script::completion("ok")).await;
    let text = Setup::refused(&Refusing::new(), &alternate).provider("health: { enabled: false }");
    let folder = Folder::new();
    let file = folder.write("lb.yaml", &text.text());
    let mut run = command(["run", "-c", file.to_str().unwrap()]);
    let mut child = run.env("RUNTIME_DIRECTORY", folder.path()).spawn().unwrap();
    // Read until it has started, and never again.
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut data = None;
    while let Some(line) = log.next_line().await.unwrap() {
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        data = data.or_else(|| line["address"].as_str()?.parse().ok());
        if line["message"] == "started" {
            break;
        }
    }
    // Several times what a pipe holds, in access lines and in events (each request fails over).
    let mut exchange = Exchange::begin(data.unwrap(), chat("chat", false)).await;
    for _ in 0..1000 {
        assert_eq!(exchange.answer().await.status(), 200);
        exchange.again(chat("chat", false)).await;
    }
    exchange.answer().await;
    let pid = rustix::process::Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
    rustix::process::kill_process(pid, Unix::TERM).unwrap();
    let ended = tokio::time::timeout(lb_tests::PATIENCE, child.wait()).await;
    assert_eq!(ended.expect("it ends").unwrap().code(), Some(0));
    drop(log);
}
