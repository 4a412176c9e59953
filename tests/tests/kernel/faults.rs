//! Every fault, from the moment it is made to the reaction, within the bounds that are promised; at the interface and
//! at the cgroup, over IPv4 and IPv6.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use lb::kernel::signal::{Cause, Phase, Remedy, Verdict};
use lb::kernel::{Attach, Rungs};
use lb_ebpf::Counter;
use lb_tests::netns::{Family, Network};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::bench::{self, Bench, Fault, STREAM, Seen, WAIT, is_loss};
use crate::harness::{self, Tests};

pub(crate) fn tests(tests: &mut Tests) {
    tests.network(a_refused_connection_ejects_within_50_ms);
    tests.network(an_unanswered_syn_ejects_within_600_ms);
    tests.network(a_request_into_a_blackhole_on_a_pooled_connection_ejects_within_600_ms);
    tests.network(an_unreachable_on_a_live_connection_ejects_within_50_ms);
    tests.network(a_peer_that_dies_while_we_only_receive_is_noticed_by_probes);
    tests.network(a_lost_connection_does_not_eject_an_endpoint_that_still_talks);
    tests.network(a_segment_that_passes_two_hooks_is_counted_once);
    tests.network(a_refusal_over_loopback_is_seen_at_the_cgroup);
    tests.network(an_interface_that_went_and_came_again_is_observed_again);
}

/// Runs a test with each set of hooks and each family. The server is reached through a router that makes the faults.
fn everywhere(
    network: &Network,
    name: &str,
    test: impl AsyncFn(&Network, Bench, SocketAddr, Attach) -> Duration + Sync,
) {
    for family in [Family::V4, Family::V6] {
        let server = bench::server(network, family);
        for attach in [Attach::Tc, Attach::Cgroup] {
            let test = &test;
            bench::run(network, async move || {
                let bench = Bench::new(attach, &[server.ip()]);
                let took = test(network, bench, server, attach).await;
                harness::measured(&format!(
                    "{name}, {attach:?}, {family:?}: {:.1} ms",
                    took.as_secs_f64() * 1e3
                ));
            });
            network.heal();
        }
    }
}

fn eject(cause: Cause) -> Verdict {
    Verdict::Eject {
        cause,
        span: Duration::from_secs(1),
    }
}

/// The endpoint goes, and the attempt on the connection fails over.
fn leaves(cookie: u64, cause: Cause) -> impl Fn(&Seen) -> bool {
    move |seen| {
        seen.sighting.cookie == cookie
            && seen.reaction.remedy == Some(Remedy::FailOver)
            && seen.reaction.verdict == eject(cause)
    }
}

/// Otherwise there is nothing to be seen.
fn refused(connected: io::Result<TcpStream>) {
    let error = connected.expect_err("nothing listens there");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{error}");
}

fn family(server: SocketAddr) -> Family {
    if server.is_ipv4() { Family::V4 } else { Family::V6 }
}

// [KERNEL-22]
fn a_refused_connection_ejects_within_50_ms(network: &Network) {
    everywhere(network, "refused", async |_, mut bench, server, _| {
        // A port that nothing listens on: the server's, but one that was never bound.
        let closed = SocketAddr::new(server.ip(), 1);
        let (socket, cookie) = bench.socket(closed);
        let fault = Fault::now();
        refused(socket.connect(closed).await);
        bench
            .expect(&fault, Duration::from_millis(50), leaves(cookie, Cause::Refused))
            .await
    });
}

// [KERNEL-22]
fn an_unanswered_syn_ejects_within_600_ms(network: &Network) {
    everywhere(network, "SYN blackhole", async |network, mut bench, server, _| {
        let _known = bench.connect(server).await.expect("the server listens");
        network.blackhole().expect("nft takes the rule");
        let fault = Fault::now();
        let (socket, cookie) = bench.socket(server);
        let connecting = tokio::spawn(socket.connect(server));
        let took = bench
            .expect(&fault, Duration::from_millis(600), leaves(cookie, Cause::Loss))
            .await;
        connecting.abort();
        took
    });
}

// [KERNEL-22]
fn a_request_into_a_blackhole_on_a_pooled_connection_ejects_within_600_ms(network: &Network) {
    for payload in [100, 40_000] {
        everywhere(
            network,
            &format!("pooled blackhole, {payload} bytes"),
            async |network, mut bench, server, _| {
                let mut line = bench.connect(server).await.expect("the server listens");
                line.ask(payload).await.expect("the server answers");
                network.blackhole().expect("nft takes the rule");
                bench.set(line.cookie, Phase::Waiting);
                let fault = Fault::now();
                line.send(bench::ECHO, payload)
                    .await
                    .expect("the socket has room");
                bench
                    .expect(
                        &fault,
                        Duration::from_millis(600),
                        leaves(line.cookie, Cause::Loss),
                    )
                    .await
            },
        );
    }
}

// [KERNEL-22]
fn an_unreachable_on_a_live_connection_ejects_within_50_ms(network: &Network) {
    everywhere(
        network,
        "unreachable",
        async |network, mut bench, server, attach| {
            let mut line = bench.connect(server).await.expect("the server listens");
            line.ask(100).await.expect("the server answers");
            network.unreachable(family(server)).expect("the route is taken");
            bench.set(line.cookie, Phase::Waiting);
            let fault = Fault::now();
            line.send(bench::ECHO, 100).await.expect("the socket has room");
            // The cgroup never sees an ICMP error: there it is a blackhole.
            let (limit, cause) = if attach == Attach::Tc {
                (50, Cause::Unreachable)
            } else {
                (600, Cause::Loss)
            };
            bench
                .expect(&fault, Duration::from_millis(limit), leaves(line.cookie, cause))
                .await
        },
    );
}

