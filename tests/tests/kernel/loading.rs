//! The verifier takes the programs, and they stay small.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use aya::Ebpf;
use aya::programs::{Program, ProgramError, loaded_programs};
use lb::kernel::{Attach, Mode, Settings, Started, start};
use lb_tests::daemon::Folder;
use lb_tests::netns::{Family, Network};

use crate::harness::{self, Tests};

/// The verifier gives up at a million; a program that comes near this has lost a bound somewhere.
const LIMIT: u32 = 20_000;

pub(crate) fn tests(tests: &mut Tests) {
    tests.programs(every_program_passes_the_verifier_below_the_limit);
    tests.programs(without_privilege_the_plane_stays_off_and_says_why);
    tests.network(a_killed_process_leaves_no_program_behind_and_the_next_one_starts);
}

fn load(program: &mut Program) -> Result<(), ProgramError> {
    match program {
        Program::SchedClassifier(program) => program.load(),
        Program::CgroupSkb(program) => program.load(),
        other => panic!("a program of a kind that lb does not use: {other:?}"),
    }
}

// [KERNEL-20]
fn every_program_passes_the_verifier_below_the_limit(object: &'static [u8]) {
    let mut loaded = Ebpf::load(object).expect("loaded a moment ago");
    let mut names = Vec::new();
    for (name, program) in loaded.programs_mut() {
        load(program).unwrap_or_else(|error| panic!("{name}: {error}"));
        let info = program.info().expect("a loaded program has information");
        // Kernels before 5.16 do not tell.
        let verified = info.verified_instruction_count().unwrap_or(0);
        harness::measured(&format!(
            "{name}: {verified} instructions verified, {} bytes of code",
            info.size_jitted()
        ));
        assert!(verified < LIMIT, "{name} took {verified} instructions to verify");
        names.push(name.to_owned());
    }
    names.sort();
    assert_eq!(names, ["lb_cg_in", "lb_cg_out", "lb_tc_in", "lb_tc_out"]);
}

/// How many programs of lb the kernel holds, whoever loaded them.
pub(crate) fn held() -> usize {
    loaded_programs()
        .flatten()
        .filter(|program| program.name().starts_with(b"lb_"))
        .count()
}

pub(crate) fn wait_for(wanted: usize) {
    let patience = Instant::now() + Duration::from_secs(10);
    while held() != wanted {
        assert!(Instant::now() < patience, "{} programs, not {wanted}", held());
        thread::yield_now();
    }
}

fn settings() -> Settings {
    Settings {
        mode: Mode::Required,
        attach: Attach::Auto,
        ..Settings::default()
    }
}

// [KERNEL-18]
fn a_killed_process_leaves_no_program_behind_and_the_next_one_starts(network: &Network) {
    let before = held();
    network.at_proxy(|| {
        // A child inherits the namespace of the thread that makes it.
        let mut child = Command::new(std::env::current_exe().expect("a test is a file"))
            .env(CHILD, "attaches and waits")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the test runs itself");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let attached = output
            .lines()
            .any(|line| line.is_ok_and(|line| line.contains(ATTACHED)));
        assert!(attached, "the child did not attach");
        assert!(held() > before);
        child.kill().expect("it waits to be killed");
        child.wait().expect("it was killed");
        wait_for(before);
        let started = start(&settings(), lb::kernel::embedded(), &[Family::V4.server()]);
        assert!(matches!(started, Ok(Started::On(..))), "{started:?}");
    });
    wait_for(before);
}

const ATTACHED: &str = "attached";

/// The variable that has this program do something else than test.
const CHILD: &str = "LB_KERNEL_TEST_CHILD";

/// Does what a child is for, if this process is one.
pub(crate) fn child() -> Option<ExitCode> {
    match std::env::var(CHILD).ok()?.as_str() {
        "attaches and waits" => attaches_and_waits_to_be_killed(),
        "starts without privilege" => starts_without_privilege(),
        other => panic!("no child does {other:?}"),
    }
    Some(ExitCode::SUCCESS)
}

#[expect(clippy::print_stdout, reason = "says to its parent how far it is")]
fn attaches_and_waits_to_be_killed() -> ! {
    let here = [Family::V4.server(), "127.0.0.1".parse().expect("an address")];
    let started = start(&settings(), lb::kernel::embedded(), &here);
    let Ok(Started::On(plane, gaps)) = &started else {
        panic!("{started:?}")
    };
    assert!(gaps.is_empty(), "{gaps:?}");
    println!("{ATTACHED}: {}", plane.rungs().name());
    loop {
        thread::park();
    }
}

pub(crate) const NOBODY: u32 = 65_534;

// [KERNEL-17]
fn without_privilege_the_plane_stays_off_and_says_why(_object: &'static [u8]) {
    let folder = Folder::new();
    let child = Command::new(folder.within_reach(&std::env::current_exe().expect("a test is a file")))
        .env(CHILD, "starts without privilege")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .expect("a file that everybody may run");
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(
        output.contains("creating the maps: not permitted (needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON)"),
        "{output}"
    );
    assert!(child.status.success(), "{child:?}");
}

#[expect(clippy::print_stdout, reason = "says to its parent what it was told")]
fn starts_without_privilege() {
    let auto = Settings {
        mode: Mode::Auto,
        ..settings()
    };
    let started = start(&auto, lb::kernel::embedded(), &[]).expect("auto never refuses");
    let Started::Off(Some(reason)) = started else {
        panic!("started as nobody: {started:?}")
    };
    println!("{reason}");
    let refused = start(&settings(), lb::kernel::embedded(), &[]).expect_err("required refuses");
    assert!(refused.is_privilege());
}
