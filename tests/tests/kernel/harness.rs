//! What every test here needs: the privilege that it takes, a thread of its own, and a word for "skipped".
//!
//! The built-in harness knows no test that finds out at run time that it cannot run. So what this machine lacks is found
//! out before the list of tests is made, and what cannot run is on the list as ignored, with the reason below it.

use std::any::type_name;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write as _};
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use aya::Ebpf;
use lb::kernel::{Attach, Mode, Settings, start};
use lb_tests::netns::Network;
use libtest_mimic::{Arguments, Failed, Trial};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Why tests of a kind cannot run here, if they cannot.
#[derive(Debug, Clone)]
struct Lacks {
    programs: Option<String>,
    network: Option<String>,
}

/// The tests, with what keeps them from running.
#[derive(Debug)]
pub(crate) struct Tests {
    lacks: Lacks,
    trials: Vec<Trial>,
    /// How many tests cannot run, by the reason.
    skipped: BTreeMap<String, usize>,
}

impl Tests {
    pub(crate) fn new() -> Self {
        let programs = programs_lack();
        let network = programs.clone().or_else(network_lacks);
        Self {
            lacks: Lacks { programs, network },
            trials: Vec::new(),
            skipped: BTreeMap::new(),
        }
    }

    /// A test of the programs alone; it is given their object.
    pub(crate) fn programs<F: Fn(&'static [u8]) + Send + 'static>(&mut self, test: F) {
        let lack = self.lacks.programs.clone();
        self.add::<F>(lack, move || {
            test(lb::kernel::embedded().expect("looked for when the list was made"));
        });
    }

    /// A test in namespaces; it is given a network without faults.
    pub(crate) fn network<F: Fn(&Network) + Send + 'static>(&mut self, test: F) {
        let lack = self.lacks.network.clone();
        self.add::<F>(lack, move || {
            test(&Network::new().expect("namespaces can be made: looked for when the list was made"));
        });
    }

    /// The type of a function is called by its path, which is the name that the built-in harness gives a test.
    fn add<F>(&mut self, lack: Option<String>, run: impl FnOnce() + Send + 'static) {
        let path = type_name::<F>();
        let name = path.split_once("::").map_or(path, |(_, name)| name);
        let skip = lack.is_some() && !required();
        if let Some(why) = lack.clone().filter(|_| skip) {
            *self.skipped.entry(why).or_default() += 1;
        }
        let trial = Trial::test(name, move || match lack {
            Some(why) => Err(Failed::from(format!("it cannot run here: {why}"))),
            None => alone(run),
        });
        self.trials.push(trial.with_ignored_flag(skip));
    }

    /// Runs what the command line asks for. `--skipped` asks only what would be skipped: a line for each reason.
    pub(crate) fn run(self) -> io::Result<ExitCode> {
        let all = self.trials.len();
        let skipped = self.skipped;
        let tell = |to: &mut dyn io::Write| {
            let mut lines = skipped.iter();
            lines.try_for_each(|(why, count)| writeln!(to, "{count} of {all} tests skipped: {why}"))
        };
        if std::env::args().any(|argument| argument == "--skipped") {
            tell(&mut io::stdout())?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut arguments = Arguments::from_args();
        // Faults are measured in milliseconds on a small machine, and the process has one cgroup.
        arguments.test_threads = Some(1);
        let conclusion = libtest_mimic::run(&arguments, self.trials);
        if !arguments.list {
            tell(&mut io::stderr())?;
        }
        Ok(conclusion.exit_code())
    }
}

/// Runs a test on a thread that ends with it, for tests pin their thread to a CPU and take system calls from it.
fn alone(run: impl FnOnce() + Send) -> Result<(), Failed> {
    thread::scope(|scope| match scope.spawn(run).join() {
        Ok(()) => Ok(()),
        // What it had to say was printed as it panicked.
        Err(_) => Err(Failed::without_message()),
    })
}

fn programs_lack() -> Option<String> {
    let Some(object) = lb::kernel::embedded() else {
        return Some("lb was built without the kernel programs (`cargo xtask build-ebpf`)".into());
    };
    let error = Ebpf::load(object).err()?;
    let causes = std::iter::successors(Some(&error as &dyn Error), |&error| error.source());
    let cause = causes.last().map(ToString::to_string).unwrap_or_default();
    let line = cause.lines().next().unwrap_or_default();
    Some(format!("the kernel takes no programs from us: {line}"))
}

/// What the whole plane and namespaces need besides.
fn network_lacks() -> Option<String> {
    let settings = Settings {
        mode: Mode::Required,
        attach: Attach::Cgroup,
        ..Settings::default()
    };
    if let Err(missing) = start(&settings, lb::kernel::embedded(), &[]) {
        return Some(missing.to_string());
    }
    for [tool, argument] in [["ip", "-V"], ["nft", "-v"]] {
        let mut command = Command::new(tool);
        command.arg(argument).stdout(Stdio::null());
        if !command.status().is_ok_and(|status| status.success()) {
            return Some(format!("there is no `{tool}`"));
        }
    }
    let made = thread::scope(|scope| scope.spawn(namespace).join());
    match made {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("no network namespaces: {error}")),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

#[expect(unsafe_code, reason = "moving to another namespace asks for a promise")]
fn namespace() -> io::Result<()> {
    // SAFETY: only sharing a table of descriptors is a danger to memory, and this flag keeps that.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?)
}

/// Whether a test that cannot run is a failure.
pub(crate) fn required() -> bool {
    std::env::var_os("LB_REQUIRE_KERNEL").is_some_and(|value| value == "1")
}

/// Prints a measurement, for whoever runs the tests with `--nocapture`.
pub(crate) fn measured(line: &str) {
    if std::env::args().any(|argument| argument == "--nocapture") {
        // A figure that cannot be printed is no reason to fail.
        drop(writeln!(io::stderr(), "measured: {line}"));
    }
}
