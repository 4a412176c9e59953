//! How many may connect, and from where.

use std::time::Duration;

use lb_tests::client::{Exchange, chat, get};
use lb_tests::daemon::Lb;
use lb_tests::provider::{Provider, Script, Signal};
use lb_tests::setup::Setup;
use rustix::process::{Pid, Resource, Rlimit, Signal as Unix, prlimit};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::start;

// [HTTP-29]
#[tokio::test]
async fn at_the_cap_a_connection_waits_for_another_to_end() {
    let (_provider, lb) = start(Script::completion("ok"), &["max_connections: 2"]).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut exchange = Exchange::begin(lb.data(), get("/v1/models")).await;
        assert_eq!(exchange.answer().await.status(), 200);
        held.push(exchange);
    }
    let mut third = Exchange::begin(lb.data(), get("/v1/models")).await;
    lb.eventually("the wait to be counted", async |lb| {
        lb.metric("lb_accept_waits_total").await >= 1.0
    })
    .await;
    assert!(third.nothing_yet());
    held.pop();
    assert_eq!(third.answer().await.status(), 200);
    assert!((lb.metric("lb_downstream_connections").await - 2.0).abs() < 0.1);
}

// [HTTP-29]
#[tokio::test]
async fn below_the_cap_no_connection_waits_whichever_worker_it_comes_to() {
    let provider = Provider::start(Script::completion("ok")).await;
    let setup = Setup::single(&provider)
        .server("workers: 4")
        .listener("max_connections: 1");
    let lb = Lb::start(&setup).await;
    // One after the other; the kernel gives them to one worker or another.
    for _ in 0..16 {
        assert_eq!(lb.ask(get("/v1/models")).await.status(), 200);
    }
}

// [HTTP-29]
#[tokio::test]
async fn a_drain_serves_what_waits_at_the_cap_and_ends() {
    let more = Signal::new();
    let script = Script::stream().token("a").wait(&more).finish();
    let (_provider, mut lb) = start(script, &["max_connections: 1"]).await;
    let mut stream = Exchange::begin(lb.data(), chat("chat", true)).await;
    assert_eq!(stream.head().await.status, 200);
    let mut waiting = Vec::new();
    for _ in 0..2 {
        waiting.push(Exchange::begin(lb.data(), get("/v1/models")).await);
    }
    lb.eventually("the wait to be counted", async |lb| {
        lb.metric("lb_accept_waits_total").await >= 1.0
    })
    .await;
    lb.signal(Unix::TERM);
    for exchange in &mut waiting {
        assert_eq!(exchange.answer().await.status(), 200);
        assert!(exchange.closed().await, "that was its last request");
    }
    more.fire();
    stream.until("[DONE]").await;
    assert_eq!(lb.exit().await.code(), Some(0));
}

// [HTTP-27]
#[tokio::test]
async fn an_address_with_all_its_connections_is_turned_away_until_one_ends() {
    let (_provider, lb) = start(Script::completion("ok"), &["max_connections_per_source: 1"]).await;
    let mut first = Exchange::begin(lb.data(), get("/v1/models")).await;
    assert_eq!(first.answer().await.status(), 200);
    let mut second = TcpStream::connect(lb.data()).await.unwrap();
    assert_eq!(
        second.read_u8().await.unwrap_err().kind(),
        std::io::ErrorKind::UnexpectedEof
    );
    assert!((lb.metric("lb_connections_turned_away_total").await - 1.0).abs() < 0.1);
    drop(first);
    lb.eventually("the place to be free", async |lb| {
        lb.metric("lb_downstream_connections").await < 0.5
    })
    .await;
    assert_eq!(lb.ask(get("/v1/models")).await.status(), 200);
}

// [HTTP-28]
#[tokio::test]
async fn who_is_not_on_the_list_is_turned_away() {
    let (_provider, lb) = start(Script::completion("ok"), &["allow_sources: [\"192.0.2.0/24\"]"]).await;
    let mut stranger = TcpStream::connect(lb.data()).await.unwrap();
    assert!(stranger.read_u8().await.is_err());
    let (_provider, lb) = start(Script::completion("ok"), &["allow_sources: [\"127.0.0.0/8\"]"]).await;
    assert_eq!(lb.ask(get("/v1/models")).await.status(), 200);
}

// [HTTP-39]
#[tokio::test]
async fn out_of_descriptors_what_is_open_is_served_on_and_accepting_comes_back() {
    let more = Signal::new();
    let script = Script::stream().token("a").wait(&more).token("b").finish();
    let (_provider, lb) = start(script, &[]).await;
    let mut stream = Exchange::begin(lb.data(), chat("chat", true)).await;
    assert_eq!(stream.head().await.status, 200);
    let pid = Pid::from_raw(lb.pid().try_into().unwrap()).unwrap();
    let open = std::fs::read_dir(format!("/proc/{}/fd", lb.pid()))
        .unwrap()
        .count() as u64;
    let [_, hard] = descriptors(&lb);
    let limit = |current| Rlimit {
        current: Some(current),
        maximum: Some(hard),
    };
    let before = prlimit(Some(pid), Resource::Nofile, limit(open + 2)).unwrap();
    let mut held = Vec::new();
    for _ in 0..8 {
        held.push(TcpStream::connect(lb.data()).await.unwrap());
    }
    lb.logged(&["accepting fails"]).await;
    more.fire();
    stream.until("[DONE]").await;
    assert!(
        cpu_of(&lb, Duration::from_millis(500)).await < Duration::from_millis(200),
        "accepting spins"
    );
    held.clear();
    prlimit(Some(pid), Resource::Nofile, before).unwrap();
    assert_eq!(lb.ask(get("/v1/models")).await.status(), 200);
    assert_eq!(lb.log().matches("accepting fails").count(), 1, "said once");
}

/// The time on a CPU that lb takes in so long.
async fn cpu_of(lb: &Lb, time: Duration) -> Duration {
    let used = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", lb.pid())).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    };
    let before = used();
    tokio::time::sleep(time).await;
    used().saturating_sub(before)
}

// [HTTP-39]
#[tokio::test]
async fn the_open_file_limit_is_raised_at_start() {
    let (_provider, lb) = start(Script::completion("ok"), &[]).await;
    let [soft, hard] = descriptors(&lb);
    assert_eq!(soft, hard);
}

/// How many files lb may have open, and how many it may ask for.
fn descriptors(lb: &Lb) -> [u64; 2] {
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", lb.pid())).unwrap();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let numbers: Vec<_> = line.unwrap().split_whitespace().take(2).collect();
    [numbers[0].parse().unwrap(), numbers[1].parse().unwrap()]
}
