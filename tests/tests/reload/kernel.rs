//! The kernel plane over reloads.

use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;

/// Says that the test is skipped; a failure where the kernel is required.
#[expect(clippy::print_stderr, reason = "a skipped test has to say so")]
fn skip(why: &str) {
    let required = std::env::var_os("LB_REQUIRE_KERNEL").is_some_and(|value| value == "1");
    assert!(!required, "required, but {why}");
    eprintln!("skipped: {why}");
}

// [RELOAD-31]
#[tokio::test]
async fn a_new_endpoint_is_watched_and_one_that_stays_is_known_again_in_another_place() {
    let [mut stays, goes, mut comes] = [
        Provider::start(Script::completion("a")).await,
        Provider::start(Script::completion("b")).await,
        Provider::start(Script::completion("c")).await,
    ];
    let kernel = "kernel: { mode: auto, attach: cgroup }";
    let before = Setup::pair(&goes, &stays).section(kernel);
    let lb = Lb::start(&before).await;
    if lb.state().await["kernel"]["mode"] != "cgroup" {
        return skip("this machine lets nobody watch in the kernel");
    }
    goes.next(Script::error(503));
    assert_eq!(lb.chat(false).await.status(), 200);
    assert_eq!(lb.endpoint("alt", 0).await["kernel"]["syn"], 1);
    // `alt` is the first provider now, and an endpoint that nobody knows the second.
    let after = Setup::new()
        .at("alt", &[&stays.url()])
        .at("new", &[&comes.url()])
        .section(kernel);
    lb.write(&after.text());
    assert_eq!(lb.reload().await.status(), 200);
    assert_eq!(
        lb.endpoint("alt", 0).await["kernel"]["syn"],
        1,
        "it is counted on"
    );
    stays.next(Script::error(503));
    assert_eq!(lb.chat(false).await.status(), 200);
    assert_eq!(lb.endpoint("new", 0).await["kernel"]["syn"], 1);
    stays.kill().await;
    comes.kill().await;
    for name in ["alt", "new"] {
        lb.eventually("the kernel to see that nobody is there", async |lb| {
            drop(lb.chat(false).await);
            let endpoint = lb.endpoint(name, 0).await;
            endpoint["cause"]
                .as_str()
                .is_some_and(|cause| cause.starts_with("kernel_"))
        })
        .await;
    }
}
