//! What a fault cost: one row of the table.

use std::time::Duration;

use tokio::time::Instant;

use super::crowd::{Ending, Stream};
use super::{Fault, Target};

/// What clients saw of one fault.
#[derive(Debug, Clone)]
pub struct Row {
    fault: Fault,
    target: Target,
    /// Streams that were begun or waited for their first token under the fault.
    met: usize,
    /// Streams that never began.
    errors: usize,
    /// Streams that were cut, of the target and of others.
    cut: [usize; 2],
    /// Whole streams that the target began and ended under a fault that cuts all it begins.
    uncut: usize,
    /// How many requests the target was asked under the fault, where it can tell, else 0.
    asked: usize,
    /// To the first token, sorted, before the fault and under it.
    first: [Vec<Duration>; 2],
    /// From the end of the fault to the first token of the first whole stream by each of its endpoints.
    back: Duration,
}

impl Row {
    pub(super) fn new(
        fault: Fault,
        target: Target,
        streams: &[Stream],
        [made, mended]: [Instant; 2],
        asked: usize,
    ) -> Self {
        let ours = |stream: &Stream| stream.by.is_some_and(|by| target.endpoints().contains(&by));
        let ended = |ending: fn(&Ending) -> bool| {
            streams
                .iter()
                .filter(move |stream| stream.ending.as_ref().is_some_and(ending))
        };
        let cut = || ended(|ending| *ending == Ending::Cut);
        // What had its first token when the fault was made, is a stream that may be cut, and no wait for one.
        let meets = |stream: &&Stream| stream.begun < mended && stream.first.is_none_or(|first| first > made);
        let to_first = |stream: &Stream| stream.first.map(|first| first - stream.begun);
        let sorted = |mut spans: Vec<Duration>| {
            spans.sort_unstable();
            spans
        };
        let under = streams.iter().filter(meets);
        let before = streams
            .iter()
            .filter(|stream| stream.first.is_some_and(|first| first <= made));
        let back = target.endpoints().filter_map(|n| {
            let whole = ended(|ending| *ending == Ending::Whole);
            let after = whole.filter(|stream| stream.by == Some(n) && stream.begun > mended);
            after.filter_map(|stream| stream.first).min()
        });
        Self {
            fault,
            target,
            met: under.clone().count(),
            errors: ended(|ending| matches!(ending, Ending::Error(_))).count(),
            cut: [
                cut().filter(|stream| ours(stream)).count(),
                cut().filter(|stream| !ours(stream)).count(),
            ],
            uncut: ended(|ending| *ending == Ending::Whole)
                .filter(|stream| {
                    fault == Fault::Cut && ours(stream) && stream.begun > made && stream.begun < mended
                })
                .filter(|stream| stream.first.is_some_and(|first| first < mended))
                .count(),
            asked,
            first: [
                sorted(before.filter_map(to_first).collect()),
                sorted(under.filter_map(to_first).collect()),
            ],
            back: back.max().map_or(Duration::ZERO, |at| at - mended),
        }
    }

    /// What must hold of every fault: no client got an error, exactly streams of the target were cut, and only by a
    /// fault that cuts streams.
    ///
    /// # Panics
    /// If it does not.
    pub fn check(&self) {
        let [ours, others] = self.cut;
        assert_eq!(self.errors, 0, "somebody could have answered: {self:?}");
        assert_eq!(others, 0, "streams of others were cut: {self:?}");
        assert_eq!(ours > 0, self.fault.breaks_streams(), "{self:?}");
        if self.fault == Fault::Cut {
            assert_eq!(self.uncut, 0, "{self:?}");
            assert!(ours <= self.asked, "{self:?}");
        }
    }

    /// The head of the table whose rows [`Row::line`] gives.
    pub const HEAD: &str = "\
| fault | of | streams | errors | cut | first token before, p50 / p99 | under the fault, p50 / p99 / worst | back after |
|---|---|---:|---:|---:|---:|---:|---:|
";

    /// The row as a line of a table, in milliseconds.
    pub fn line(&self) -> String {
        let [before, under] = &self.first;
        let ms = |span: Duration| span.as_millis();
        let at = |spans: &[Duration], percent: usize| {
            spans
                .get(spans.len().saturating_sub(1) * percent / 100)
                .map_or(0, |span| ms(*span))
        };
        format!(
            "| {} | {} | {} | {} | {} | {} / {} ms | {} / {} / {} ms | {} ms |",
            self.fault.name(),
            self.target.name(),
            self.met,
            self.errors,
            self.cut[0],
            at(before, 50),
            at(before, 99),
            at(under, 50),
            at(under, 99),
            at(under, 100),
            ms(self.back),
        )
    }
}
