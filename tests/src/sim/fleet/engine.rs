//! The loop: what is due happens, lb is told, and what lb says is done.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lb::metrics::Metrics;
use lb::policy::time::Instant;
use lb::upstream::Table;

use super::chance;
use super::flight::{Fate, Flight};
use super::happenings::build;
use super::ledger::Ledger;
use super::seen::Seen;
use super::story::{Signal, Story};
use crate::sim::queue::Queue;

/// A run in progress.
pub struct Fleet<'a> {
    pub(super) story: &'a Story,
    pub(super) metrics: Metrics,
    pub(super) table: Arc<Table>,
    /// How far the story is.
    pub(super) now: Duration,
    /// The instant that lb is told in this step.
    pub(super) instant: Instant,
    pub(super) draws: fastrand::Rng,
    pub(super) queue: Queue<Event>,
    pub(super) flights: BTreeMap<u64, Flight>,
    pub(super) rung: Arc<Mutex<Vec<u64>>>,
    pub(super) ledger: Ledger,
    pub(super) fates: Vec<Fate>,
    pub(super) seen: Seen,
    pub(super) steps: u64,
    /// The latest events, while they are kept.
    log: Option<VecDeque<String>>,
}

/// An invariant that did not hold.
#[derive(Clone, Debug)]
pub struct Broken {
    /// Which, and what was found.
    pub what: String,
    /// The events that led there, the latest last.
    pub events: Vec<String>,
}

/// Something that is due.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Arrive(usize),
    Leave(u64),
    /// The wait of a request's turn of that number is over.
    Wake(u64, u64),
    /// The queue was too slow.
    GiveUp(u64, u64),
    /// A request that was woken looks for its slot.
    Fetch(u64, u64),
    /// The first data of the request's attempt of that number.
    FirstData(u64, u64),
    /// That attempt comes to its decisive event.
    Ends(u64, u64, lb::policy::outcome::Ended),
    /// A second attempt may begin.
    Hedge(u64, u64, lb::upstream::Hedging),
    /// The first event after a commit.
    LateFirst(u64, u64),
    /// The answer is over.
    Over(u64, u64),
    Reload(usize),
    Signal(u16, Signal),
}

/// The clock's zero is long before the story's.
pub(super) const ZERO: Instant = Instant::from_nanos(3_600_000_000_000);
/// Events that are told of a run that failed.
const TOLD: usize = 60;

impl std::fmt::Debug for Fleet<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl<'a> Fleet<'a> {
    /// Plays `story` to its end.
    ///
    /// A run that fails is played once more, with its events written down.
    pub fn run(story: &'a Story) -> Result<(Vec<Fate>, Seen), Broken> {
        let quiet = Self::new(story, None).play();
        match quiet {
            Ok(told) => Ok(told),
            Err(_) => Self::new(story, Some(VecDeque::new())).play(),
        }
    }

    fn new(story: &'a Story, log: Option<VecDeque<String>>) -> Self {
        let metrics = Metrics::new(&[Duration::from_secs(10)]);
        let mut draws = chance::of(story.seed, 1);
        let table = Arc::new(build(&story.forms[0].1, &metrics, ZERO, None, &mut draws));
        let mut queue = Queue::new();
        for (place, asked) in story.requests.iter().enumerate() {
            queue.push(asked.at, Event::Arrive(place));
        }
        for (place, (at, _)) in story.forms.iter().enumerate().skip(1) {
            queue.push(*at, Event::Reload(place));
        }
        for (at, port, signal) in &story.signals {
            queue.push(*at, Event::Signal(*port, *signal));
        }
        Self {
            story,
            ledger: Ledger::new(story, &table),
            metrics,
            table,
            now: Duration::ZERO,
            instant: ZERO,
            draws,
            queue,
            flights: BTreeMap::new(),
            rung: Arc::default(),
            fates: Vec::new(),
            seen: Seen::default(),
            steps: 0,
            log,
        }
    }

    fn play(mut self) -> Result<(Vec<Fate>, Seen), Broken> {
        let end = match self.events() {
            Ok(()) => self.check_end(),
            Err(what) => Err(what),
        };
        match end {
            Ok(()) => Ok((self.fates, self.seen)),
            Err(what) => Err(Broken {
                what: format!("{what} ({:.3} s into the story)", self.now.as_secs_f64()),
                events: self.log.unwrap_or_default().into(),
            }),
        }
    }

    pub(super) fn events(&mut self) -> Result<(), String> {
        while let Some((due, event)) = self.queue.pop(Duration::MAX) {
            self.move_to(due);
            self.happen(event)?;
            self.ring();
            if self.story.checked {
                self.check_step()?;
            }
        }
        Ok(())
    }

    fn move_to(&mut self, due: Duration) {
        self.now = self.now.max(self.story.awake(due));
        // Whoever reads the clock may be held up before it is used, while others go ahead.
        let held_up = match self.story.skew.as_micros() {
            0 => Duration::ZERO,
            most => Duration::from_micros(self.draws.u64(..u64::try_from(most).unwrap_or(u64::MAX))),
        };
        self.instant = ZERO + self.now.saturating_sub(held_up);
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Arrive(place) => self.arrive(place),
            Event::Leave(request) => {
                self.leave(request);
                Ok(())
            }
            Event::Wake(request, turn) => match self.take(request, turn) {
                Some(flight) => self.advance(request, flight),
                None => Ok(()),
            },
            Event::GiveUp(request, turn) => self.give_up(request, turn),
            Event::Fetch(request, turn) => match self.take(request, turn) {
                Some(flight) => self.fetch(request, flight),
                None => Ok(()),
            },
            Event::FirstData(request, number) => {
                self.first_data(request, number);
                Ok(())
            }
            Event::Ends(request, number, ended) => self.ends(request, number, ended),
            Event::Hedge(request, turn, hedging) => self.hedge(request, turn, hedging),
            Event::LateFirst(request, turn) => {
                self.late_first(request, turn);
                Ok(())
            }
            Event::Over(request, turn) => self.answer_over(request, turn),
            Event::Reload(place) => {
                self.reload(place);
                Ok(())
            }
            Event::Signal(port, signal) => {
                self.signal(port, signal);
                Ok(())
            }
        }
    }

    /// The request, if it is still in the turn of that number.
    pub(super) fn take(&mut self, request: u64, turn: u64) -> Option<Flight> {
        let here = self
            .flights
            .get(&request)
            .is_some_and(|flight| flight.turn == turn);
        here.then(|| self.flights.remove(&request)).flatten()
    }

    /// Writes an event down.
    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            if log.len() == TOLD {
                log.pop_front();
            }
            log.push_back(format!("{:>10.3} {}", self.now.as_secs_f64(), what()));
        }
    }
}
