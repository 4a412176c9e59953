//! What a client key may use.

use lb_tests::client::{chat_body, get, post};
use lb_tests::daemon::{Folder, Lb};
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

fn digest(key: &str) -> String {
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("printf %s {key} | sha256sum")])
        .output()
        .expect("coreutils are there");
    String::from_utf8(output.stdout).expect("text")
}

async fn lb(provider: &Provider, folder: &Folder, required: bool) -> Lb {
    let limited = folder.write("limited", &digest("limited"));
    let free = folder.write("free", &digest("free"));
    let auth = format!(
        "auth: {{ required: {required}, keys: [{{ name: limited, sha256_file: {}, models: [chat, \"family/*\"] }}, {{ name: free, \
         sha256_file: {} }}] }}",
        limited.display(),
        free.display()
    );
    let setup = Setup::single(provider).section(&auth).section(
        "routes: [{ match: { path_prefix: /v1 }, to: models }, { match: {}, to: { provider: gpu } }]",
    );
    // `chat` stands last in the text, so that further models can follow it.
    let text = setup.text()
        + "  other: { targets: [{ provider: gpu }] }\n  \"family/*\": { targets: [{ provider: gpu }] }\n";
    Lb::with(&text).await
}

fn with(key: &str, target: &str, model: &str) -> Vec<u8> {
    post(
        target,
        &format!("authorization: Bearer {key}\r\n"),
        chat_body(model, false),
    )
}

