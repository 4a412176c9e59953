//! Endpoints that are probed.

use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Refusing, Script};
use lb_tests::setup::Setup;

fn probing(more: &str) -> String {
    format!(
        "health: {{ ejection_ms: 60000, active: {{ interval_ms: 100, timeout_ms: 100, unhealthy_after: 2{more} }} }}"
    )
}

async fn is(lb: &Lb, state: &str) {
    let there = async |lb: &Lb| lb.endpoint("gpu", 0).await["state"] == state;
    lb.eventually(state, there).await;
}

// [PROBE-1]
#[tokio::test]
async fn probes_eject_and_readmit_an_endpoint_that_no_request_goes_to() {
    let provider = Provider::start(Script::error(500)).await;
    let lb = Lb::start(&Setup::single(&provider).provider(&probing(""))).await;
    is(&lb, "ejected").await;
    assert_eq!(lb.endpoint("gpu", 0).await["cause"], "probe");
    assert!(lb.sum("lb_ejections_total", &["cause=\"probe\""]).await == 1);
    provider.otherwise(Script::completion("ok"));
    is(&lb, "healthy").await;
    assert!(lb.sum("lb_probes_total", &["result=\"good\""]).await >= 2);
    assert_eq!(provider.request(0).await.line(), ("GET", "/health"));
}

// [PROBE-1]
#[tokio::test]
async fn a_bare_connection_is_a_probe_too() {
    let refusing = Refusing::new();
    let alt = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::refused(&refusing, &alt).provider(&probing(", kind: tcp"))).await;
    is(&lb, "ejected").await;
    assert!(
        lb.sum("lb_probes_total", &["provider=\"alt\"", "result=\"bad\""])
            .await
            == 0
    );
    assert_eq!(alt.requests().len(), 0);
}

// field fault K11
// [PROBE-3] [PROBE-4]
#[tokio::test]
async fn a_probe_that_is_not_let_in_says_nothing_about_the_endpoint() {
    let provider = Provider::start(Script::error(401)).await;
    let lb = Lb::start(&Setup::single(&provider).provider(&probing(""))).await;
    lb.eventually("the fault to be seen", async |lb| {
        lb.endpoint("gpu", 0).await["probe"] == "probe_misconfigured"
            && lb.sum("lb_probes_total", &["result=\"misconfigured\""]).await >= 3
    })
    .await;
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "healthy");
    lb.logged(&["probes are not let in"]).await;
    assert_eq!(lb.count(&["probes are not let in"]), 1);
    assert_eq!(
        provider.request(0).await.header("authorization"),
        Some("Bearer key-of-gpu")
    );
}

// [PROBE-4] [PROBE-5]
#[tokio::test]
async fn a_reload_begins_changes_and_ends_probing() {
    let provider = Provider::start(Script::completion("ok")).await;
    let text = |health: &str| Setup::single(&provider).provider(health).text();
    let lb = Lb::with(&text("health: { active: null }")).await;
    assert_eq!(provider.requests().len(), 0);
    lb.write(&text(&probing(", path: /one, auth: false")));
    assert_eq!(lb.reload().await.status(), 200);
    let request = provider.request(0).await;
    assert_eq!(
        (request.line().1, request.header("authorization")),
        ("/one", None)
    );
    lb.write(&text(&probing(", path: /two, method: HEAD")));
    assert_eq!(lb.reload().await.status(), 200);
    let second = async |_: &Lb| {
        let requests = provider.requests();
        requests
            .last()
            .is_some_and(|last| last.line() == ("HEAD", "/two"))
    };
    lb.eventually("probes of the other kind", second).await;
    lb.write(&text("health: { active: null }"));
    assert_eq!(lb.reload().await.status(), 200);
    let seen = provider.requests().len();
    // Of probes that were under way at the reload there is one at most; ten requests take longer than an interval.
    for _ in 0..10 {
        provider.next(Script::completion("ok").pause(20));
        lb.chat(false).await;
    }
    assert!(provider.requests().len() <= seen + 11);
}

// [HEALTH-18]
#[tokio::test]
async fn an_endpoint_that_is_back_is_not_given_its_whole_part_at_once() {
    let (one, two) = (
        Provider::start(Script::error(500)).await,
        Provider::start(Script::completion("ok")).await,
    );
    let health = "health: { slow_start_ms: 600000, active: { interval_ms: 100, timeout_ms: 100, unhealthy_after: 2 } }";
    let setup = Setup::new().at("gpu", &[&one.url(), &two.url()]);
    let lb = Lb::start(&setup.provider(health).provider("balance: round_robin")).await;
    is(&lb, "ejected").await;
    one.otherwise(Script::completion("ok"));
    is(&lb, "healthy").await;
    for _ in 0..10 {
        assert_eq!(lb.chat(false).await.status(), 200);
    }
    let posts = one
        .requests()
        .iter()
        .filter(|request| request.line().0 == "POST")
        .count();
    assert!(posts <= 1, "{posts} of 10 requests in the first moments");
}
