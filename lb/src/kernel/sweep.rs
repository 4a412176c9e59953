//! Finds SYNs that have waited too long for an answer. Nothing happens on the wire when nothing comes back, so no program
//! can see it; the daemon looks.

use std::collections::BTreeMap;
use std::time::Duration;

use aya::maps::{HashMap, MapData, MapError};
use lb_ebpf::{Counter, Event, Hook, Kind, Pending, Stats, Tuple};

use super::object::Plain;
use crate::policy::time::Instant;

/// How often to look: a tenth of the shortest sensible limit.
pub(super) const INTERVAL: Duration = Duration::from_millis(25);

/// Entries read in one sweep. An iteration whose place is deleted under it begins again; this ends it.
const MOST: usize = 16_384;

/// The map `PENDING`.
pub(super) type Waiting = HashMap<MapData, Plain<Tuple>, Plain<Pending>>;

/// Takes what is overdue out of `waiting` and reports it as events. `stats` reads a slot's counters.
pub(super) fn sweep(
    waiting: &mut Waiting,
    patience: &mut Patience,
    now: Instant,
    stats: impl Fn(u16) -> Option<Stats>,
    mut on: impl FnMut(Event),
) {
    // Entries come and go meanwhile: what is missed or met twice now is judged by the next sweep or taken only once.
    let old: Vec<_> = waiting
        .iter()
        .take(MOST)
        .flatten()
        .filter(|(_, Plain(pending))| patience.may_be_over(age(pending, now)))
        .collect();
    for (Plain(tuple), Plain(pending)) in old {
        let Ok(slot) = u16::try_from(pending.slot) else {
            continue;
        };
        if let Some(stats) = stats(slot) {
            patience.on_stats(slot, &stats);
        }
        let age = age(&pending, now);
        // Whoever takes it out reports it: an answer that arrives right now wins.
        if age >= patience.limit(slot) && take(waiting, tuple) {
            on(overdue(tuple, pending, slot, age, now));
        }
    }
}

fn take(waiting: &mut Waiting, tuple: Tuple) -> bool {
    let removed: Result<(), MapError> = waiting.remove(&Plain(tuple));
    removed.is_ok()
}

fn age(pending: &Pending, now: Instant) -> Duration {
    now.since(Instant::from_nanos(pending.since))
}

fn overdue(tuple: Tuple, pending: Pending, slot: u16, age: Duration, now: Instant) -> Event {
    Event {
        time: now.as_nanos(),
        cookie: pending.cookie,
        tuple,
        slot,
        kind: Kind::SynTimeout as u8,
        hook: Hook::Sweep as u8,
        arg: 0,
        age_us: u32::try_from(age.as_micros()).unwrap_or(u32::MAX),
    }
}

/// How long a SYN to an endpoint may go unanswered. Pure.
///
/// Three times the endpoint's smoothed handshake time, at least a configured floor. An endpoint that has never been
/// reached may simply be far away: it gets a second. [KERNEL-19]
#[derive(Debug)]
pub(super) struct Patience {
    floor: Duration,
    endpoints: BTreeMap<u16, Handshakes>,
}

#[derive(Debug, Default)]
struct Handshakes {
    count: u64,
    sum: Duration,
    smoothed: Option<Duration>,
}

const NEVER_REACHED: Duration = Duration::from_secs(1);

impl Patience {
    pub(super) fn new(floor: Duration) -> Self {
        Self {
            floor,
            endpoints: BTreeMap::new(),
        }
    }

    /// Takes in the handshakes that were counted since the last call.
    pub(super) fn on_stats(&mut self, slot: u16, stats: &Stats) {
        let count = stats.get(Counter::Handshake);
        let sum = Duration::from_micros(stats.get(Counter::HandshakeMicroseconds));
        let known = self.endpoints.entry(slot).or_default();
        let new = u32::try_from(count.saturating_sub(known.count)).unwrap_or(u32::MAX);
        if new > 0 {
            let mean = sum.saturating_sub(known.sum) / new;
            // An eighth of each new reading, as TCP smooths its round trips.
            known.smoothed = Some(known.smoothed.map_or(mean, |smoothed| (smoothed * 7 + mean) / 8));
        }
        (known.count, known.sum) = (count, sum);
    }

    /// Whether that age is worth a closer look.
    fn may_be_over(&self, age: Duration) -> bool {
        age >= self.floor.min(NEVER_REACHED)
    }

    fn limit(&self, slot: u16) -> Duration {
        let smoothed = self.endpoints.get(&slot).and_then(|known| known.smoothed);
        smoothed.map_or_else(
            || self.floor.max(NEVER_REACHED),
            |smoothed| self.floor.max(smoothed * 3),
        )
    }

    /// Forgets an endpoint whose slot is given to another.
    pub(super) fn forget(&mut self, slot: u16) {
        self.endpoints.remove(&slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(count: u64, total_ms: u64) -> Stats {
        let mut stats = Stats::ZERO;
        stats.add(Counter::Handshake, count);
        stats.add(Counter::HandshakeMicroseconds, total_ms * 1_000);
        stats
    }

    // [KERNEL-19]
    #[test]
    fn patience_is_a_second_until_an_endpoint_was_reached() {
        let mut patience = Patience::new(Duration::from_millis(250));
        assert_eq!(patience.limit(0), Duration::from_secs(1));
        patience.on_stats(0, &stats(0, 0));
        assert_eq!(patience.limit(0), Duration::from_secs(1));
        patience.on_stats(0, &stats(2, 40));
        assert_eq!(patience.limit(0), Duration::from_millis(250));
        assert_eq!(patience.limit(1), Duration::from_secs(1));
    }

    // [KERNEL-19]
    #[test]
    fn patience_follows_a_slow_endpoint() {
        let mut patience = Patience::new(Duration::from_millis(250));
        patience.on_stats(0, &stats(1, 200));
        assert_eq!(patience.limit(0), Duration::from_millis(600));
        // One handshake of 1,000 ms more: 7/8 of 200 and 1/8 of 1,000 are 300.
        patience.on_stats(0, &stats(2, 1_200));
        assert_eq!(patience.limit(0), Duration::from_millis(900));
        patience.on_stats(0, &stats(2, 1_200));
        assert_eq!(patience.limit(0), Duration::from_millis(900));
        patience.forget(0);
        assert_eq!(patience.limit(0), Duration::from_secs(1));
    }
}
