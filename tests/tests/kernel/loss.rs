//! Plain packet loss is no death: connections may be left, endpoints stay.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use lb::kernel::Attach;
use lb::kernel::signal::{Phase, Remedy};
use lb_ebpf::Counter;
use lb_tests::client::{End, ask, chat};
use lb_tests::netns::{Family, Network};
use lb_tests::provider::Script;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::bench::{self, Bench, Line, STREAM};
use crate::harness::{self, Tests};
use crate::stage::Stage;

pub(crate) fn tests(tests: &mut Tests) {
    tests.network(random_loss_ejects_nobody);
    tests.network(random_loss_under_streams_ejects_nobody);
}

/// The promise is about a minute. Where the kernel tests are required, all of it is run; elsewhere ten seconds must do.
fn span() -> Duration {
    Duration::from_secs(if harness::required() { 60 } else { 10 })
}

/// Half of the flows ask one thing after the other, half receive a stream.
const FLOWS: usize = 8;

async fn busy(mut line: Line, asks: bool, end: Instant) {
    let work = async {
        if asks {
            while line.ask(5_000).await.is_ok() {}
        } else {
            line.send(STREAM, 100).await.expect("the socket has room");
            while line.byte().await.is_ok() {}
        }
    };
    // A connection under loss is slow, never broken: it is the end of the time that ends it.
    assert!(timeout_at(end, work).await.is_err(), "a connection broke");
}

fn endure(network: &Network, percent: u32) {
    let server = bench::server(network, Family::V4);
    bench::run(network, async || {
        let mut bench = Bench::new(Attach::Tc, &[server.ip()]);
        let mut flows = JoinSet::new();
        let end = Instant::now() + span();
        for flow in 0..FLOWS {
            let line = bench.connect(server).await.expect("the server listens");
            let asks = flow % 2 == 0;
            bench.set(line.cookie, if asks { Phase::Waiting } else { Phase::Streaming });
            flows.spawn(busy(line, asks, end));
        }
        network.lose(percent).expect("nft takes the rule");
        flows.join_all().await;
        let seen = bench.rest();
        let count = |remedy| {
            seen.iter()
                .filter(|seen| seen.reaction.remedy == Some(remedy))
                .count()
        };
        let stats = bench
            .plane
            .counters()
            .expect("the map is there")
            .read(bench.slot)
            .expect("a slot");
        harness::measured(&format!(
            "{percent} % loss, {FLOWS} flows, {:?}: {} segments sent, {} again; {} failed over, {} poisoned, {} ended",
            span(),
            stats.get(Counter::SegmentsSent),
            stats.get(Counter::RetransmitSent),
            count(Remedy::FailOver),
            count(Remedy::Poison),
            count(Remedy::End),
        ));
        assert!(stats.get(Counter::RetransmitSent) > 0, "there was loss");
        let ejected: Vec<_> = seen.iter().filter(|seen| seen.ejects()).collect();
        assert!(ejected.is_empty(), "{ejected:?}");
        assert_eq!(count(Remedy::End), 0, "a response under way was cut");
    });
}

// [KERNEL-9]
fn random_loss_ejects_nobody(one: &Network) {
    let five = Network::new().expect("a second network as the first");
    thread::scope(|scope| {
        scope.spawn(|| endure(one, 1));
        scope.spawn(|| endure(&five, 5));
    });
}

/// Far above what loss costs a connection: a segment is lost six times in a row once in months.
const TIMERS: Duration = Duration::from_secs(15);

/// A stream of two seconds, a token every 20 ms.
fn stream() -> Script {
    let tokens = (0..100).fold(Script::stream(), |script, _| script.token("again ").pause(20));
    tokens.token("last").finish()
}

/// Asks for one stream after the other until `end`; how many came from each provider.
async fn listen(lb: SocketAddr, end: Instant) -> [usize; 2] {
    let mut streams = [0, 0];
    while Instant::now() < end {
        let answer = ask(lb, chat("chat", true)).await;
        assert_eq!(
            (answer.status(), answer.end),
            (200, End::Clean),
            "{}",
            answer.text()
        );
        streams[usize::from(!answer.text().contains("last"))] += 1;
    }
    streams
}

/// The same through the whole daemon: the flows are streams, and some of the requests for them are lost as well.
fn endure_behind_the_daemon(network: &Network, percent: u32) {
    bench::run(network, async || {
        let stage = Stage::with_timers(network, Family::V4, "required", "enabled: true", TIMERS).await;
        stage.warm().await;
        stage.gpu.otherwise(stream());
        network.lose(percent).expect("nft takes the rule");
        let end = Instant::now() + span();
        let flows: JoinSet<_> = (0..FLOWS).map(|_| listen(stage.lb.data(), end)).collect();
        let flows = flows.join_all().await;
        let kernel = &stage.lb.endpoint("gpu", 0).await["kernel"];
        let sum = |which: usize| flows.iter().map(|streams| streams[which]).sum::<usize>();
        harness::measured(&format!(
            "{percent} % loss, {FLOWS} flows through the daemon, {:?}: {} streams, {} by the alternate; segments sent {}, \
             again {}",
            span(),
            sum(0),
            sum(1),
            kernel["segments_sent"],
            kernel["retransmit_sent"],
        ));
        assert!(sum(0) > FLOWS, "{flows:?}");
        assert_eq!(
            stage.lb.sum("lb_ejections_total", &[]).await,
            0,
            "{}",
            stage.lb.log()
        );
        assert_eq!(stage.lb.endpoint("gpu", 0).await["state"], "healthy");
    });
}

// [KERNEL-9]
fn random_loss_under_streams_ejects_nobody(one: &Network) {
    let five = Network::new().expect("a second network as the first");
    thread::scope(|scope| {
        scope.spawn(|| endure_behind_the_daemon(one, 1));
        scope.spawn(|| endure_behind_the_daemon(&five, 5));
    });
}
