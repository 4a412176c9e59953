//! What an application gets through the openai SDK of what lb says in a stream.

use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::sdk::Sdk;
use lb_tests::setup::Setup;
use serde_json::Value;

// [INSERT-1]
#[tokio::test]
async fn an_error_event_is_raised_as_an_api_error_with_its_message() {
    let Some(sdk) = Sdk::python() else { return };
    let provider = Provider::start(Script::stream().token("half ").token("an ").pause(50).reset()).await;
    let lb = Lb::start(&Setup::single(&provider).model("stream_error_event: true")).await;
    let seen = sdk.ask(&lb, &["chat-stream"]).await.remove(0);
    assert_eq!(seen["value"]["text"], "half an ");
    assert_eq!(seen["error"][0], "APIError", "{seen}");
    assert_eq!(seen["message"], "the provider's stream broke off");
}

// [INSERT-2] [NOTICE-2]
#[tokio::test]
async fn comments_are_nothing_to_it() {
    let Some(sdk) = Sdk::python() else { return };
    let script = Script::stream().token("all ").pause(300).token("well").finish();
    let provider = Provider::start(script).await;
    let lb = Lb::start(&Setup::single(&provider).model("sse_keepalive_ms: 50")).await;
    let seen = sdk.ask(&lb, &["chat-stream"]).await.remove(0);
    assert_eq!(
        (&seen["value"]["text"], &seen["error"]),
        (&"all well".into(), &Value::Null)
    );
}
