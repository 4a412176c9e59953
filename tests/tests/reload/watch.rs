//! Watching the file, through the daemon.

use std::sync::Arc;

use lb_tests::daemon::{Folder, Lb, command};
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use tokio::net::UnixDatagram;

// [RELOAD-2]
#[tokio::test]
async fn the_watch_can_be_switched_off_and_on() {
    let provider = Provider::start(Script::completion("ok")).await;
    let text = |watch: bool, n: u32| {
        let setup = Setup::single(&provider).server(&format!("watch: {watch}, drain_timeout_ms: {n}"));
        setup.text()
    };
    let lb = Lb::with(&text(true, 1)).await;
    lb.write(&text(false, 2));
    lb.eventually("a reload by the watch", async |lb| {
        lb.count(&["\"reloaded\""]) == 1
    })
    .await;
    // Not noticed by itself; else there would be one more below.
    lb.write(&text(true, 3));
    assert_eq!(lb.reload().await.status(), 200);
    lb.write(&text(true, 4));
    lb.eventually("a reload by the watch", async |lb| {
        lb.count(&["\"reloaded\""]) == 3
    })
    .await;
}

// [RELOAD-2]
#[tokio::test]
async fn a_reload_that_was_asked_for_is_not_done_again_by_the_watch() {
    let provider = Provider::start(Script::completion("ok")).await;
    let text = |n: u32| {
        Setup::single(&provider)
            .server(&format!("drain_timeout_ms: {n}"))
            .text()
    };
    let lb = Lb::with(&text(1)).await;
    for n in 2..5 {
        lb.write(&text(n));
        assert_eq!(lb.reload().await.status(), 200);
    }
    lb.write(&text(5));
    lb.eventually("a reload by the watch", async |lb| {
        lb.count(&["\"reloaded\""]) == 4
    })
    .await;
}

// [RELOAD-50]
#[tokio::test]
async fn the_service_manager_is_told_of_every_step() {
    let provider = Provider::start(Script::completion("ok")).await;
    let folder = Arc::new(Folder::new());
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let heard = async || {
        let mut bytes = vec![0; 4096];
        let length = tokio::time::timeout(lb_tests::PATIENCE, manager.recv(&mut bytes)).await;
        bytes.truncate(length.expect("lb speaks").unwrap());
        String::from_utf8(bytes).unwrap()
    };
    folder.write("lb.yaml", &Setup::single(&provider).text());
    let mut run = command(["run"]);
    let mut lb = Lb::spawn(Arc::clone(&folder), run.env("NOTIFY_SOCKET", &path)).await;
    assert!(heard().await.contains("READY=1"));
    for text in [Setup::single(&provider).text(), "broken".to_owned()] {
        lb.write(&text);
        lb.reload().await;
        let reloading = heard().await;
        assert!(
            reloading.contains("RELOADING=1") && reloading.contains("MONOTONIC_USEC="),
            "{reloading}"
        );
        assert!(heard().await.contains("READY=1"));
    }
    let mut stream = lb.begin().await;
    stream.head().await;
    lb.signal(rustix::process::Signal::TERM);
    let stopping = heard().await;
    assert!(
        stopping.contains("STOPPING=1") && stopping.contains("EXTEND_TIMEOUT_USEC="),
        "{stopping}"
    );
    drop(stream);
    assert_eq!(lb.exit().await.code(), Some(0));
}
