//! Spans, as a collector gets them.

use std::collections::BTreeMap;

use lb_tests::client::{chat_body, get, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Refusing, Script};
use lb_tests::setup::Setup;
use serde_json::Value;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

fn accepted() -> Script {
    Script::json(200, &[], &serde_json::json!({}))
}

fn traced(setup: Setup, collector: &str, ratio: &str) -> Setup {
    setup.section(&format!(
        "tracing: {{ otlp_endpoint: \"{collector}\", sample_ratio: {ratio} }}"
    ))
}

fn base(collector: &Provider) -> String {
    format!("http://{}", collector.address())
}

/// The spans of the `n`th export.
async fn exported(collector: &Provider, n: usize) -> Vec<Value> {
    let sent = collector.request(n).await;
    assert_eq!(sent.line(), ("POST", "/v1/traces"));
    assert_eq!(sent.header("content-type"), Some("application/json"));
    let message: Value = serde_json::from_slice(&sent.body).expect("OTLP's JSON form");
    let resources = message["resourceSpans"].as_array().expect("a list");
    assert_eq!(resources.len(), 1);
    let own = resources[0]["resource"]["attributes"].as_array().expect("a list");
    assert!(own.iter().any(|field| field["key"] == "service.name"));
    let spans = resources[0]["scopeSpans"][0]["spans"].as_array();
    spans.expect("a list").clone()
}

fn fields(span: &Value) -> BTreeMap<String, String> {
    let all = span["attributes"].as_array().expect("a list").iter();
    let field = |field: &Value| {
        let value = field["value"].as_object().expect("a value").values().next();
        let value = value.expect("of one kind");
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        (field["key"].as_str().expect("a key").to_owned(), text)
    };
    all.map(field).collect()
}

fn nanos(span: &Value, edge: &str) -> u64 {
    span[edge]
        .as_str()
        .and_then(|text| text.parse().ok())
        .expect("nanoseconds")
}

fn text<'s>(span: &'s Value, key: &str) -> &'s str {
    span[key].as_str().expect("text")
}

/// Fails unless `span` has these attributes.
fn has(span: &Value, expected: &[(&str, &str)]) {
    let fields = fields(span);
    for (key, value) in expected {
        let found = fields.get(*key).map(String::as_str);
        assert_eq!(found, Some(*value), "{key} in {fields:?}");
    }
}

fn asking(traceparent: &str, stream: bool) -> Vec<u8> {
    let header = format!("traceparent: {traceparent}\r\n");
    post("/v1/chat/completions", &header, chat_body("chat", stream))
}

// [SPAN-1] [SPAN-4] [TRACE-1]
#[tokio::test]
async fn a_request_is_a_span_and_so_is_each_of_its_attempts_below_it() {
    let collector = Provider::start(accepted()).await;
    let gpu = Provider::start(Script::error(503)).await;
    let alt = Provider::start(Script::streamed(&["a", "b"])).await;
    let text = traced(Setup::pair(&gpu, &alt), &base(&collector), "1.0").text();
    let text = text.replace(
        "api_key: key-of-alt",
        "api_key: key-of-alt, propagate_trace: true",
    );
    let lb = Lb::with(&text).await;
    let answer = lb.ask(asking(&format!("00-{TRACE}-{PARENT}-01"), true)).await;
    assert_eq!(answer.status(), 200);
    let spans = exported(&collector, 0).await;
    let [request, failed, answered] = &spans[..] else {
        panic!("{spans:?}");
    };
    assert!(spans.iter().all(|span| span["traceId"] == TRACE));
    assert_eq!(request["parentSpanId"], PARENT);
    for attempt in [failed, answered] {
        assert_eq!(attempt["parentSpanId"], request["spanId"]);
        assert!(nanos(attempt, "startTimeUnixNano") >= nanos(request, "startTimeUnixNano"));
        assert!(nanos(attempt, "endTimeUnixNano") <= nanos(request, "endTimeUnixNano"));
        assert!(nanos(attempt, "startTimeUnixNano") < nanos(attempt, "endTimeUnixNano"));
    }
    assert!(nanos(failed, "endTimeUnixNano") <= nanos(answered, "startTimeUnixNano"));
    // Who is told of the trace at all is called by its own attempt.
    assert!(gpu.request(0).await.all("traceparent").is_empty());
    assert_eq!(
        alt.request(0).await.all("traceparent"),
        [format!("00-{TRACE}-{}-01", self::text(answered, "spanId"))]
    );
    assert_eq!(
        (&request["name"], &request["kind"]),
        (&"chat chat".into(), &2.into())
    );
    has(
        request,
        &[
            ("http.request.method", "POST"),
            ("url.path", "/v1/chat/completions"),
            ("http.response.status_code", "200"),
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.request.model", "chat"),
            ("lb.outcome", "ok"),
            (
                "lb.request_id",
                answer.head.header("x-request-id").expect("an id"),
            ),
        ],
    );
    assert!(fields(request).contains_key("gen_ai.server.time_to_first_token"));
    assert_eq!(
        (&failed["name"], &failed["kind"]),
        (&"chat gpu-model".into(), &3.into())
    );
    has(
        failed,
        &[
            ("gen_ai.provider.name", "gpu"),
            ("gen_ai.request.model", "gpu-model"),
            ("lb.endpoint", "gpu-0"),
            ("error.type", "status"),
        ],
    );
    assert_eq!(failed["status"]["code"], 2);
    has(answered, &[("gen_ai.provider.name", "alt"), ("lb.outcome", "ok")]);
    assert!(!fields(answered).contains_key("error.type"));
    // The line names the same trace, and no span has a key, a prompt or a query.
    assert_eq!(super::line(&lb, 0).await["trace_id"], TRACE);
    let all = format!("{spans:?}");
    assert!(!all.contains("key-of-") && !all.contains("messages"), "{all}");
}

