//! A new process takes over from the one that runs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lb_tests::client::{End, Exchange, ask, get};
use lb_tests::daemon::{Folder, Lb, command};
use lb_tests::provider::{Provider, Script, Signal};
use lb_tests::setup::Setup;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// New connections a second.
const RATE: u64 = 500;

/// Asks on a new connection each time, [`RATE`] times a second, until told to end; returns how many were asked, of which
/// every one was answered.
async fn ask_on(address: SocketAddr, over: Arc<tokio::sync::Notify>, asked: Arc<AtomicUsize>) -> usize {
    let mut clients = JoinSet::new();
    let mut ticks = interval(Duration::from_micros(1_000_000 / RATE));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    loop {
        tokio::select! {
            biased;
            () = over.notified() => break,
            _ = ticks.tick() => {
                asked.fetch_add(1, Ordering::Relaxed);
                clients.spawn(async move { ask(address, get("/v1/models")).await });
            }
        }
    }
    let mut answered = 0;
    while let Some(answer) = clients.join_next().await {
        let answer = answer.expect("a connection that was made is answered");
        assert_eq!((answer.status(), answer.end), (200, End::Clean));
        answered += 1;
    }
    answered
}

// [RELOAD-42]
#[tokio::test]
async fn a_successor_takes_over_under_new_connections_and_streams_and_nothing_is_lost() {
    let late = Signal::new();
    let provider = Provider::start(Script::stream().token("a").wait(&late).token("b").finish()).await;
    // Fewer workers than its successor has, and then more.
    let text = |workers: u32| {
        Setup::single(&provider)
            .server(&format!("workers: {workers}"))
            .text()
    };
    let mut lb = Lb::with(&text(2)).await;
    let mut streams = Vec::new();
    for _ in 0..200 {
        let mut stream = lb.begin().await;
        stream.head().await;
        stream.until("\"a\"").await;
        streams.push(stream);
    }
    let (over, asked) = (
        Arc::new(tokio::sync::Notify::new()),
        Arc::new(AtomicUsize::new(0)),
    );
    let begun = Instant::now();
    let asking = tokio::spawn(ask_on(lb.data(), Arc::clone(&over), Arc::clone(&asked)));
    let reached = async |n: usize| {
        while asked.load(Ordering::Relaxed) < n {
            tokio::task::yield_now().await;
        }
    };
    reached(200).await;
    let mut former = Vec::new();
    for workers in [3, 1] {
        let next = lb.successor(&text(workers)).await;
        assert_eq!((next.data(), next.admin()), (lb.data(), lb.admin()));
        former.push(std::mem::replace(&mut lb, next));
        let now = asked.load(Ordering::Relaxed);
        reached(now + 200).await;
    }
    over.notify_one();
    let answered = asking.await.expect("every connection was answered");
    assert_eq!(answered, asked.load(Ordering::Relaxed));
    // A busy machine falls behind and catches up; half of it would still be a crowd.
    let due = begun.elapsed().as_millis() * u128::from(RATE) / 1000;
    assert!(answered as u128 > due / 2, "{answered} of {due}");
    late.fire();
    for stream in &mut streams {
        stream.until("[DONE]").await;
        assert_eq!(stream.piece().await, Err(End::Clean));
    }
    for old in &mut former {
        assert_eq!(old.exit().await.code(), Some(0));
    }
    assert_eq!(lb.chat(true).await.status(), 200);
    // The last one is who is spoken to.
    assert_eq!(lb.reload().await.status(), 200);
}

// [RELOAD-43]
#[tokio::test]
async fn two_on_one_address_by_mistake_end_the_second_and_leave_the_first() {
    let provider = Provider::start(Script::completion("ok")).await;
    let lb = Lb::start(&Setup::single(&provider)).await;
    let text = Setup::single(&provider)
        .text()
        .replacen("127.0.0.1:0", &lb.data().to_string(), 1);
    let folder = Folder::new();
    let file = folder.write("lb.yaml", &text);
    for arguments in [&["run"][..], &["run", "--takeover"]] {
        let mut second = command([]);
        second
            .args(arguments)
            .arg("-c")
            .arg(&file)
            .env("RUNTIME_DIRECTORY", folder.path());
        let output = second.output().await.expect("the binary starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(69), "{said}");
        assert!(said.contains("--takeover"), "{said}");
    }
    assert_eq!(lb.chat(false).await.status(), 200);
}

// [RELOAD-44]
#[tokio::test]
async fn a_successor_that_fails_changes_nothing() {
    let provider = Provider::start(Script::completion("ok")).await;
    let text = Setup::single(&provider).text();
    let lb = Lb::with(&text).await;
    let mut kept = Exchange::begin(lb.data(), get("/v1/models")).await;
    kept.answer().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let more = format!(
        "listeners: [{{ name: more, address: \"{}\" }}, ",
        taken.local_addr().unwrap()
    );
    // The running one does not read this.
    let file = lb.folder().path().join("lb.yaml");
    let watch = "server: { watch: false, ";
    lb.write(&text.replace("server: { ", watch));
    assert_eq!(lb.reload().await.status(), 200);
    std::fs::write(&file, text.replace("listeners: [", &more)).unwrap();
    let mut second = command(["run", "--takeover", "-c"]);
    let output = second
        .arg(&file)
        .env("RUNTIME_DIRECTORY", lb.folder().path())
        .output()
        .await;
    assert_eq!(output.expect("the binary starts").status.code(), Some(69));
    lb.logged(&["left without taking over"]).await;
    kept.again(get("/v1/models")).await;
    assert_eq!(kept.answer().await.status(), 200);
    assert_eq!(lb.chat(false).await.status(), 200);
    let after = lb.successor(&text).await;
    assert_eq!(after.chat(false).await.status(), 200);
}
