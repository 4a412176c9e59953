//! What one way comes to in one kind of trouble.

use std::time::Duration;

use super::{SEEDS, Trouble, Way};
use crate::sim::fleet::{Fate, Fleet};

/// Medians over the seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Seconds to the client's first token that half, 95 and 99 in a hundred kept.
    pub first_token: [f64; 3],
    /// Part of the requests that the alternate answered.
    pub alternates: f64,
    /// Changes of provider between two attempts, for a hundred requests.
    pub failovers: f64,
    /// How much the part of requests that begin at the preferred provider changes from one half minute to the next, in
    /// the mean, in percentage points.
    pub oscillation: f64,
    /// Requests without an answer, for a thousand.
    pub unanswered: f64,
    /// The part of requests that begin at the preferred provider, half minute by half minute from the beginning, at the
    /// first seed.
    pub series: Vec<f64>,
}

/// Runs all seeds of one cell.
pub fn cell(way: Way, trouble: Trouble) -> Cell {
    let runs: Vec<_> = (0..SEEDS).map(|seed| run(way, trouble, seed)).collect();
    let median = |of: &dyn Fn(&Cell) -> f64| {
        let mut all: Vec<_> = runs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    Cell {
        first_token: [0, 1, 2].map(|place| median(&|run: &Cell| run.first_token[place])),
        alternates: median(&|run| run.alternates),
        failovers: median(&|run| run.failovers),
        oscillation: median(&|run| run.oscillation),
        unanswered: median(&|run| run.unanswered),
        series: runs[0].series.clone(),
    }
}

fn run(way: Way, trouble: Trouble, seed: u64) -> Cell {
    let story = trouble.story(way, seed);
    let fates = match Fleet::run(&story) {
        Ok((fates, _)) => fates,
        Err(broken) => panic!("{way:?} in {trouble:?}, seed {seed}: {broken:?}"),
    };
    let measured: Vec<_> = fates.iter().filter(|fate| fate.at >= trouble.from()).collect();
    let mut first_tokens: Vec<_> = measured.iter().filter_map(|fate| fate.first_token).collect();
    first_tokens.sort_unstable();
    let at = |percent: usize| {
        let place = (first_tokens.len() * percent / 100).min(first_tokens.len().saturating_sub(1));
        first_tokens.get(place).map_or(0.0, Duration::as_secs_f64)
    };
    let count = |is: &dyn Fn(&Fate) -> bool| measured.iter().filter(|fate| is(fate)).count();
    let all = number(measured.len());
    let answered_by = |fate: &Fate, name: &str| fate.answered_by.as_deref() == Some(name);
    let series = series(&fates);
    Cell {
        first_token: [at(50), at(95), at(99)],
        alternates: number(count(&|fate| answered_by(fate, "vendor"))) / all,
        failovers: 100.0 * measured.iter().map(|fate| f64::from(fate.switches)).sum::<f64>() / all,
        oscillation: oscillation(&series, trouble.from()),
        unanswered: 1000.0 * number(count(&|fate| fate.first_token.is_none())) / all,
        series,
    }
}

/// Half a minute.
pub(super) const SLOT: Duration = Duration::from_secs(30);

/// The part of requests that begin at the preferred provider, slot by slot.
fn series(fates: &[Fate]) -> Vec<f64> {
    let slots = Trouble::length().as_secs() / SLOT.as_secs();
    let part = |slot: u64| {
        let within = fates
            .iter()
            .filter(|fate| fate.at.as_secs() / SLOT.as_secs() == slot);
        let begun: Vec<_> = within.filter_map(|fate| fate.began_at.as_deref()).collect();
        let preferred = begun.iter().filter(|name| **name == "gpu").count();
        number(preferred) / number(begun.len().max(1))
    };
    (0..slots).map(part).collect()
}

fn oscillation(series: &[f64], from: Duration) -> f64 {
    let first = usize::try_from(from.as_secs() / SLOT.as_secs()).unwrap_or_default();
    let series = &series[first.min(series.len())..];
    let moves: Vec<_> = series.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    100.0 * moves.iter().sum::<f64>() / number(moves.len().max(1))
}

#[expect(clippy::cast_precision_loss, reason = "some thousands")]
fn number(count: usize) -> f64 {
    count as f64
}
