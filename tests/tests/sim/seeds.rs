//! Which seeds are run, on all cores, and what is said of those that fail.

pub(super) fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")),
    )
}

pub(super) fn seeds(count: u64) -> Vec<u64> {
    let count = number("LB_SIM_SEEDS").map_or(count, |all| all * count / 256);
    number("LB_SIM_SEED").map_or_else(|| (0..count.max(1)).collect(), |seed| vec![seed])
}

/// Does `work` for every seed, on all cores; the answers come in the order of the seeds.
pub(super) fn for_all<T: Send>(seeds: &[u64], work: impl Fn(u64) -> T + Sync) -> Vec<(u64, T)> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let work = &work;
    let mut answers: Vec<(u64, T)> = std::thread::scope(|scope| {
        let start = |worker| {
            let mine = seeds.iter().skip(worker).step_by(threads);
            scope.spawn(move || mine.map(|seed| (*seed, work(*seed))).collect::<Vec<_>>())
        };
        let workers: Vec<_> = (0..threads).map(start).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("a run failed, as told above"))
            .collect()
    });
    answers.sort_unstable_by_key(|(seed, _)| *seed);
    answers
}

/// What does not hold, each with the seed to run again.
#[derive(Default)]
pub(super) struct Failures(Vec<String>);

impl Failures {
    pub(super) fn require(&mut self, holds: bool, seed: u64, what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(format!("LB_SIM_SEED={seed}: {}", what()));
        }
    }

    pub(super) fn finish(self) {
        assert!(
            self.0.is_empty(),
            "{} failures:\n{}",
            self.0.len(),
            self.0.join("\n")
        );
    }
}
