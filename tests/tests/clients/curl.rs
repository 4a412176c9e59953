//! curl.

use std::process::Stdio;

use lb_tests::client::chat_body;
use lb_tests::daemon::{Lb, skip};
use lb_tests::provider::{Provider, Script, Signal};
use lb_tests::setup::Setup;
use tokio::process::Command;

#[tokio::test]
async fn curl_sees_tokens_as_they_come() {
    let late = Signal::new();
    let provider = Provider::start(
        Script::stream()
            .token("first")
            .wait(&late)
            .token("second")
            .finish(),
    )
    .await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let url = format!("http://{}/v1/chat/completions", lb.data());
    let mut command = Command::new("curl");
    command.args([
        "-sN",
        "--fail",
        "--max-time",
        "10",
        "-H",
        "content-type: application/json",
        "-d",
    ]);
    command
        .arg(chat_body("chat", true))
        .arg(url)
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let Ok(mut curl) = command.spawn() else {
        skip("curl is not installed");
        return;
    };
    let mut out = tokio::io::BufReader::new(curl.stdout.take().unwrap());
    let mut line = String::new();
    tokio::io::AsyncBufReadExt::read_line(&mut out, &mut line)
        .await
        .unwrap();
    assert!(line.contains("first"), "{line}");
    late.fire();
    let mut rest = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut out, &mut rest)
        .await
        .unwrap();
    assert!(rest.contains("second") && rest.ends_with("data: [DONE]\n\n"));
    assert!(curl.wait().await.unwrap().success());
}