// [KEY-1]
#[tokio::test]
async fn a_key_uses_and_sees_the_models_on_its_list_and_no_others() {
    let provider = Provider::start(Script::completion("ok")).await;
    let folder = Folder::new();
    let lb = lb(&provider, &folder, true).await;
    let chat = "/v1/chat/completions";
    for (key, model, status) in [
        ("limited", "chat", 200),
        ("limited", "family/x", 200),
        ("limited", "other", 404),
        ("limited", "nobody", 404),
        ("free", "other", 200),
        ("unknown", "chat", 401),
    ] {
        assert_eq!(
            lb.ask(with(key, chat, model)).await.status(),
            status,
            "{key} {model}"
        );
    }
    let refused = lb.ask(with("limited", chat, "othe")).await;
    assert_eq!(refused.code(), "model_not_found");
    assert!(
        !refused.text().contains("other"),
        "what it may not use is not told: {}",
        refused.text()
    );
    let list = |key: &str| format!("GET /v1/models HTTP/1.1\r\nhost: a\r\nx-api-key: {key}\r\n\r\n");
    let names = async |key| {
        let list = lb.ask(list(key)).await.json();
        let names = list["data"].as_array().expect("a list").iter();
        names
            .map(|model| model["id"].as_str().expect("a name").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("limited").await, ["chat"]);
    assert_eq!(names("free").await, ["chat", "other"]);
    let one = "GET /v1/models/other HTTP/1.1\r\nhost: a\r\nx-api-key: limited\r\n\r\n";
    assert_eq!(lb.ask(one).await.code(), "model_not_found");
}

// [KEY-4]
#[tokio::test]
async fn a_key_with_a_list_cannot_say_one_model_and_send_another() {
    let provider = Provider::start(Script::completion("ok")).await;
    let folder = Folder::new();
    let lb = lb(&provider, &folder, true).await;
    let send = |key: &str, fields: &str, body: &str| {
        let fields = format!("authorization: Bearer {key}\r\nx-lb-model: chat\r\n{fields}");
        lb.ask(post("/v1/chat/completions", &fields, body))
    };
    let other = r#"{"model":"other-up"}"#;
    let bom = format!("\u{feff}{other}");
    for (fields, body, status) in [
        ("content-encoding: x\r\n", other, 415),
        (
            "content-encoding: identity\r\ncontent-encoding: x\r\n",
            other,
            415,
        ),
        ("", r#"{"model":"other-up","x":NaN}"#, 400),
        ("", bom.as_str(), 400),
        ("", "model=other-up", 400),
        ("", r#"{"Model":"other-up"}"#, 400),
    ] {
        let refused = send("limited", fields, body).await;
        assert_eq!(refused.status(), status, "{fields} {body}");
    }
    assert_eq!(provider.requests().len(), 0, "none of them was sent");
    assert_eq!(
        send("limited", "", r#"{"x":1}"#).await.status(),
        200,
        "a body that hides nothing"
    );
    assert_eq!(send("free", "content-encoding: x\r\n", other).await.status(), 200);
}

// [KEY-4] [ENV-8]
#[tokio::test]
async fn a_form_has_no_second_model_under_a_second_name() {
    let provider = Provider::start(Script::completion("ok")).await;
    let folder = Folder::new();
    let lb = lb(&provider, &folder, true).await;
    let part = |names: &str, value: &str| {
        format!("--b0\r\ncontent-disposition: form-data{names}\r\n\r\n{value}\r\n")
    };
    let ask = |body: String| {
        lb.ask(format!(
            "POST /v1/audio/transcriptions HTTP/1.1\r\nhost: a\r\nx-api-key: limited\r\ncontent-type: \
             multipart/form-data; boundary=b0\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
    };
    let model = part("; name=\"model\"", "chat");
    let hidden = part("; name=\"x\"; name=\"model\"", "other-up");
    let refused = ask(format!("{model}{hidden}--b0--\r\n")).await;
    assert_eq!((refused.status(), refused.code().as_str()), (400, "invalid_json"));
    assert_eq!(provider.requests().len(), 0);
    assert_eq!(ask(format!("{model}--b0--\r\n")).await.status(), 200);
}

// [KEY-4] [PROXY-16]
#[tokio::test]
async fn a_query_names_one_model_and_it_is_the_one_that_was_allowed() {
    let provider = Provider::start(Script::completion("ok")).await;
    let folder = Folder::new();
    let lb = lb(&provider, &folder, true).await;
    let target = |query: &str, fields: &str| {
        lb.ask(format!(
            "GET /v1/realtime?{query} HTTP/1.1\r\nhost: a\r\nx-api-key: limited\r\n{fields}\r\n"
        ))
    };
    for query in ["model=chat&model=other-up", "model=chat&mod%65l=other-up"] {
        let refused = target(query, "").await;
        assert_eq!((refused.status(), refused.code().as_str()), (400, "bad_request"));
    }
    assert_eq!(provider.requests().len(), 0);
    assert_eq!(
        target("model=other-up", "x-lb-model: chat\r\n").await.status(),
        200
    );
    assert_eq!(provider.request(0).await.line().1, "/v1/realtime?model=gpu-model");
    let body = chat_body("family/x", false);
    let fields = format!("content-length: {}\r\n\r\n{body}", body.len());
    let request =
        format!("GET /v1/realtime?model=other-up&x HTTP/1.1\r\nhost: a\r\nx-api-key: limited\r\n{fields}");
    assert_eq!(lb.ask(request).await.status(), 200);
    assert_eq!(
        provider.request(1).await.line().1,
        "/v1/realtime?model=family/x&x"
    );
}

// [KEY-2]
#[tokio::test]
async fn a_key_with_a_list_goes_straight_to_no_provider() {
    let provider = Provider::start(Script::completion("ok")).await;
    let folder = Folder::new();
    let lb = lb(&provider, &folder, true).await;
    assert_eq!(
        lb.ask(with("limited", "/elsewhere", "chat")).await.code(),
        "not_found"
    );
    assert_eq!(lb.ask(with("free", "/elsewhere", "chat")).await.status(), 200);
}

// [KEY-3]
#[tokio::test]
async fn where_no_key_is_required_a_known_one_is_held_to_its_list() {
    let provider = Provider::start(Script::completion("ok")).await;
    let folder = Folder::new();
    let lb = lb(&provider, &folder, false).await;
    let chat = "/v1/chat/completions";
    assert_eq!(
        lb.ask(post(chat, "", chat_body("other", false))).await.status(),
        200
    );
    assert_eq!(lb.ask(with("unknown", chat, "other")).await.status(), 200);
    assert_eq!(lb.ask(with("limited", chat, "other")).await.status(), 404);
    assert_eq!(
        lb.ask(get("/v1/models")).await.json()["data"]
            .as_array()
            .map(Vec::len),
        Some(2)
    );
}
