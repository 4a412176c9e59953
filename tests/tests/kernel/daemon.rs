//! The daemon behind a router that makes faults: from the fault to the answer by the alternate and to the ejection,
//! with the kernel's evidence and beside it without.

use std::time::Duration;

use lb_tests::client::End;
use lb_tests::netns::{Family, Network};
use lb_tests::patience::Patience;
use lb_tests::provider::Script;
use tokio::time::Instant;

use crate::bench;
use crate::harness::{self, Tests};
use crate::stage::{Stage, TIMERS, far, who};

pub(crate) fn tests(tests: &mut Tests) {
    tests.network(a_refused_connection_goes_to_the_alternate_within_50_ms);
    tests.network(an_unanswered_syn_goes_to_the_alternate_within_600_ms);
    tests.network(a_request_into_a_blackhole_goes_to_the_alternate_within_600_ms);
    tests.network(an_unreachable_endpoint_is_left_within_50_ms);
    tests.network(an_endpoint_that_dies_while_it_is_only_listened_to_is_left);
    tests.network(a_restart_of_a_second_costs_about_a_second);
}

/// What a fault is, and what it leads to.
struct Fault {
    name: &'static str,
    /// A setting of the providers.
    member: &'static str,
    make: fn(&Stage<'_>),
    cause: &'static str,
    bound: Duration,
}

/// From what the kernel saw to the ejection, in milliseconds: the daemon's own part of each bound.
const REPORTED_MS: f64 = 5.0;

/// How often a fault is made: every time must be within the bound.
const TIMES: usize = 3;

/// Makes the fault, asks, and sees that the alternate answers and the endpoint goes within the bound; then the same
/// without the kernel, which is only measured.
fn fault(network: &Network, fault: &Fault) {
    for family in [Family::V4, Family::V6] {
        bench::run(network, async || {
            for _ in 0..TIMES {
                observed(network, family, fault).await;
            }
            let stage = Stage::set(network, family, "off", fault.member).await;
            stage.warm().await;
            (fault.make)(&stage);
            let begun = Instant::now();
            assert_eq!(who(&stage.lb.chat(false).await), "alt");
            let answered = begun.elapsed();
            let state = &stage.lb.endpoint("gpu", 0).await["state"];
            harness::measured(&format!(
                "  kernel.mode: off, timers {TIMERS:?}: answered after {:.1} ms, endpoint {state}",
                ms(answered)
            ));
            network.heal();
        });
    }
}

/// One fault with the kernel watching, from the fault until both the answer and the ejection were seen. What the
/// machine kept from those who take part is added to the bound.
async fn observed(network: &Network, family: Family, fault: &Fault) {
    let stage = Stage::set(network, family, "required", fault.member).await;
    stage.warm().await;
    (fault.make)(&stage);
    let patience = Patience::begin(Some(stage.lb.pid()));
    let begun = Instant::now();
    assert_eq!(who(&stage.lb.chat(false).await), "alt");
    let answered = begun.elapsed();
    let cause = stage.ejected().await;
    let ejected = begun.elapsed();
    let starved = patience.end();
    assert_eq!(cause, fault.cause, "{}", stage.lb.log());
    let reported = stage.reported_ms().await;
    let told = format!(
        "{}, {family:?}: answered after {:.1} ms, seen to be ejected after {:.1} ms; waited for a CPU {:.1} ms, lb {:.1} \
         ms of it; reported to ejected {reported:.2} ms",
        fault.name,
        ms(answered),
        ms(ejected),
        ms(starved.all),
        ms(starved.lb),
    );
    harness::measured(&told);
    assert!(ejected <= fault.bound + starved.all, "{told}");
    assert!(reported <= REPORTED_MS + ms(starved.lb), "{told}");
    network.heal();
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

fn blackhole(stage: &Stage<'_>) {
    stage.network.blackhole().expect("nft takes the rule");
}

// [KERNEL-24]
fn a_refused_connection_goes_to_the_alternate_within_50_ms(network: &Network) {
    fault(
        network,
        &Fault {
            name: "refused",
            member: "connections: { max_idle_per_endpoint: 0 }",
            make: |stage| stage.gpu.stop(),
            cause: "kernel_refused",
            bound: Duration::from_millis(50),
        },
    );
}

// [KERNEL-24]
fn an_unanswered_syn_goes_to_the_alternate_within_600_ms(network: &Network) {
    fault(
        network,
        &Fault {
            name: "SYN blackhole",
            member: "connections: { max_idle_per_endpoint: 0 }",
            make: blackhole,
            cause: "kernel_loss",
            bound: Duration::from_millis(600),
        },
    );
}

// [KERNEL-24]
fn a_request_into_a_blackhole_goes_to_the_alternate_within_600_ms(network: &Network) {
    fault(
        network,
        &Fault {
            name: "pooled blackhole",
            member: "enabled: true",
            make: blackhole,
            cause: "kernel_loss",
            bound: Duration::from_millis(600),
        },
    );
}

// [KERNEL-24]
fn an_unreachable_endpoint_is_left_within_50_ms(network: &Network) {
    fault(
        network,
        &Fault {
            name: "unreachable",
            member: "enabled: true",
            make: |stage| {
                stage
                    .network
                    .unreachable(stage.family)
                    .expect("the route is taken");
            },
            cause: "kernel_unreachable",
            bound: Duration::from_millis(50),
        },
    );
}

/// From a blackhole under a response that has not begun and one that has: how long until the one is answered by the
/// alternate, and the other ended.
async fn death(network: &Network, family: Family, mode: &str) -> [Duration; 2] {
    let stage = Stage::set(network, family, mode, "enabled: true").await;
    stage.warm().await;
    stage.gpu.next(Script::stream().token("begun").stall());
    stage.gpu.next(Script::silent().stall());
    let mut streaming = stage.lb.begin().await;
    streaming.head().await;
    streaming.until("begun").await;
    let waiting = stage.lb.chat(false);
    let dying = async {
        stage.gpu.request(2).await;
        network.blackhole().expect("nft takes the rule");
        Instant::now()
    };
    let ((answer, answered), (begun, ended)) =
        tokio::join!(async { (waiting.await, Instant::now()) }, async {
            let begun = dying.await;
            assert_eq!(streaming.piece().await, Err(End::Cut));
            (begun, Instant::now())
        });
    assert_eq!(who(&answer), "alt");
    if mode != "off" {
        assert_eq!(stage.ejected().await, "kernel_loss", "{}", stage.lb.log());
    }
    network.heal();
    [answered - begun, ended - begun]
}

// [KERNEL-24]
fn an_endpoint_that_dies_while_it_is_only_listened_to_is_left(network: &Network) {
    for family in [Family::V4, Family::V6] {
        bench::run(network, async || {
            let [answered, ended] = death(network, family, "required").await;
            let [plain_answered, plain_ended] = death(network, family, "off").await;
            harness::measured(&format!(
                "death while receiving, {family:?}: answered by the alternate after {:.1} ms, stream ended after {:.1} ms",
                ms(answered),
                ms(ended)
            ));
            harness::measured(&format!(
                "  kernel.mode: off, timers {TIMERS:?}: {:.1} ms, {:.1} ms",
                ms(plain_answered),
                ms(plain_ended)
            ));
            assert!(answered <= Duration::from_millis(3_500));
            assert!(ended <= Duration::from_millis(5_500));
        });
    }
}

/// Kills the preferred provider under that many streams and brings it back after a second.
async fn restart(network: &Network, streams: usize) {
    let stage = Stage::set(network, Family::V4, "required", "enabled: true").await;
    stage.warm().await;
    let mut open = Vec::new();
    for _ in 0..streams {
        stage.gpu.next(Script::stream().token("begun").stall());
        let mut stream = stage.lb.begin().await;
        stream.head().await;
        stream.until("begun").await;
        open.push(stream);
    }
    stage.gpu.stop();
    let stopped = Instant::now();
    let down = Duration::from_secs(1);
    let back = tokio::spawn(tokio::time::sleep_until(stopped + down));
    let mut gpu = None;
    let mut by_alternate = 0;
    let returned = loop {
        if back.is_finished() && gpu.is_none() {
            gpu = Some(far(network, stage.gpu.address(), Script::completion("gpu")));
        }
        match who(&stage.lb.chat(false).await).as_str() {
            "gpu" if gpu.is_some() => break stopped.elapsed(),
            "alt" => by_alternate += 1,
            other => panic!("nobody is named {other}"),
        }
    };
    harness::measured(&format!(
        "restart of {down:?} under {streams} streams: used again after {:.1} ms, {by_alternate} requests answered by the \
         alternate",
        ms(returned)
    ));
    assert!(
        returned < Duration::from_secs(2),
        "{returned:?}: {}",
        stage.lb.log()
    );
    assert!(stage.lb.sum("lb_ejections_total", &["kernel_"]).await >= 1);
    assert_eq!(stage.lb.endpoint("gpu", 0).await["state"], "healthy");
}

// [HEALTH-15] [HEALTH-17] [KERNEL-25]
fn a_restart_of_a_second_costs_about_a_second(network: &Network) {
    // Five broken streams eject by themselves, and for thirty seconds.
    for streams in [0, 6] {
        bench::run(network, async || restart(network, streams).await);
    }
}
