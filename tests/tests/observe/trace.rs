//! Trace context.

use lb_tests::client::{chat_body, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

// [TRACE-1] [ACCESS-4]
#[tokio::test]
async fn a_trace_context_goes_to_whom_it_may_and_into_the_line() {
    let first = Provider::start(Script::error(503)).await;
    let second = Provider::start(Script::completion("ok")).await;
    let text = Setup::pair(&first, &second).text();
    let text = text.replace(
        "api_key: key-of-alt",
        "api_key: key-of-alt, propagate_trace: true",
    );
    let lb = Lb::with(&text).await;
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let headers = format!("traceparent: {parent}\r\ntracestate: a=b\r\n");
    let answer = lb
        .ask(post("/v1/chat/completions", &headers, chat_body("chat", false)))
        .await;
    assert_eq!(answer.status(), 200);
    let (first, second) = (first.request(0).await, second.request(0).await);
    assert!(first.all("traceparent").is_empty() && first.all("tracestate").is_empty());
    assert_eq!(second.all("traceparent"), [parent.as_str()]);
    assert_eq!(second.all("tracestate"), ["a=b"]);
    assert_eq!(super::line(&lb, 0).await["trace_id"], TRACE);
}
