//! Which target and which endpoint a request goes to, and what is sent there.

#![cfg(test)]

use std::fmt::Write as _;

use lb_tests::client::{Exchange, chat, chat_body, get, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};

/// A daemon with these providers (name, and the members of its entry) and these lines of models and presets.
async fn lb(providers: &[(&str, String)], rest: &str) -> Lb {
    let mut text = String::from(
        "version: 1\nlisteners: [{ name: data, address: \"127.0.0.1:0\" }]\nadmin: { address: \"127.0.0.1:0\" }\n\
         log: { format: json }\nserver: { workers: 1 }\nproviders:\n",
    );
    for (name, members) in providers {
        writeln!(text, "  {name}: {{ {members} }}").unwrap();
    }
    Lb::with(&format!("{text}{rest}")).await
}

/// The members of a provider with these endpoints.
fn at(providers: &[&Provider]) -> String {
    let endpoints = providers
        .iter()
        .map(|provider| format!("{{ url: \"{}\" }}", provider.url()));
    format!("endpoints: [{}]", endpoints.collect::<Vec<_>>().join(", "))
}

/// A provider that holds what it is asked, and one that answers.
async fn holding() -> Provider {
    Provider::start(Script::stream().token("a").stall()).await
}

async fn answering(text: &str) -> Provider {
    Provider::start(Script::completion(text)).await
}

/// Opens so many streams to a model, one after the other.
async fn open(lb: &Lb, model: &str, count: usize) -> Vec<Exchange> {
    let mut open = Vec::new();
    for _ in 0..count {
        let mut exchange = Exchange::begin(lb.data(), chat(model, true)).await;
        assert_eq!(exchange.head().await.status, 200);
        open.push(exchange);
    }
    open
}

// [ROUTE-1]
#[tokio::test]
async fn endpoints_of_a_provider_take_turns_by_what_is_in_flight_and_their_weight() {
    let (first, second) = (holding().await, holding().await);
    let endpoints = format!(
        "endpoints: [{{ url: \"{}\", weight: 3 }}, {{ url: \"{}\", weight: 1 }}]",
        first.url(),
        second.url()
    );
    let lb = lb(
        &[("gpu", endpoints)],
        "models: { chat: { targets: [{ provider: gpu }] } }",
    )
    .await;
    let _held = open(&lb, "chat", 8).await;
    assert_eq!((first.open(), second.open()), (6, 2));
}

// [ROUTE-2]
#[tokio::test]
async fn weighted_targets_take_turns_by_what_is_in_flight_and_their_weight() {
    let (first, second) = (holding().await, holding().await);
    let models = "models: { chat: { strategy: weighted, targets: [{ provider: one, weight: 1 }, \
                  { provider: three, weight: 3 }] } }";
    let lb = lb(&[("one", at(&[&first])), ("three", at(&[&second]))], models).await;
    let _held = open(&lb, "chat", 8).await;
    assert_eq!((first.open(), second.open()), (2, 6));
}

// [ROUTE-3]
#[tokio::test]
async fn an_ejected_endpoint_is_passed_over_for_its_siblings_before_the_alternate() {
    let (bad, good, alternate) = (
        Provider::start(Script::error(500)).await,
        answering("good").await,
        answering("alt").await,
    );
    let models = "models: { chat: { targets: [{ provider: gpu }, { provider: alt }] } }";
    let lb = lb(&[("gpu", at(&[&bad, &good])), ("alt", at(&[&alternate]))], models).await;
    lb.eventually("the bad endpoint to be out", async |lb| {
        lb.chat(false).await;
        lb.endpoint("gpu", 0).await["state"] == "ejected"
    })
    .await;
    let asked = (bad.requests().len(), alternate.requests().len());
    for _ in 0..10 {
        assert!(lb.chat(false).await.text().contains("good"));
    }
    assert_eq!((bad.requests().len(), alternate.requests().len()), asked);
}

