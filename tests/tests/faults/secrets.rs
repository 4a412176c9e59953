//! Whose credentials and names go where.

use lb_tests::client::{chat_body, post};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Request, Script};
use lb_tests::setup::Setup;

const CLIENT_SECRETS: &str = "authorization: Bearer client-secret\r\nx-api-key: client-secret\r\n\
                              api-key: client-secret\r\ncookie: session=client-secret\r\n\
                              proxy-authorization: Basic client-secret\r\n";

// field faults X1, X2
#[tokio::test]
async fn every_attempt_carries_its_own_providers_credentials_and_no_one_elses() {
    let preferred = Provider::start(Script::error(503)).await;
    let alternate = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::pair(&preferred, &alternate)).await;
    let answer = lb
        .ask(post(
            "/v1/chat/completions",
            CLIENT_SECRETS,
            chat_body("chat", false),
        ))
        .await;
    assert_eq!(answer.status(), 200);
    let (first, second) = (preferred.request(0).await, alternate.request(0).await);
    assert_eq!(first.all("authorization"), ["Bearer key-of-gpu"]);
    assert_eq!(second.all("authorization"), ["Bearer key-of-alt"]);
    for (request, other) in [(&first, "key-of-alt"), (&second, "key-of-gpu")] {
        assert!(
            !request.head.contains("client-secret") && !request.head.contains(other),
            "{}",
            request.head
        );
    }
    for secret in ["client-secret", "key-of-gpu", "key-of-alt"] {
        assert!(!lb.log().contains(secret) && !answer.head.text.contains(secret));
        assert!(!lb.state().await.to_string().contains(secret));
    }
}

// field fault X2
#[tokio::test]
async fn a_provider_without_a_key_gets_none_and_one_with_passthrough_gets_the_clients() {
    let provider = Provider::start(Script::completion("ok")).await;
    let open = Lb::start(&Setup::single(&provider).without_keys()).await;
    open.ask(post(
        "/v1/chat/completions",
        CLIENT_SECRETS,
        chat_body("chat", false),
    ))
    .await;
    assert!(!provider.request(0).await.head.contains("client-secret"));

    let passing = Lb::start(
        &Setup::single(&provider)
            .without_keys()
            .provider("passthrough_auth: true"),
    )
    .await;
    passing
        .ask(post(
            "/v1/chat/completions",
            CLIENT_SECRETS,
            chat_body("chat", false),
        ))
        .await;
    assert_eq!(
        provider.request(1).await.all("authorization"),
        ["Bearer client-secret"]
    );
}

// field fault X3
#[tokio::test]
async fn an_alias_is_rewritten_in_the_request_and_left_alone_in_the_response() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    assert_eq!(lb.chat(false).await.json()["model"], "scripted");
    assert_eq!(provider.request(0).await.json()["model"], "gpu-model");
    provider.next(Script::streamed(&["a"]));
    assert!(lb.chat(true).await.text().contains("\"model\":\"scripted\""));
}

// field fault H2
// [STREAM-16]
#[tokio::test]
async fn of_the_request_body_only_the_model_changes_and_its_length_is_right() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let bodies = [
        r#"{"messages":[{"model":"chat"}], "model" :  "chat" ,"x":1e400,"dup":1,"dup":2}"#,
        "{\n\t\"model\":\"\\u0063hat\",\"text\":\"\\ud83d\\ude00 \u{1f600}\",\"stream\":false}\r\n",
        r#"{"stream":"yes","a":{"b":[{"model":"other","stream":true}]},"model":"chat"}"#,
    ];
    for (number, body) in bodies.into_iter().enumerate() {
        let answer = lb.ask(post("/v1/chat/completions", "", body)).await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let request: Request = provider.request(number).await;
        let at = [
            r#""model" :  "chat""#,
            r#""model":"\u0063hat""#,
            r#""model":"chat"}"#,
        ];
        let put = [
            r#""model" :  "gpu-model""#,
            r#""model":"gpu-model""#,
            r#""model":"gpu-model"}"#,
        ];
        let expected = body.replacen(at[number], put[number], 1);
        // The first body has the same text one level deeper, without the spaces.
        assert_eq!(String::from_utf8_lossy(&request.body), expected);
        assert_eq!(request.all("content-length"), [expected.len().to_string()]);
        assert_eq!(request.header("transfer-encoding"), None);
    }
}
