//! The HTTP surface for clients: what lb answers itself.

#![cfg(test)]

use lb_tests::client::{Answer, Exchange, chat_body, get, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

async fn start() -> (Provider, Lb) {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    (provider, lb)
}

/// Status, type and code of an error of lb's own, after a look at its form.
fn error(answer: &Answer) -> (u16, String, String) {
    let error = &answer.json()["error"];
    for member in ["message", "type", "param", "code"] {
        assert!(error.get(member).is_some(), "{member} in {}", answer.text());
    }
    assert_eq!(answer.head.header("content-type"), Some("application/json"));
    assert!(answer.head.header("x-request-id").is_some());
    let text = |member: &str| error[member].as_str().unwrap_or_default().to_owned();
    (answer.status(), text("type"), text("code"))
}

const PATH: &str = "/v1/chat/completions";

// [STREAM-23]
#[tokio::test]
async fn an_error_of_our_own_has_the_apis_form_its_status_and_its_code() {
    let (provider, lb) = start().await;
    let cases: [(Vec<u8>, u16, &str); 9] = [
        (post(PATH, "", "{"), 400, "invalid_json"),
        (post(PATH, "", "[]"), 400, "invalid_json"),
        (post(PATH, "", "{}"), 400, "invalid_json"),
        (post(PATH, "", r#"{"model":7}"#), 400, "invalid_json"),
        (
            post(PATH, "", r#"{"model":"chat","model":"chat"}"#),
            400,
            "invalid_json",
        ),
        (
            post(PATH, "", r#"{"model":"chat","stream":true,"stream":true}"#),
            400,
            "invalid_json",
        ),
        (
            post(PATH, "content-encoding: gzip\r\n", "xxxx"),
            415,
            "unsupported_encoding",
        ),
        (post(PATH, "", r#"{"model":"nothing"}"#), 404, "model_not_found"),
        (get("/v1/models/nothing"), 404, "model_not_found"),
    ];
    for (request, status, code) in cases {
        let answer = lb.ask(&request).await;
        let expected = (status, "invalid_request_error".to_owned(), code.to_owned());
        assert_eq!(error(&answer), expected, "{}", String::from_utf8_lossy(&request));
    }
    assert_eq!(provider.requests().len(), 0);
}

// [STREAM-23]
#[tokio::test]
async fn an_unknown_model_is_told_the_nearest_known_one() {
    let (_provider, lb) = start().await;
    let answer = lb.ask(post(PATH, "", r#"{"model":"chatt"}"#)).await;
    assert!(
        answer.json()["error"]["message"]
            .as_str()
            .unwrap()
            .contains("`chat`"),
        "{}",
        answer.text()
    );
    assert_eq!(answer.json()["error"]["param"], "model");
}

// [STREAM-23]
#[tokio::test]
async fn a_name_that_no_configuration_can_have_is_compared_with_none() {
    let provider = Provider::start(Script::completion("ok")).await;
    let longest = "m".repeat(256);
    let text =
        Setup::single(&provider).text() + &format!("  {longest}: {{ targets: [{{ provider: gpu }}] }}\n");
    let lb = Lb::with(&text).await;
    let message = async |name: &str| {
        let answer = lb.ask(get(&format!("/v1/models/{name}"))).await;
        answer.json()["error"]["message"].as_str().map(str::to_owned)
    };
    let near = &longest[1..];
    let told = format!("model `{near}` does not exist; did you mean `{longest}`?");
    assert_eq!(message(near).await, Some(told));
    let told = format!("model `{longest}` does not exist");
    assert_eq!(message(&format!("{longest}m")).await, Some(told));
}

// [STREAM-23]
#[tokio::test]
async fn a_body_over_the_limit_is_refused() {
    let provider = Provider::start(Script::completion("ok")).await;
    let text = Setup::single(&provider);
    let lb = Lb::start(&text.listener("max_body_bytes: 1000")).await;
    let large = format!(r#"{{"model":"chat","text":"{}"}}"#, "x".repeat(1000));
    assert_eq!(error(&lb.ask(post(PATH, "", &large)).await).0, 413);
    assert_eq!(
        lb.ask(post(PATH, "", chat_body("chat", false))).await.status(),
        200
    );
}

// [STREAM-24]
#[tokio::test]
async fn the_models_are_listed_from_the_configuration() {
    let (provider, lb) = start().await;
    let list = lb.ask(get("/v1/models")).await.json();
    assert_eq!(list["object"], "list");
    let model = &list["data"][0];
    assert_eq!(
        (&model["id"], &model["object"]),
        (&"chat".into(), &"model".into())
    );
    assert!(model["created"].is_u64() && model["owned_by"].is_string());
    assert_eq!(lb.ask(get("/v1/models/chat")).await.json(), *model);
    assert_eq!(provider.requests().len(), 0);
}

/// The digits of an id that tell when it was made, with the hyphen in them; within one millisecond there is no order.
const MILLISECONDS: usize = 13;

// [STREAM-25]
#[tokio::test]
async fn every_response_has_an_id_and_an_upstream_is_sent_the_same() {
    let (provider, lb) = start().await;
    let request = post(PATH, "x-request-id: mine\r\n", chat_body("chat", false));
    let mut ids = Vec::new();
    for number in 0..3 {
        let answer = lb.ask(&request).await;
        let id = answer.head.header("x-request-id").expect("an id").to_owned();
        assert_eq!(provider.request(number).await.all("x-request-id"), [id.as_str()]);
        assert_ne!(id, "mine", "a stranger does not choose it");
        ids.push(id);
    }
    let times: Vec<_> = ids.iter().map(|id| &id[..MILLISECONDS]).collect();
    assert!(times.is_sorted(), "ids sort by time: {ids:?}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3, "each its own");
}

// [STREAM-26]
#[tokio::test]
async fn who_answered_is_told_only_where_that_is_wanted() {
    let (provider, lb) = start().await;
    let answer = lb.ask(post(PATH, "", chat_body("chat", false))).await;
    assert!(!answer.head.text.contains("x-lb-"), "{}", answer.head.text);
    // What another lb behind this one says of itself is not this one's to tell.
    let inner = [
        ("x-lb-provider", "inner"),
        ("x-lb-model", "secret"),
        ("x-lb-other", "1"),
        ("x-kept", "1"),
    ];
    provider.next(Script::json(200, &inner, &"ok".into()));
    let head = lb.ask(post(PATH, "", chat_body("chat", false))).await.head;
    assert!(!head.text.contains("x-lb-"), "{}", head.text);
    assert_eq!(head.header("x-kept"), Some("1"));
    let lb = Lb::start(&Setup::single(&provider).server("reveal: endpoint")).await;
    provider.next(Script::json(200, &inner, &"ok".into()));
    let head = lb.ask(post(PATH, "", chat_body("chat", false))).await.head;
    assert_eq!(
        (head.all("x-lb-provider"), head.all("x-lb-other")),
        (vec!["gpu"], vec![])
    );
    let told =
        ["x-lb-provider", "x-lb-endpoint", "x-lb-model", "x-lb-attempts"].map(|name| head.header(name));
    assert_eq!(told, [Some("gpu"), Some("gpu-0"), Some("gpu-model"), Some("1")]);
}

// [STREAM-27]
#[tokio::test]
async fn a_client_key_is_asked_for_where_keys_are_configured() {
    let provider = Provider::start(Script::completion("ok")).await;
    // The SHA-256 of `open sesame`.
    let digest = "41ef4bb0b23661e66301aac36066912dac037827b4ae63a7b1165a5aa93ed4eb";
    let folder = lb_tests::daemon::Folder::new();
    let file = folder.write("key.sha256", digest);
    let keys = format!(
        "auth: {{ required: true, keys: [{{ name: team, sha256_file: {} }}] }}",
        file.display()
    );
    let lb = Lb::start(&Setup::single(&provider).section(&keys)).await;
    let ask = async |headers: &str| lb.ask(post(PATH, headers, chat_body("chat", false))).await;
    for wrong in [
        "",
        "authorization: Bearer wrong\r\n",
        "authorization: open sesame\r\n",
        "x-api-key: wrong\r\n",
    ] {
        assert_eq!(
            error(&ask(wrong).await),
            (401, "invalid_request_error".into(), "invalid_api_key".into())
        );
    }
    for right in [
        "authorization: Bearer open sesame\r\n",
        "x-api-key: open sesame\r\n",
    ] {
        assert_eq!(ask(right).await.status(), 200, "{right}");
    }
    assert_eq!(provider.requests().len(), 2);
    assert!(!provider.request(0).await.head.contains("sesame"));
}

// [STREAM-28]
#[tokio::test]
async fn a_kept_connection_serves_one_request_after_the_other() {
    let (provider, lb) = start().await;
    let mut exchange = Exchange::begin(lb.data(), get("/v1/models")).await;
    assert_eq!(exchange.answer().await.status(), 200);
    for stream in [false, true, false] {
        provider.next(if stream {
            Script::streamed(&["a"])
        } else {
            Script::completion("ok")
        });
        exchange.again(post(PATH, "", chat_body("chat", stream))).await;
        assert_eq!(exchange.answer().await.status(), 200);
    }
    exchange.again(post(PATH, "", "{")).await;
    assert_eq!(exchange.answer().await.status(), 400);
    assert_eq!(provider.connections().len(), 1);
}

// [STREAM-28]
#[tokio::test]
async fn a_client_that_asks_to_close_is_closed() {
    let (_provider, lb) = start().await;
    let request = post(PATH, "connection: close\r\n", chat_body("chat", false));
    let mut exchange = Exchange::begin(lb.data(), request).await;
    assert_eq!(exchange.answer().await.head.header("connection"), Some("close"));
    assert!(exchange.closed().await);
}
