//! What every test here needs: a reason to skip, and one test at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use aya::Ebpf;
use lb_tests::netns::Network;

/// Faults are measured in milliseconds on a small machine, and the process has one cgroup: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// What a test was given.
pub(crate) struct Granted<T> {
    pub(crate) thing: T,
    alone: MutexGuard<'static, ()>,
}

/// The object of the kernel programs, if the kernel lets us load it.
pub(crate) fn object() -> Option<Granted<&'static [u8]>> {
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(object) = lb::kernel::embedded() else {
        return skip("built without the kernel programs");
    };
    match Ebpf::load(object) {
        Ok(_) => Some(Granted { thing: object, alone }),
        Err(error) => skip(&format!("the kernel takes no programs from us: {error}")),
    }
}

/// A network, besides.
pub(crate) fn network() -> Option<Granted<Network>> {
    let Granted { alone, .. } = object()?;
    match Network::new() {
        Ok(thing) => Some(Granted { thing, alone }),
        Err(error) => skip(&format!("no network of our own: {error}")),
    }
}

/// Whether a skip is a failure.
pub(crate) fn required() -> bool {
    std::env::var_os("LB_REQUIRE_KERNEL").is_some_and(|value| value == "1")
}

#[expect(
    clippy::print_stderr,
    reason = "a skipped test must say so, and the harness has no word for it"
)]
fn skip<T>(reason: &str) -> Option<T> {
    assert!(!required(), "LB_REQUIRE_KERNEL=1, but: {reason}");
    eprintln!("skipped: {reason}");
    None
}

/// Prints a measurement, for whoever runs the tests with `--nocapture`.
#[expect(clippy::print_stderr, reason = "figures for a report")]
pub(crate) fn measured(line: &str) {
    eprintln!("measured: {line}");
}
