//! What an application gets through the openai SDK of what lb says in a stream.

use std::path::Path;
use std::process::Stdio;

use lb_tests::daemon::{Lb, openai_python};
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use serde_json::Value;
use tokio::process::Command;

async fn streamed(python: &str, lb: &Lb) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/chat.py");
    let mut command = Command::new(python);
    command
        .arg(script)
        .args([&format!("http://{}/v1", lb.data()), "stream"])
        .stdin(Stdio::null())
        .env("NO_PROXY", "*")
        .kill_on_drop(true);
    let output = command.output().await.expect("the interpreter starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

// [INSERT-1]
#[tokio::test]
async fn an_error_event_is_raised_as_an_api_error_with_its_message() {
    let Some(python) = openai_python() else { return };
    let provider = Provider::start(Script::stream().token("half ").token("an ").pause(50).reset()).await;
    let lb = Lb::start(&Setup::single(&provider).model("stream_error_event: true")).await;
    let seen = streamed(&python, &lb).await;
    assert_eq!(seen["text"], "half an ");
    assert_eq!(seen["error"][0], "APIError", "{seen}");
    assert_eq!(seen["message"], "the provider's stream broke off");
}

// [INSERT-2] [NOTICE-2]
#[tokio::test]
async fn comments_are_nothing_to_it() {
    let Some(python) = openai_python() else { return };
    let script = Script::stream().token("all ").pause(300).token("well").finish();
    let provider = Provider::start(script).await;
    let lb = Lb::start(&Setup::single(&provider).model("sse_keepalive_ms: 50")).await;
    let seen = streamed(&python, &lb).await;
    assert_eq!(
        (&seen["text"], &seen["error"]),
        (&"all well".into(), &Value::Null)
    );
}
