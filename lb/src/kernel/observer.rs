//! Turns events into reactions, on the thread that runs it.

use std::fmt;
use std::io;
use std::time::Duration;

use aya::Ebpf;
use lb_ebpf::Event;
use tokio::time::{MissedTickBehavior, interval};

use super::counters::Counters;
use super::error::Missing;
use super::ring::Ring;
use super::signal::{Evidence, Judge, Params, Phase, Reaction, Sighting};
use super::sweep::{self, Patience, Waiting};
use super::{Plane, counters};
use crate::clock::Clock;
use crate::policy::time::Instant;

/// How often to look whether an interface came again. A message of the kernel would tell at once; a second of missing
/// evidence after a link was made anew is not worth the machinery.
const INTERFACES: Duration = Duration::from_secs(1);

/// The one reader of the programs' events.
pub struct Observer {
    plane: Plane,
    clock: Clock,
    ring: Ring,
    waiting: Waiting,
    patience: Patience,
    judge: Judge,
    counters: Counters,
}

impl Observer {
    pub(super) fn new(
        plane: Plane,
        loaded: &mut Ebpf,
        params: &Params,
        clock: Clock,
    ) -> Result<Self, Missing> {
        let counters = counters(loaded).map_err(|error| Missing::new("opening the counters", &error))?;
        let ring = Ring::new(loaded.take_map("EVENTS").ok_or(Missing::Layout)?)?;
        let waiting = Waiting::try_from(loaded.take_map("PENDING").ok_or(Missing::Layout)?)
            .map_err(|error| Missing::new("opening the map of SYNs", &error))?;
        let (patience, judge) = (Patience::new(params.settings().syn_timeout), Judge::new(params));
        Ok(Self {
            plane,
            clock,
            ring,
            waiting,
            patience,
            judge,
            counters,
        })
    }

    /// Observes until polling the ring fails, and returns that error.
    ///
    /// `phase` says what the connection with a cookie is doing. It must still answer for about a second after a
    /// connection has ended, with what it was doing last: the worker sees a reset at the same time as this does.
    /// `react` carries out. Both are called for every sighting, in its order, and must not block: what they delay is
    /// the next signal.
    pub async fn run(
        mut self,
        phase: impl Fn(u64) -> Option<Phase>,
        mut react: impl FnMut(&Sighting, Reaction),
    ) -> io::Error {
        let mut ticks = interval(sweep::INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut checks = interval(INTERFACES);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut events = Vec::new();
        loop {
            tokio::select! {
                biased;
                // Before the ring, which under a storm of events would never let them come.
                _ = ticks.tick() => self.sweep(&mut events),
                _ = checks.tick() => self.plane.follow_interfaces(),
                drained = self.ring.drain(|event| events.push(event)) => {
                    if let Err(error) = drained {
                        return error;
                    }
                }
            }
            self.forget_reused();
            for event in events.drain(..) {
                self.on_event(&event, &phase, &mut react);
            }
        }
    }

    fn sweep(&mut self, events: &mut Vec<Event>) {
        let counters = &self.counters;
        let stats = |slot| counters.read(slot).ok();
        sweep::sweep(
            &mut self.waiting,
            &mut self.patience,
            self.clock.now(),
            stats,
            |event| {
                events.push(event);
            },
        );
    }

    fn forget_reused(&mut self) {
        for slot in self.plane.take_reused() {
            self.judge.forget(slot);
            self.patience.forget(slot);
        }
    }

    fn on_event(
        &mut self,
        event: &Event,
        phase: &impl Fn(u64) -> Option<Phase>,
        react: &mut impl FnMut(&Sighting, Reaction),
    ) {
        let Some(sighting) = Sighting::from_event(event) else {
            return;
        };
        // Its endpoint is gone, and so are, in a moment, its last connections.
        let Some(endpoint) = self.plane.endpoint(sighting.slot) else {
            return;
        };
        let reaction =
            self.judge
                .on_sighting(&sighting, phase(sighting.cookie), endpoint, self.heard(&sighting));
        react(&sighting, reaction);
    }

    /// When the endpoint was last heard. Only for loss is it worth the reading; where the counters cannot be read,
    /// nobody can say that the endpoint is silent, so it counts as heard just now.
    fn heard(&self, sighting: &Sighting) -> Instant {
        if !matches!(sighting.evidence, Evidence::Loss(_)) {
            return sighting.at;
        }
        let stats = self.counters.read(sighting.slot);
        stats.map_or(sighting.at, |stats| Instant::from_nanos(stats.heard))
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer")
            .field("judge", &self.judge)
            .finish_non_exhaustive()
    }
}
