//! How long those who take part in a test waited for a CPU: time that the machine gave to somebody else.
//!
//! Bounds of milliseconds hold for what the programs, the daemon and the test do, not for how busy the machine is. The
//! kernel tells for each thread how long it could have run and did not, so that this can be added to a bound. It is the
//! sum over threads, some of which wait at the same time: never too little, on an idle machine next to nothing.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Nanoseconds by thread.
type Waits = BTreeMap<u32, u64>;

/// A span of time in which a daemon and this process take part.
#[derive(Debug)]
pub struct Patience {
    /// Process id of the daemon, if one takes part.
    daemon: Option<u32>,
    lb: Waits,
    others: Waits,
    stolen: Duration,
}

/// What was kept from them.
#[derive(Debug)]
pub struct Starved {
    /// The daemon alone.
    pub lb: Duration,
    /// The daemon, this process, and the threads of the kernel that packets wait for.
    pub all: Duration,
}

impl Patience {
    /// Begins to measure what this process, and the daemon with that process id, are kept waiting.
    pub fn begin(daemon: Option<u32>) -> Self {
        Self {
            daemon,
            lb: daemon.map(threads).unwrap_or_default(),
            others: others(),
            stolen: stolen(),
        }
    }

    /// What they were kept waiting since.
    pub fn end(&self) -> Starved {
        let lb = since(&self.lb, &self.daemon.map(threads).unwrap_or_default());
        let all = lb + since(&self.others, &others()) + stolen().saturating_sub(self.stolen);
        Starved { lb, all }
    }
}

fn since(before: &Waits, after: &Waits) -> Duration {
    let waits = after
        .iter()
        .map(|(thread, wait)| wait - before.get(thread).unwrap_or(&0).min(wait));
    Duration::from_nanos(waits.sum())
}

/// Of this process, and of the kernel's threads that do for packets what an interrupt did not.
fn others() -> Waits {
    let mut waits = threads(std::process::id());
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        let number = process.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(number) = number.filter(|_| name.starts_with("ksoftirqd/")) {
            waits.extend(threads(number));
        }
    }
    waits
}

fn threads(pid: u32) -> Waits {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let wait = |path: std::path::PathBuf| {
        // Nanoseconds run, nanoseconds waited, times run.
        let text = fs::read_to_string(path.join("schedstat")).ok()?;
        text.split(' ').nth(1)?.parse().ok()
    };
    tasks
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|task| Some((task.file_name().to_str()?.parse().ok()?, wait(task.path())?)))
        .collect()
}

/// What the host of a virtual machine gave to others, on all CPUs.
fn stolen() -> Duration {
    // cpu user nice system idle iowait irq softirq steal, in hundredths of a second
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let field = text
        .split_whitespace()
        .nth(8)
        .and_then(|ticks| ticks.parse().ok());
    Duration::from_millis(field.unwrap_or(0) * 10)
}