// [ROUTE-4]
#[tokio::test]
async fn a_continuation_pool_has_its_own_path_and_order() {
    let (gpu, alternate) = (answering("gpu").await, answering("alt").await);
    let models = "models: { chat: { targets: [{ provider: gpu }, { provider: alt }], \
                  pools: { text: { paths: [/v1/completions], targets: [{ provider: alt, upstream_model: base }] } } } }";
    let lb = lb(&[("gpu", at(&[&gpu])), ("alt", at(&[&alternate]))], models).await;
    assert!(lb.chat(false).await.text().contains("gpu"));
    assert!(
        lb.ask(post("/v1/completions", "", r#"{"model":"chat","prompt":"x"}"#))
            .await
            .text()
            .contains("alt")
    );
    assert_eq!(alternate.request(0).await.json()["model"], "base");
}

// [ROUTE-5]
#[tokio::test]
async fn a_preset_goes_on_to_its_fallbacks_even_on_a_client_error() {
    let (gpu, alternate) = (
        Provider::start(Script::error(404)).await,
        answering("small").await,
    );
    let rest = "models: { large: { targets: [{ provider: gpu }] }, small: { targets: [{ provider: alt, upstream_model: tiny }] } }\n\
                presets: { assistant: { model: large, fallbacks: [fast] }, fast: { model: small } }";
    let lb = lb(&[("gpu", at(&[&gpu])), ("alt", at(&[&alternate]))], rest).await;
    assert!(lb.ask(chat("assistant", false)).await.text().contains("small"));
    assert_eq!(gpu.request(0).await.json()["model"], "large");
    assert_eq!(alternate.request(0).await.json()["model"], "tiny");
    assert_eq!(
        lb.ask(chat("large", false)).await.status(),
        404,
        "a plain model passes it on"
    );
    let listed = lb.ask(get("/v1/models")).await.json();
    let names: Vec<_> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].clone())
        .collect();
    for name in ["large", "small", "assistant", "fast"] {
        assert!(names.contains(&name.into()), "{name} in {names:?}");
    }
}

// [ROUTE-6]
#[tokio::test]
async fn a_family_and_a_catch_all_pass_the_clients_own_name() {
    let (exact, family, any) = (
        answering("exact").await,
        answering("family").await,
        answering("any").await,
    );
    let models = "models: { meta/one: { targets: [{ provider: exact }] }, \"meta/*\": { targets: [{ provider: family }] }, \
                  \"*\": { targets: [{ provider: any }] } }";
    let providers = [
        ("exact", at(&[&exact])),
        ("family", at(&[&family])),
        ("any", at(&[&any])),
    ];
    let lb = lb(&providers, models).await;
    for (model, provider) in [("meta/one", &exact), ("meta/two", &family), ("other", &any)] {
        assert_eq!(lb.ask(chat(model, false)).await.status(), 200);
        assert_eq!(provider.request(0).await.json()["model"], model);
    }
}

// [ROUTE-7]
#[tokio::test]
async fn what_is_disabled_is_passed_over() {
    let (gpu, alternate) = (answering("gpu").await, answering("alt").await);
    let disabled = "models: { chat: { targets: [{ provider: gpu, enabled: false }, { provider: alt }] } }";
    let target = lb(&[("gpu", at(&[&gpu])), ("alt", at(&[&alternate]))], disabled).await;
    assert!(target.chat(false).await.text().contains("alt"));
    let models = "models: { chat: { targets: [{ provider: gpu }, { provider: alt }] } }";
    let off = format!("{}, enabled: false", at(&[&gpu]));
    let provider = lb(&[("gpu", off), ("alt", at(&[&alternate]))], models).await;
    assert!(provider.chat(false).await.text().contains("alt"));
    assert_eq!(gpu.requests().len(), 0);
}

// [ROUTE-8]
#[tokio::test]
async fn statuses_of_the_fallback_decide_and_its_limits_hold() {
    let cases: [(&str, u16, u16); 6] = [
        ("{}", 501, 501),
        ("{ on_status: [5xx] }", 501, 200),
        ("{ on_status: [500] }", 503, 503),
        ("{ max_attempts: 1 }", 503, 503),
        ("{ enabled: false }", 503, 503),
        ("{ realtime_on_status: [] }", 529, 529),
    ];
    for (fallback, status, expected) in cases {
        let (gpu, alternate) = (
            Provider::start(Script::error(status)).await,
            answering("alt").await,
        );
        let models = format!(
            "models: {{ chat: {{ targets: [{{ provider: gpu }}, {{ provider: alt }}], fallback: {fallback} }} }}"
        );
        let lb = lb(&[("gpu", at(&[&gpu])), ("alt", at(&[&alternate]))], &models).await;
        assert_eq!(lb.chat(false).await.status(), expected, "{fallback} and {status}");
    }
}

