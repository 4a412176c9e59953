//! Which failures another provider answers for.

use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Refusing, Script};
use lb_tests::setup::Setup;

async fn pair(preferred: Script) -> (Provider, Provider, Lb) {
    let preferred = Provider::start(preferred).await;
    let alternate = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::pair(&preferred, &alternate)).await;
    (preferred, alternate, lb)
}

// field faults R6, K1
#[tokio::test]
async fn a_client_error_passes_on_unchanged_and_blames_nobody() {
    let (preferred, alternate, lb) = pair(Script::silent()).await;
    for status in [400, 401, 403, 404, 422, 400, 400, 400, 400, 400] {
        preferred.next(Script::error(status));
        let answer = lb.chat(false).await;
        assert_eq!(answer.status(), status);
        assert_eq!(answer.json()["error"]["message"], format!("scripted {status}"));
    }
    assert_eq!(alternate.requests().len(), 0);
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "healthy");
}

#[tokio::test]
async fn a_refused_connection_is_answered_for_and_after_five_the_endpoint_is_out() {
    let (refusing, alternate) = (Refusing::new(), Provider::start(Script::completion("ok")).await);
    let lb = Lb::start(&Setup::refused(&refusing, &alternate)).await;
    for _ in 0..5 {
        assert_eq!(lb.chat(false).await.status(), 200);
    }
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "ejected");
    assert_eq!(
        lb.sum(
            "lb_ejections_total",
            &["endpoint=\"gpu-0\"", "cause=\"consecutive_failures\""]
        )
        .await,
        1
    );
}

// field fault K8
#[tokio::test]
async fn when_every_endpoint_is_out_requests_are_sent_all_the_same() {
    let provider = Provider::start(Script::error(500)).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    for _ in 0..5 {
        assert_eq!(lb.chat(false).await.status(), 500);
    }
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "ejected");
    provider.otherwise(Script::completion("ok"));
    assert_eq!(lb.chat(false).await.status(), 200);
    assert!(lb.sum("lb_fail_open_picks_total", &["provider=\"gpu\""]).await >= 1);
}

// field fault K5
#[tokio::test]
async fn an_ejected_endpoint_comes_back_by_itself() {
    let preferred = Provider::start(Script::error(500)).await;
    let alternate = Provider::start(Script::completion("ok")).await;
    let setup =
        Setup::pair(&preferred, &alternate).provider("health: { ejection_ms: 200, max_ejection_ms: 200 }");
    let lb = Lb::start(&setup).await;
    for _ in 0..5 {
        lb.chat(false).await;
    }
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "ejected");
    preferred.otherwise(Script::completion("back"));
    let back = async |lb: &Lb| lb.chat(false).await.text().contains("back");
    lb.eventually("the preferred provider to be used again", back)
        .await;
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "healthy");
}

// field fault R2
#[tokio::test]
async fn an_error_of_the_last_attempt_is_passed_on_as_it_was_sent() {
    let preferred = Provider::start(Script::error(500)).await;
    let error = serde_json::json!({"detail": "its own words"});
    let alternate = Provider::start(Script::json(429, &[("retry-after", "7")], &error)).await;
    let lb = Lb::start(&Setup::pair(&preferred, &alternate)).await;
    let answer = lb.chat(false).await;
    assert_eq!((answer.status(), answer.json()), (429, error));
    assert_eq!(answer.head.header("retry-after"), Some("7"));
}

#[tokio::test]
async fn when_nobody_answers_the_error_is_our_own_and_ends_the_clients_own_retries() {
    let (first, second) = (Refusing::new(), Refusing::new());
    let setup = Setup::new()
        .at("gpu", &[&first.url()])
        .at("alt", &[&second.url()]);
    let lb = Lb::start(&setup).await;
    let answer = lb.chat(false).await;
    assert_eq!((answer.status(), answer.code().as_str()), (502, "upstream_error"));
    assert_eq!(answer.head.header("x-should-retry"), Some("false"));
    assert_eq!(answer.json()["error"]["type"], "server_error");
}
