//! An upstream's silences: how long they may last, and how long they were.

use std::task::{Context, Poll};
use std::time::Duration;

use super::alarm::Alarm;
use crate::clock::Clock;
use crate::metrics::Gaps;
use crate::policy::time::Instant;
use crate::upstream::Model;

/// The wait for a response's next bytes. The clock is read once for each, when it begins.
#[derive(Debug)]
pub(super) struct Silence {
    limit: Option<(Duration, Alarm)>,
    /// Since when the upstream has been waited for; `None` while it is not.
    since: Option<Instant>,
    /// When the wait before this one began, the first with the commit; `None` where gaps are not measured.
    before: Option<Instant>,
    /// Whether something has arrived since.
    arrived: bool,
    gaps: Option<Gaps>,
}

impl Silence {
    /// May last for `limit`; its gaps are measured from `commit` on.
    pub(super) fn new(limit: Option<Duration>, commit: Option<Instant>) -> Self {
        Self {
            limit: limit.map(|limit| (limit, Alarm::default())),
            since: None,
            before: commit,
            arrived: false,
            gaps: None,
        }
    }

    /// Something has arrived.
    pub(super) fn broken(&mut self) {
        (self.since, self.arrived) = (None, true);
    }

    /// Nothing is there at `now`. Returns since when that is so; whoever is waited for answers for `model`.
    pub(super) fn goes_on(&mut self, now: Instant, model: Option<&Model>) -> Instant {
        if let Some(since) = self.since {
            return since;
        }
        self.since = Some(now);
        self.measure(now, model);
        now
    }

    /// Whether it has lasted too long by `now`.
    pub(super) fn poll_too_long(
        &mut self,
        cx: &mut Context<'_>,
        (since, now): (Instant, Instant),
        clock: &Clock,
    ) -> Poll<()> {
        match &mut self.limit {
            Some((limit, alarm)) => alarm.poll(cx, now, since + *limit, clock),
            None => Poll::Pending,
        }
    }

    /// Whether there is a gap that [`Self::measure`] would measure.
    pub(super) fn has_gap(&self) -> bool {
        self.arrived && self.before.is_some()
    }

    /// Measures the gap that ended with what has arrived: that between the two waits around it, which is what arrivals
    /// lie apart when the client takes them as they come. [MEASURE-2]
    pub(super) fn measure(&mut self, now: Instant, model: Option<&Model>) {
        let arrived = std::mem::take(&mut self.arrived);
        let (Some(before), Some(model), true) = (&mut self.before, model, arrived) else {
            return;
        };
        let gap = now.since(std::mem::replace(before, now));
        self.gaps.get_or_insert_with(|| model.gaps()).record(gap);
    }
}

#[cfg(test)]
mod tests;