// [SPAN-1] [SPAN-2]
#[tokio::test]
async fn a_request_without_a_trace_begins_one_and_who_is_not_sampled_is_passed_on_as_it_came() {
    let collector = Provider::start(accepted()).await;
    let provider = Provider::start(Script::completion("ok")).await;
    let setup = || Setup::single(&provider).provider("propagate_trace: true");
    let lb = Lb::start(&traced(setup(), &base(&collector), "1")).await;
    lb.chat(false).await;
    let spans = exported(&collector, 0).await;
    assert!(spans[0]["parentSpanId"] == "");
    let told = format!(
        "00-{}-{}-01",
        text(&spans[0], "traceId"),
        text(&spans[1], "spanId")
    );
    assert_eq!(provider.request(0).await.all("traceparent"), [told]);
    assert_eq!(super::line(&lb, 0).await["trace_id"], text(&spans[0], "traceId"));
    // What lb answers by itself is a span without attempts.
    lb.ask(get("/v1/models")).await;
    assert_eq!(exported(&collector, 1).await.len(), 1);
    let lb = Lb::start(&traced(setup(), &base(&collector), "0")).await;
    let theirs = format!("00-{TRACE}-{PARENT}-01");
    lb.ask(asking(&theirs, false)).await;
    assert_eq!(provider.request(1).await.all("traceparent"), [theirs.as_str()]);
    // A trusted proxy decides for its requests.
    let trusting = setup().server("trusted_proxies: [127.0.0.1/32]");
    let trusting = traced(trusting, &base(&collector), "0").section("log: { access: false }");
    let trusting = trusting.text().replace("log: { format: json }\n", "");
    let lb = Lb::with(&trusting).await;
    lb.ask(asking(&format!("00-{TRACE}-{PARENT}-00"), false)).await;
    lb.ask(asking(&theirs, false)).await;
    let spans = exported(&collector, 2).await;
    assert_eq!((spans.len(), text(&spans[0], "traceId")), (2, TRACE));
    assert_ne!(provider.request(3).await.all("traceparent"), [theirs.as_str()]);
}

// [SPAN-3]
#[tokio::test]
async fn a_collector_that_is_not_there_costs_spans_and_nothing_else() {
    let (refusing, provider) = (Refusing::new(), Provider::start(Script::completion("ok")).await);
    let collector = refusing.url();
    let mut lb = Lb::start(&traced(Setup::single(&provider), &collector, "1")).await;
    assert_eq!(lb.chat(false).await.status(), 200);
    lb.eventually("lost spans", async |lb| {
        lb.sum("lb_spans_dropped_total", &[]).await == 2
    })
    .await;
    lb.logged(&["spans are not taken"]).await;
    lb.signal(rustix::process::Signal::TERM);
    assert!(lb.exit().await.success());
    assert_eq!(lb.count(&["spans are not taken"]), 1);
}

// [SPAN-3]
#[tokio::test]
async fn a_collector_that_says_nothing_keeps_no_request_and_what_is_queued_is_sent_at_the_end() {
    let (silent, provider) = (
        Provider::start(Script::silent().stall()).await,
        Provider::start(Script::completion("ok")).await,
    );
    let mut lb = Lb::start(&traced(Setup::single(&provider), &base(&silent), "1")).await;
    for _ in 0..20 {
        assert_eq!(lb.chat(false).await.status(), 200);
    }
    silent.request(0).await;
    lb.signal(rustix::process::Signal::TERM);
    assert!(lb.exit().await.success(), "it does not wait for it");
    let collector = Provider::start(accepted()).await;
    let mut lb = Lb::start(&traced(Setup::single(&provider), &base(&collector), "1")).await;
    lb.chat(false).await;
    lb.signal(rustix::process::Signal::TERM);
    assert!(lb.exit().await.success());
    assert_eq!(exported(&collector, 0).await.len(), 2);
}
