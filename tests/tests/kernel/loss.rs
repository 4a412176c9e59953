//! Plain packet loss is no death: connections may be left, endpoints stay.

use std::thread;
use std::time::Duration;

use lb::kernel::Attach;
use lb::kernel::signal::{Phase, Remedy};
use lb_ebpf::Counter;
use lb_tests::netns::{Family, Network};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::bench::{self, Bench, Line, STREAM};
use crate::support;

/// The promise is about a minute. Where the kernel tests are required, all of it is run; elsewhere ten seconds must do.
fn span() -> Duration {
    Duration::from_secs(if support::required() { 60 } else { 10 })
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
        support::measured(&format!(
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
#[test]
fn random_loss_ejects_nobody() {
    let Some(one) = support::network() else { return };
    let five = Network::new().expect("a second network as the first");
    thread::scope(|scope| {
        scope.spawn(|| endure(&one.thing, 1));
        scope.spawn(|| endure(&five, 5));
    });
}
