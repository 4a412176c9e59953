//! The loop: what is due happens, lb is told, and what lb says is done.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lb::config;
use lb::metrics::Metrics;
use lb::policy::draw::Draw;
use lb::policy::time::Instant;
use lb::upstream::{Context, Run, Table, sites};

use super::chance;
use super::flight::{Fate, Flight, Phase, Way};
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
    FirstData(u64, u64),
    /// The attempt comes to its decisive event.
    Ends(u64, u64, lb::policy::outcome::Ended),
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
            self.ring()?;
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
            Event::GiveUp(request, turn) => {
                if let Some(flight) = self.take(request, turn) {
                    self.note(|| format!("{request} is not queued any longer"));
                    self.over(flight, false);
                }
                Ok(())
            }
            Event::FirstData(request, turn) => {
                self.first_data(request, turn);
                Ok(())
            }
            Event::Ends(request, turn, ended) => self.ends(request, turn, ended),
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

    fn arrive(&mut self, place: usize) -> Result<(), String> {
        let asked = self.story.requests[place].clone();
        let request = place as u64;
        let chain = self
            .table
            .find(asked.model)
            .ok_or("the story names an unknown model")?;
        let chain = Arc::clone(chain);
        let deadline = chain.total_deadline.map(|limit| self.instant + limit);
        let steered = self
            .ledger
            .is_steered(&self.table, &chain, asked.sent, self.instant);
        let run = Run::begin(Arc::clone(&chain), asked.sent, self.instant);
        if let Some(leaves) = asked.leaves {
            self.queue.push(asked.at + leaves, Event::Leave(request));
        }
        self.note(|| format!("{request} comes, for {}", asked.model));
        let flight = Flight {
            asked,
            table: Arc::clone(&self.table),
            chain,
            run,
            phase: Phase::New,
            turn: 0,
            deadline,
            way: Way {
                steered,
                ..Way::default()
            },
        };
        self.advance(request, flight)
    }

    fn leave(&mut self, request: u64) {
        let Some(flight) = self.flights.remove(&request) else {
            return;
        };
        self.note(|| format!("{request} leaves"));
        self.seen.left += 1;
        self.ledger.dropped(&flight.phase);
        self.over(flight, true);
    }

    /// The request, if it is still in the turn of that number.
    pub(super) fn take(&mut self, request: u64, turn: u64) -> Option<Flight> {
        let here = self
            .flights
            .get(&request)
            .is_some_and(|flight| flight.turn == turn);
        here.then(|| self.flights.remove(&request)).flatten()
    }

    fn reload(&mut self, place: usize) {
        self.note(|| format!("form {place} comes into force"));
        let text = &self.story.forms[place].1;
        let next = build(
            text,
            &self.metrics,
            self.instant,
            Some(&self.table),
            &mut self.draws,
        );
        self.ledger.reloaded(&self.table, &next);
        self.table = Arc::new(next);
    }

    fn signal(&mut self, port: u16, signal: Signal) {
        let endpoint = |port: u16| {
            let mut all = self
                .table
                .providers()
                .iter()
                .flat_map(|provider| &provider.endpoints);
            all.find(|endpoint| endpoint.url.port() == port)
                .map(|endpoint| endpoint.id)
        };
        let Some(id) = endpoint(port) else { return };
        self.note(|| format!("{signal:?} at {port}"));
        let (now, jitter) = (self.instant, Draw::new(self.draws.f64()));
        match signal {
            Signal::Gone(cause) => {
                self.table.eject(id, now, cause, Duration::from_secs(1));
            }
            Signal::Back => self.table.connected(id, now),
            Signal::Withdrawn => self.table.withdraw(id, now),
            Signal::Probed(probed) => self.table.probed(id, now, probed, jitter),
        }
    }

    /// Looks at the requests that lb has woken.
    fn ring(&mut self) -> Result<(), String> {
        loop {
            let rung = std::mem::take(&mut *self.rung.lock().unwrap_or_else(PoisonError::into_inner));
            if rung.is_empty() {
                return Ok(());
            }
            for request in rung {
                self.woken(request)?;
            }
        }
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

fn build(
    text: &str,
    metrics: &Metrics,
    now: Instant,
    before: Option<&Table>,
    draws: &mut fastrand::Rng,
) -> Table {
    let config = match config::parse(text, "fleet.yaml", &|_| None) {
        Ok(checked) => checked.config,
        Err(config::Failure::Invalid(report)) => panic!("{:#?}\n{text}", report.diagnostics()),
        Err(failure) => panic!("{failure}"),
    };
    let keys = vec![None; config.providers.len()];
    let mut context = Context {
        metrics,
        keys: &keys,
        sites: &sites(&config, |_, _, _| Vec::new()),
        now,
        before,
        draw: &mut || Draw::new(draws.f64()),
    };
    Table::build(&config, &mut context)
}