// [KERNEL-22]
fn a_peer_that_dies_while_we_only_receive_is_noticed_by_probes(network: &Network) {
    everywhere(
        network,
        "death while receiving, past commit",
        async |network, mut bench, server, _| {
            let mut waiting = bench.connect(server).await.expect("the server listens");
            waiting.send(WAIT, 100).await.expect("the socket has room");
            bench.set(waiting.cookie, Phase::Waiting);
            let mut streaming = bench.connect(server).await.expect("the server listens");
            streaming.send(STREAM, 100).await.expect("the socket has room");
            streaming.byte().await.expect("the server streams");
            bench.set(streaming.cookie, Phase::Streaming);
            network.blackhole().expect("nft takes the rule");
            let fault = Fault::now();
            // Either connection may be the first to notice and so to eject.
            let (ejected, left) = (Cell::new(false), Cell::new(false));
            let fails_over = |seen: &Seen| {
                let over = seen.reaction.remedy == Some(Remedy::FailOver);
                left.set(left.get() || over && seen.sighting.cookie == waiting.cookie);
                ejected.set(ejected.get() || seen.reaction.verdict == eject(Cause::Loss));
                left.get() && ejected.get()
            };
            let took = bench
                .expect(&fault, Duration::from_millis(3_500), fails_over)
                .await;
            harness::measured(&format!(
                "  without a byte yet: {:.1} ms",
                took.as_secs_f64() * 1e3
            ));
            let ends = |seen: &Seen| {
                seen.sighting.cookie == streaming.cookie && seen.reaction.remedy == Some(Remedy::End)
            };
            bench.expect(&fault, Duration::from_millis(5_500), ends).await
        },
    );
}

// [KERNEL-9]
fn a_lost_connection_does_not_eject_an_endpoint_that_still_talks(network: &Network) {
    everywhere(
        network,
        "one of two connections lost",
        async |network, mut bench, server, _| {
            let mut alive = bench.connect(server).await.expect("the server listens");
            let mut lost = bench.connect(server).await.expect("the server listens");
            lost.ask(100).await.expect("the server answers");
            alive.send(STREAM, 100).await.expect("the socket has room");
            bench.set(alive.cookie, Phase::Streaming);
            bench.set(lost.cookie, Phase::Waiting);
            network.blackhole_port(lost.port()).expect("nft takes the rule");
            let fault = Fault::now();
            lost.send(bench::ECHO, 100).await.expect("the socket has room");
            let fails_over =
                |seen: &Seen| is_loss(seen) && seen.sighting.cookie == lost.cookie && !seen.ejects();
            bench.expect(&fault, Duration::from_millis(600), fails_over).await
        },
    );
}

// [KERNEL-6]
fn a_segment_that_passes_two_hooks_is_counted_once(network: &Network) {
    let server = bench::server(network, Family::V4);
    bench::run(network, async || {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let bench = Bench::new(Attach::Auto, &[server.ip(), here]);
        assert_eq!(
            bench.plane.rungs(),
            Rungs {
                tc: true,
                cgroup: true
            }
        );
        let mut line = bench.connect(server).await.expect("the server listens");
        for _ in 0..10 {
            line.ask(5_000).await.expect("the server answers");
        }
        let stats = bench
            .plane
            .counters()
            .expect("the map is there")
            .read(bench.slot)
            .expect("a slot");
        let counted = [
            Counter::Syn,
            Counter::Handshake,
            Counter::BytesSent,
            Counter::BytesReceived,
        ];
        assert_eq!(counted.map(|counter| stats.get(counter)), [1, 1, 10 * 5_005, 10]);
        assert!(stats.get(Counter::HandshakeMicroseconds) > 0);
    });
}

// [KERNEL-16]
fn a_refusal_over_loopback_is_seen_at_the_cgroup(network: &Network) {
    bench::run(network, async || {
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let mut bench = Bench::new(Attach::Auto, &[here]);
        assert_eq!(
            bench.plane.rungs(),
            Rungs {
                tc: false,
                cgroup: true
            }
        );
        let closed = SocketAddr::new(here, 1);
        let (socket, cookie) = bench.socket(closed);
        let fault = Fault::now();
        refused(socket.connect(closed).await);
        bench
            .expect(&fault, Duration::from_millis(50), leaves(cookie, Cause::Refused))
            .await;
    });
}

// [KERNEL-23]
fn an_interface_that_went_and_came_again_is_observed_again(network: &Network) {
    let server = bench::server(network, Family::V4);
    bench::run(network, async || {
        let bench = Bench::new(Attach::Tc, &[server.ip()]);
        let counters = bench.plane.counters().expect("the map is there");
        let handshakes = || counters.read(bench.slot).expect("a slot").get(Counter::Handshake);
        drop(bench.connect(server).await.expect("the server listens"));
        assert_eq!(handshakes(), 1);
        network.replug().expect("a cable can be laid again");
        let patience = Instant::now() + Duration::from_secs(10);
        while handshakes() == 1 {
            assert!(Instant::now() < patience, "still unobserved");
            drop(bench.connect(server).await.expect("the server listens"));
        }
    });
}
