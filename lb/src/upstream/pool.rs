//! A model's targets in order, and the controller that steers where requests to them start.

use std::sync::{Arc, Mutex, PoisonError};

use super::adopt::{Controllers, Loads};
use crate::metrics::PoolMetrics;
use crate::policy::aimd::{Change, Counted, Direction, Generation, Outcome, Params, Share, Snapshot, Start};
use crate::policy::draw::Draw;
use crate::policy::time::Instant;

/// The controller of one priority pool, with its series.
#[derive(Debug)]
pub struct Pool {
    /// The model it belongs to.
    pub model: Box<str>,
    /// `default`, or a named continuation pool's name.
    pub name: Box<str>,
    /// The controller that steers.
    pub(super) controller: Option<Arc<Controller>>,
    /// The same one, and those that are parked, each with what it is about.
    pub(super) controllers: Controllers,
    /// The load of every target, also of those that are not tried now.
    pub(super) loads: Loads,
}

#[derive(Debug)]
pub(super) struct Controller {
    share: Mutex<Share>,
    params: Params,
    metrics: PoolMetrics,
}

impl Controller {
    pub(super) fn new(share: Share, metrics: PoolMetrics, now: Instant) -> Self {
        let controller = Self {
            params: share.params().clone(),
            share: Mutex::new(share),
            metrics,
        };
        controller.publish(now);
        controller
    }

    pub(super) fn params(&self) -> &Params {
        &self.params
    }

    /// Puts it out of use until its preferred target is back.
    pub(super) fn park(&self, now: Instant) {
        self.with(Share::park);
        self.publish(now);
    }

    /// Puts it back into use, if it is not.
    pub(super) fn resume(&self, now: Instant) {
        self.with(Share::resume);
        self.publish(now);
    }

    /// Puts it out of use for good: attempts that are under way still end here, and change nothing.
    pub(super) fn retire(&self, now: Instant) {
        self.park(now);
    }

    /// Draws where an eligible request starts, by its conversation where it is of one.
    pub(super) fn begin(&self, pool: &Pool, now: Instant, conversation: Option<u64>) -> Start {
        let (start, change) = self.with(|share| {
            let (start, change) = match conversation {
                Some(point) => share.begin_at(now, Draw::of_bits(point)),
                None => share.begin(now),
            };
            // A request may still have the table in which this steered; the series are another's by now.
            (start, change.filter(|_| !share.snapshot(now).parked))
        });
        if let Some(change) = change {
            self.announce(pool, &change);
        }
        match start {
            Start::Alternate => self.metrics.draws_alternate.inc(),
            Start::Preferred => self.metrics.draws_preferred.inc(),
        }
        start
    }

    /// Opens the outcome of an attempt on the preferred target.
    pub(super) fn attempt(&self) -> Generation {
        self.metrics.in_flight.inc();
        self.with(Share::attempt)
    }

    /// Closes it; `overload` is the status where that is what made it a breach.
    pub(super) fn settle(
        &self,
        pool: &Pool,
        now: Instant,
        generation: Generation,
        outcome: Outcome,
        overload: Option<u16>,
    ) {
        let (counted, change) = self.with(|share| share.on_outcome(now, generation, outcome));
        self.metrics.in_flight.dec();
        match counted {
            Counted::Breach => self.metrics.breach.inc(),
            Counted::Healthy => self.metrics.healthy.inc(),
            Counted::Stale => self.metrics.stale.inc(),
            Counted::Unknown => self.metrics.unknown.inc(),
        }
        if let (Counted::Breach, Some(status)) = (counted, overload)
            && let Some((_, counter)) = self.metrics.overload.iter().find(|(listed, _)| *listed == status)
        {
            counter.inc();
        }
        if let Some(change) = change {
            self.announce(pool, &change);
        }
    }

    /// Where the share stands, with steps that are due.
    pub(super) fn snapshot(&self, now: Instant) -> Snapshot {
        self.with(|share| share.snapshot(now))
    }

    /// Sets the gauges to the present.
    pub(super) fn publish(&self, now: Instant) {
        let snapshot = self.snapshot(now);
        self.metrics.share.set(snapshot.share);
        self.metrics.active.set(i64::from(!snapshot.parked));
        self.metrics
            .window_samples
            .set(i64::try_from(snapshot.window_samples).unwrap_or(i64::MAX));
        self.metrics
            .window_breach
            .set(snapshot.window_breach_rate.unwrap_or(0.0));
    }

    fn announce(&self, pool: &Pool, change: &Change) {
        let (counter, reason) = match change.direction {
            Direction::Down => (&self.metrics.down, "breach rate over target"),
            Direction::Idle => (&self.metrics.idle, "idle recovery"),
            Direction::Up => (&self.metrics.up, "healthy for a dwell"),
        };
        counter.inc();
        self.metrics.share.set(change.to);
        tracing::info!(
            model = %pool.model, pool = %pool.name, from = readable(change.from), to = readable(change.to),
            reason, breach_rate = change.breach_rate.map(readable), "share changed"
        );
    }

    fn with<T>(&self, f: impl FnOnce(&mut Share) -> T) -> T {
        // A panic in the machine would have been a bug in one request; its state is still the best there is.
        f(&mut self.share.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A part of one, to four places: what follows is the noise of binary fractions.
fn readable(part: f64) -> f64 {
    (part * 1e4).round() / 1e4
}
