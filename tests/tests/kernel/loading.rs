//! The verifier takes the programs, and they stay small.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use aya::Ebpf;
use aya::programs::{Program, ProgramError, loaded_programs};
use lb::kernel::{Attach, Mode, Settings, Started, start};
use lb_tests::netns::{Family, Network};

use crate::support;

/// The verifier gives up at a million; a program that comes near this has lost a bound somewhere.
const LIMIT: u32 = 20_000;

fn load(program: &mut Program) -> Result<(), ProgramError> {
    match program {
        Program::SchedClassifier(program) => program.load(),
        Program::CgroupSkb(program) => program.load(),
        other => panic!("a program of a kind that lb does not use: {other:?}"),
    }
}

// [KERNEL-20]
#[test]
fn every_program_passes_the_verifier_below_the_limit() {
    let Some(granted) = support::object() else { return };
    let mut loaded = Ebpf::load(granted.thing).expect("loaded a moment ago");
    let mut names = Vec::new();
    for (name, program) in loaded.programs_mut() {
        load(program).unwrap_or_else(|error| panic!("{name}: {error}"));
        let info = program.info().expect("a loaded program has information");
        // Kernels before 5.16 do not tell.
        let verified = info.verified_instruction_count().unwrap_or(0);
        support::measured(&format!(
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
#[test]
fn a_killed_process_leaves_no_program_behind_and_the_next_one_starts() {
    let Some(granted) = support::network() else { return };
    let network: &Network = &granted.thing;
    let before = held();
    network.at_proxy(|| {
        // A child inherits the namespace of the thread that makes it.
        let mut child = Command::new(std::env::current_exe().expect("a test is a file"))
            .args([
                "--exact",
                "loading::attaches_and_waits_to_be_killed",
                "--ignored",
                "--nocapture",
            ])
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

#[test]
#[ignore = "run, and killed, by the test of a killed process"]
#[expect(clippy::print_stdout, reason = "says to its parent how far it is")]
fn attaches_and_waits_to_be_killed() {
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

const NOBODY: u32 = 65_534;

// [KERNEL-17]
#[test]
fn without_privilege_the_plane_stays_off_and_says_why() {
    let Some(_granted) = support::object() else { return };
    let child = Command::new(std::env::current_exe().expect("a test is a file"))
        .args([
            "--exact",
            "loading::starts_without_privilege",
            "--ignored",
            "--nocapture",
        ])
        .uid(NOBODY)
        .gid(NOBODY)
        .output();
    // Where the build lies out of nobody's reach, there is nothing to see.
    let Ok(child) = child else { return };
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(
        output.contains("creating the maps: not permitted (needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON)"),
        "{output}"
    );
}

#[test]
#[ignore = "run as nobody by the test without privilege"]
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
