//! The rung for kernels without tcx links: filters on clsact, which outlive the process that made them.
//!
//! This kernel knows tcx. So each test has its thread, and what is started from there, refused every link, with the error
//! that a kernel gives that has none.

use std::io;
use std::process::Command;
use std::time::Duration;

use lb::kernel::signal::Phase;
use lb::kernel::{Attach, Rungs};
use lb_ebpf::Counter;
use lb_tests::netns::{Family, Network};
use rustix::process::Signal;

use crate::bench::{self, Bench, Fault};
use crate::harness::Tests;
use crate::stage::{Stage, who};

pub(crate) fn tests(tests: &mut Tests) {
    tests.network(without_tcx_the_programs_on_clsact_count_and_signal);
    tests.network(a_filter_on_clsact_goes_with_the_daemon_or_at_its_next_start);
}

/// From now on this thread and its children cannot make links of eBPF.
#[expect(unsafe_code, reason = "a filter of system calls is handed over as a pointer")]
fn refuse_links() {
    const BPF_LINK_CREATE: u32 = 28;
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: u16::try_from(code).expect("a code of two bytes"),
        jt,
        jf,
        k,
    };
    let bpf = u32::try_from(libc::SYS_bpf).expect("a number of a system call");
    let refusal = libc::SECCOMP_RET_ERRNO | libc::EINVAL.unsigned_abs();
    // Offsets into `seccomp_data`: the number of the call at 0, the low half of its first argument at 16.
    let mut steps = [
        step(LOAD, 0, 0, 0),
        step(IF_EQUAL, 0, 3, bpf),
        step(LOAD, 0, 0, 16),
        step(IF_EQUAL, 0, 1, BPF_LINK_CREATE),
        step(RETURN, 0, 0, refusal),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog {
        len: u16::try_from(steps.len()).expect("six"),
        filter: steps.as_mut_ptr(),
    };
    // SAFETY: the kernel copies the steps, which are there for as long as the call lasts.
    let done = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}

/// How many filters of lb the proxy's interface has, by direction. To be called at the proxy's end.
fn filters() -> [usize; 2] {
    [("ingress", "lb_tc_in"), ("egress", "lb_tc_out")].map(|(direction, program)| {
        let mut show = Command::new("tc");
        let output = show.args(["filter", "show", "dev", "p0", direction]).output();
        let text = String::from_utf8(output.expect("tc comes with ip").stdout).expect("ASCII");
        text.lines()
            .filter(|line| line.contains("direct-action") && line.contains(program))
            .count()
    })
}

// [KERNEL-18]
fn without_tcx_the_programs_on_clsact_count_and_signal(network: &Network) {
    let server = bench::server(network, Family::V4);
    bench::run(network, async || {
        refuse_links();
        let mut bench = Bench::new(Attach::Tc, &[server.ip()]);
        let tc = Rungs {
            tc: true,
            cgroup: false,
        };
        assert_eq!(bench.plane.rungs(), tc);
        assert_eq!(filters(), [1, 1]);
        let mut line = bench.connect(server).await.expect("the server listens");
        line.ask(5_000).await.expect("the server answers");
        let counters = bench.plane.counters().expect("the map is there");
        let stats = counters.read(bench.slot).expect("a slot");
        let counted = [Counter::Syn, Counter::Handshake, Counter::BytesSent];
        assert_eq!(counted.map(|counter| stats.get(counter)), [1, 1, 5_005]);
        network.unreachable(Family::V4).expect("the route is taken");
        bench.set(line.cookie, Phase::Waiting);
        let fault = Fault::now();
        line.send(bench::ECHO, 100).await.expect("the socket has room");
        bench
            .expect(&fault, Duration::from_secs(5), bench::Seen::ejects)
            .await;
    });
}

// [KERNEL-18]
fn a_filter_on_clsact_goes_with_the_daemon_or_at_its_next_start(network: &Network) {
    bench::run(network, async || {
        refuse_links();
        let start = async || {
            let stage = Stage::set(network, Family::V4, "required", "enabled: true").await;
            stage.warm().await;
            assert!(stage.lb.log().contains("\"kernel\":\"tc\""), "{}", stage.lb.log());
            assert_eq!(filters(), [1, 1], "one of each, whatever was there before");
            stage
        };
        let mut ended = start().await;
        ended.lb.signal(Signal::TERM);
        ended.lb.exit().await;
        assert_eq!(filters(), [0, 0], "an orderly end leaves nothing");
        let mut killed = start().await;
        killed.lb.signal(Signal::KILL);
        killed.lb.exit().await;
        assert_eq!(filters(), [1, 1], "nobody was there to take them off");
        let again = start().await;
        network.unreachable(Family::V4).expect("the route is taken");
        assert_eq!(who(&again.lb.chat(false).await), "alt");
        assert_eq!(again.ejected().await, "kernel_unreachable");
    });
}