// [ROUTE-8]
#[tokio::test]
async fn an_overloaded_answer_is_passed_on_to_an_exempt_request_only() {
    let (gpu, alternate) = (Provider::start(Script::error(529)).await, answering("alt").await);
    let models = "models: { chat: { targets: [{ provider: gpu }, { provider: alt }] } }";
    let lb = lb(&[("gpu", at(&[&gpu])), ("alt", at(&[&alternate]))], models).await;
    assert_eq!(lb.chat(false).await.status(), 200);
    let exempt = post(
        "/v1/chat/completions",
        "x-lb-exempt: 1\r\n",
        chat_body("chat", false),
    );
    assert_eq!(lb.ask(exempt).await.status(), 529);
    assert_eq!(
        gpu.request(1).await.header("x-lb-exempt"),
        None,
        "it is for lb alone"
    );
}

// [ROUTE-9]
#[tokio::test]
async fn the_endpoints_path_and_query_are_joined_to_the_requests() {
    let cases = [
        ("", "/v1/chat/completions", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions?a=1", "/v1/chat/completions?a=1"),
        (
            "/openai/v1",
            "/v1/chat/completions",
            "/openai/v1/chat/completions",
        ),
        (
            "/v1?api-version=2",
            "/v1/chat/completions?a=1",
            "/v1/chat/completions?a=1&api-version=2",
        ),
    ];
    for (path, asked, sent) in cases {
        let gpu = answering("ok").await;
        let url = format!("endpoints: [{{ url: \"http://{}{path}\" }}]", gpu.address());
        let lb = lb(
            &[("gpu", url)],
            "models: { chat: { targets: [{ provider: gpu }] } }",
        )
        .await;
        assert_eq!(
            lb.ask(post(asked, "", chat_body("chat", false))).await.status(),
            200
        );
        assert_eq!(gpu.request(0).await.line(), ("POST", sent), "{path} and {asked}");
    }
}

// [ROUTE-10]
#[tokio::test]
async fn a_providers_key_goes_where_it_wants_it_with_its_own_headers() {
    let gpu = answering("ok").await;
    let members = format!(
        "{}, api_key: secret, auth_header: x-api-key, headers: {{ anthropic-version: \"2023-06-01\" }}",
        at(&[&gpu])
    );
    let lb = lb(
        &[("gpu", members)],
        "models: { chat: { targets: [{ provider: gpu }] } }",
    )
    .await;
    assert_eq!(lb.chat(false).await.status(), 200);
    let request = gpu.request(0).await;
    assert_eq!(request.all("x-api-key"), ["secret"]);
    assert_eq!(request.header("authorization"), None);
    assert_eq!(request.all("anthropic-version"), ["2023-06-01"]);
}

// [ROUTE-11]
#[tokio::test]
async fn with_fail_open_off_nothing_is_sent_while_all_are_out() {
    let gpu = Provider::start(Script::silent().close()).await;
    let members = format!("{}, health: {{ fail_open: false }}", at(&[&gpu]));
    let lb = lb(
        &[("gpu", members)],
        "models: { chat: { targets: [{ provider: gpu }] } }",
    )
    .await;
    lb.eventually("the endpoint to be out", async |lb| {
        lb.chat(false).await;
        lb.endpoint("gpu", 0).await["state"] == "ejected"
    })
    .await;
    let asked = gpu.requests().len();
    let refused = lb.chat(false).await;
    assert_eq!(
        (refused.status(), refused.code().as_str()),
        (503, "no_provider_available")
    );
    assert!(refused.head.header("retry-after").is_some());
    assert_eq!(gpu.requests().len(), asked);
}
