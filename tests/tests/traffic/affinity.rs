//! Conversations that stay together.

use lb_tests::client::post;
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use serde_json::json;

const PATH: &str = "/v1/chat/completions";

/// A turn of a conversation: with a key of its own, and with messages that begin alike and go on.
fn turn(conversation: u32, turn: usize, stream: bool) -> Vec<u8> {
    let mut messages = vec![
        json!({"role": "system", "content": "be brief"}),
        json!({"role": "user", "content": format!("secret question {conversation}")}),
    ];
    for more in 0..turn {
        messages.push(json!({"role": "assistant", "content": more}));
        messages.push(json!({"role": "user", "content": "go on"}));
    }
    let body = json!({
        "model": "chat", "stream": stream, "prompt_cache_key": format!("secret-key-{conversation}"),
        "messages": messages,
    });
    post(
        PATH,
        &format!("x-chat: secret-name-{conversation}\r\n"),
        body.to_string(),
    )
}

/// Which of the two was asked by each of three turns.
async fn turns(conversation: u32, both: [&Provider; 2], lb: &Lb, stream: bool) -> [usize; 2] {
    let before = both.map(|provider| provider.requests().len());
    for n in 0..3 {
        assert_eq!(lb.ask(turn(conversation, n, stream)).await.status(), 200);
    }
    let after = both.map(|provider| provider.requests().len());
    [after[0] - before[0], after[1] - before[1]]
}

// [AFFINITY-1] [AFFINITY-2] [AFFINITY-6]
#[tokio::test]
async fn by_conversation_the_turns_of_each_meet_the_same_endpoint() {
    for key in ["prompt_cache_key", "first_messages", "'header:x-chat'"] {
        let answer = || Script::completion("gpu");
        let (one, two) = (Provider::start(answer()).await, Provider::start(answer()).await);
        let setup = Setup::new()
            .at("gpu", &[&one.url(), &two.url()])
            .provider("balance: hash, hash_key: conversation")
            .model(&format!("affinity: {{ key: {key} }}"));
        let lb = Lb::start(&setup).await;
        for conversation in 0..12 {
            let asked = turns(conversation, [&one, &two], &lb, false).await;
            assert!(
                asked == [3, 0] || asked == [0, 3],
                "{key}: {conversation}: {asked:?}"
            );
        }
        assert!(!one.requests().is_empty() && !two.requests().is_empty());
        lb.ask(post(PATH, "", json!({"model": "chat"}).to_string())).await;
        let keyed = async |value: &str| {
            let label = format!("keyed=\"{value}\"");
            lb.sum("lb_affinity_requests_total", &["model=\"chat\"", &label])
                .await
        };
        assert_eq!((keyed("yes").await, keyed("no").await), (36, 1));
        let name = key.trim_matches('\'').split(':').next();
        assert_eq!(lb.state().await["models"][0]["affinity"].as_str(), name);
        assert!(
            !lb.log().contains("secret"),
            "what tells them apart is nobody's business"
        );
    }
}

// [AFFINITY-3]
#[tokio::test]
async fn under_a_share_each_conversation_begins_at_the_same_target_every_time() {
    let gpu = Provider::start(Script::error(429)).await;
    let alt = Provider::start(Script::streamed(&["alt"])).await;
    let aimd = "aimd: { min_samples: 2, window_samples: 2, dwell_ms: 1, share_decay: 0.5, share_floor: 0.5, \
                idle_recovery_ms: 0 }";
    let setup = Setup::pair(&gpu, &alt)
        .fallback("first_token_timeout_ms: 0")
        .fallback(aimd)
        .model("affinity: { key: prompt_cache_key }");
    let lb = Lb::start(&setup).await;
    while lb.pool().await["share"] != 0.5 {
        lb.chat(true).await;
    }
    // At its floor the share stays, whatever comes.
    let mut preferred = 0;
    for conversation in 0..16 {
        let asked = turns(conversation, [&gpu, &alt], &lb, true).await;
        assert!(asked == [3, 3] || asked == [0, 3], "{conversation}: {asked:?}");
        preferred += asked[0] / 3;
    }
    assert!(
        (1..16).contains(&preferred),
        "{preferred} of 16 begin at the preferred target"
    );
}

// [AFFINITY-4]
#[tokio::test]
async fn without_a_key_the_share_is_split_as_evenly_as_ever() {
    let gpu = Provider::start(Script::error(429)).await;
    let alt = Provider::start(Script::streamed(&["alt"])).await;
    let aimd = "aimd: { min_samples: 2, window_samples: 2, dwell_ms: 1, share_decay: 0.5, share_floor: 0.5, \
                idle_recovery_ms: 0 }";
    let setup = Setup::pair(&gpu, &alt)
        .fallback("first_token_timeout_ms: 0")
        .fallback(aimd)
        .model("affinity: { key: 'header:x-none' }");
    let lb = Lb::start(&setup).await;
    while lb.pool().await["share"] != 0.5 {
        lb.chat(true).await;
    }
    let before = gpu.requests().len();
    for _ in 0..20 {
        lb.ask(turn(0, 0, true)).await;
    }
    let asked = gpu.requests().len() - before;
    assert!((9..=11).contains(&asked), "half of 20, not {asked}");
}
