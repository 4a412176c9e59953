//! The outcome table's row for the kernel's word, through the whole daemon: what it is to every mechanism.

use std::net::SocketAddr;

use lb_tests::daemon::Lb;
use lb_tests::netns::{Family, Network};
use lb_tests::provider::{Provider, Script};
use lb_tests::setup::Setup;
use tokio::net::TcpStream;

use crate::bench;
use crate::harness::Tests;
use crate::stage::{TIMERS, far};

pub(crate) fn tests(tests: &mut Tests) {
    tests.network(what_the_word_of_the_kernel_is_to_every_mechanism);
}

/// Where the row is seen; there is always another target.
#[derive(Clone, Copy, Debug)]
struct Scene {
    family: Family,
    /// The provider has another endpoint.
    replica: bool,
    /// The request streams, and a controller counts it.
    share: bool,
}

/// What the mechanisms have counted.
#[derive(Debug, PartialEq)]
struct Counts {
    /// Requests at the replica and at the alternate.
    asked: [usize; 2],
    ejections: u64,
    breaker_failures: u64,
    retries: u64,
    failovers: u64,
    /// Samples of the controller: healthy, breach, unknown.
    samples: [u64; 3],
}

impl Counts {
    async fn read(lb: &Lb, others: [&Provider; 2]) -> Self {
        let state = lb.state().await;
        let providers = state["providers"].as_array().expect("a list");
        let gpu = providers.iter().find(|provider| provider["name"] == "gpu");
        let breaker = &gpu.expect("it is configured")["breaker"];
        let mut samples = [0; 3];
        for (count, outcome) in samples.iter_mut().zip(["healthy", "breach", "unknown"]) {
            let label = format!("outcome=\"{outcome}\"");
            *count = lb.sum("lb_aimd_samples_total", &[&label]).await;
        }
        Self {
            asked: others.map(|provider| provider.requests().len()),
            ejections: lb.sum("lb_ejections_total", &["cause=\"kernel_loss\""]).await,
            breaker_failures: breaker["window_failures"].as_u64().expect("it is judged"),
            retries: lb.sum("lb_retries_total", &["outcome=\"sent\""]).await,
            failovers: lb.sum("lb_failovers_total", &[]).await,
            samples,
        }
    }

    fn since(self, before: &Self) -> Self {
        Self {
            asked: [0, 1].map(|n| self.asked[n] - before.asked[n]),
            ejections: self.ejections - before.ejections,
            breaker_failures: self.breaker_failures - before.breaker_failures,
            retries: self.retries - before.retries,
            failovers: self.failovers - before.failovers,
            samples: [0, 1, 2].map(|n| self.samples[n] - before.samples[n]),
        }
    }
}

// [OUTCOME-1] [BREAKER-10] a row of the outcome table: kernel signal
fn what_the_word_of_the_kernel_is_to_every_mechanism(network: &Network) {
    for family in [Family::V4, Family::V6] {
        for [replica, share] in [[true, false], [false, false], [false, true]] {
            let scene = Scene {
                family,
                replica,
                share,
            };
            bench::run(network, async || play(network, scene).await);
            network.heal();
        }
    }
}

/// A request into a blackhole, on a connection that has carried one before.
async fn play(network: &Network, scene: Scene) {
    let good = || {
        if scene.share {
            Script::streamed(&["good"])
        } else {
            Script::completion("good")
        }
    };
    let gpu = far(network, SocketAddr::new(scene.family.server(), 0), good());
    let [replica, alt] = [Provider::start(good()).await, Provider::start(good()).await];
    // The first packets of a new network may be answered with "unreachable", which would count here.
    while TcpStream::connect(gpu.address()).await.is_err() {
        tokio::task::yield_now().await;
    }
    let lb = Lb::with(&text(scene, [&gpu, &replica, &alt])).await;
    assert_eq!(lb.chat(scene.share).await.status(), 200);
    assert_eq!(gpu.requests().len(), 1, "it is asked first");
    lb.idle().await;

    let before = Counts::read(&lb, [&replica, &alt]).await;
    network.blackhole().expect("nft takes the rule");
    assert_eq!(lb.chat(scene.share).await.status(), 200, "{scene:?}");
    lb.idle().await;
    let seen = Counts::read(&lb, [&replica, &alt]).await.since(&before);
    let expected = Counts {
        asked: [scene.replica, !scene.replica].map(usize::from),
        ejections: 1,
        breaker_failures: 0,
        retries: u64::from(scene.replica),
        failovers: u64::from(!scene.replica),
        samples: [0, 0, u64::from(scene.share)],
    };
    assert_eq!(seen, expected, "{scene:?}: {}", lb.log());
    let cooling = &lb.state().await["cooldowns"];
    assert_eq!(cooling.as_array().map(Vec::len), Some(0), "{scene:?}: {cooling}");
}

fn text(scene: Scene, [gpu, replica, alt]: [&Provider; 3]) -> String {
    let (first, second) = (gpu.url(), replica.url());
    let urls = if scene.replica {
        &[&*first, &second][..]
    } else {
        &[&*first]
    };
    let timers = TIMERS.as_millis();
    let setup = Setup::new()
        .at("gpu", urls)
        .at("alt", &[&alt.url()])
        .provider(&format!(
            "timeouts: {{ connect_ms: {timers}, read_ms: {timers} }}, balance: round_robin"
        ))
        .model("cooldown_ms: 60000")
        .section("kernel: { mode: required }");
    let setup = if scene.share {
        setup
            .fallback("first_token_timeout_ms: 8000")
            .fallback("aimd: { latency_budget_ms: 6000 }")
    } else {
        setup.fallback("aimd: { enabled: false }")
    };
    // In turn, and with nine turns for each of the other, the first endpoint comes first.
    setup
        .text()
        .replacen("name: gpu-0,", "name: gpu-0, weight: 9,", 1)
}
