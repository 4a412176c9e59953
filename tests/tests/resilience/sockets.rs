//! A machine that has no socket left for a connection to a provider.

use lb_tests::client::{Exchange, chat, get};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;

use super::provider;

/// One failure would eject the endpoint, open the breaker and cool the model.
const TOUCHY: [&str; 3] = [
    "health: { consecutive_failures: 1 }",
    "circuit_breaker: { consecutive_failures: 1 }",
    "connections: { idle_timeout_ms: 600000 }",
];

fn touchy(setup: Setup) -> Setup {
    let setup = TOUCHY.iter().fold(setup, |setup, member| setup.provider(member));
    setup.server("reveal: endpoint")
}

/// An open connection to lb.
async fn connected(lb: &Lb) -> Exchange {
    let mut client = Exchange::begin(lb.data(), get("/v1/models")).await;
    assert_eq!(client.answer().await.status(), 200);
    client
}

/// Lets lb have so many descriptors, and returns how many it could have before.
fn allow(lb: &Lb, limit: Rlimit) -> Rlimit {
    let pid = Pid::from_raw(lb.pid().try_into().unwrap());
    prlimit(pid, Resource::Nofile, limit).unwrap()
}

/// Lets lb open nothing more.
fn exhaust(lb: &Lb) -> Rlimit {
    let own = rustix::process::getrlimit(Resource::Nofile);
    let none = Rlimit {
        current: Some(0),
        maximum: own.maximum,
    };
    allow(lb, none)
}

async fn blames_nobody(lb: &Lb) {
    let gpu = provider(lb, "gpu").await;
    assert_eq!(gpu["breaker"]["state"], "closed");
    assert_eq!(gpu["breaker"]["window_volume"], 0);
    assert_eq!(lb.endpoint("gpu", 0).await["state"], "healthy");
    assert_eq!(lb.sum("lb_ejections_total", &[]).await, 0);
    assert_eq!(lb.sum("lb_cooldown_active", &[]).await, 0);
}

// [OUTCOME-10]
#[tokio::test]
async fn without_a_socket_a_client_is_told_to_come_back_and_nobody_is_blamed() {
    let gpu = Provider::start(Script::completion("gpu")).await;
    let socket = std::env::temp_dir().join("lb-test-nobody.sock");
    let file = format!("unix:{}:/v1", socket.display());
    for url in [gpu.url(), file] {
        let lb = Lb::start(&touchy(Setup::new().at("gpu", &[&url])).model("cooldown_ms: 600000")).await;
        let mut client = connected(&lb).await;
        let before = exhaust(&lb);
        client.again(chat("chat", false)).await;
        let answer = client.answer().await;
        assert_eq!(
            (answer.status(), answer.code().as_str()),
            (503, "no_socket"),
            "{url}"
        );
        assert_eq!(answer.head.header("retry-after"), Some("1"));
        assert_eq!(answer.head.header("x-should-retry"), None);
        allow(&lb, before);
        blames_nobody(&lb).await;
        assert_eq!(
            lb.sum(
                "lb_attempts_total",
                &["provider=\"gpu\"", "outcome=\"no_socket\""]
            )
            .await,
            1
        );
        if url.starts_with("http") {
            client.again(chat("chat", false)).await;
            assert!(client.answer().await.text().contains("gpu"), "at once");
        }
        lb.idle().await;
    }
}

// [OUTCOME-10]
#[tokio::test]
async fn without_a_socket_the_next_target_is_tried_on_a_connection_that_is_there() {
    let (gpu, alt) = (
        Provider::start(Script::completion("gpu")).await,
        Provider::start(Script::completion("alt")).await,
    );
    // It leaves no connection behind. There is no cooldown, or it would be passed over from then on.
    gpu.next(Script::json(404, &[("connection", "close")], &json!({})));
    let setup = touchy(Setup::pair(&gpu, &alt)).fallback("on_status: [404]");
    let lb = Lb::start(&setup).await;
    let mut client = connected(&lb).await;
    client.again(chat("chat", false)).await;
    assert!(client.answer().await.text().contains("alt"));
    let before = exhaust(&lb);
    client.again(chat("chat", false)).await;
    let answer = client.answer().await;
    assert!(answer.text().contains("alt"), "{}", answer.text());
    assert_eq!(answer.head.header("x-lb-attempts"), Some("2"));
    allow(&lb, before);
    assert_eq!(lb.sum("lb_failovers_total", &["reason=\"no_socket\""]).await, 1);
    blames_nobody(&lb).await;
    client.again(chat("chat", false)).await;
    assert!(client.answer().await.text().contains("gpu"), "at once");
}

// [OUTCOME-10]
#[tokio::test]
async fn a_probe_that_has_no_socket_says_nothing() {
    for kind in ["http", "tcp"] {
        let gpu = Provider::start(Script::completion("gpu")).await;
        let active = format!("health: {{ active: {{ kind: {kind}, interval_ms: 200, timeout_ms: 200 }} }}");
        let lb = Lb::start(&Setup::single(&gpu).provider(&active)).await;
        let good = async |lb: &Lb| lb.sum("lb_probes_total", &["result=\"good\""]).await;
        lb.eventually("a probe", async |lb| good(lb).await > 0).await;
        let before = exhaust(&lb);
        // By the end of this several have come to nothing.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        allow(&lb, before);
        let then = good(&lb).await;
        lb.eventually("another", async |lb| good(lb).await > then).await;
        assert_eq!(lb.sum("lb_probes_total", &["result=\"bad\""]).await, 0, "{kind}");
    }
}
