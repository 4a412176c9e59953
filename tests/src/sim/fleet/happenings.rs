//! What comes from outside: requests, clients that leave, reloads, and what is seen of endpoints.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use lb::config;
use lb::metrics::Metrics;
use lb::policy::draw::Draw;
use lb::policy::time::Instant;
use lb::upstream::{Context, Run, Table, sites};

use super::engine::{Event, Fleet};
use super::flight::{Flight, Phase, Way};
use super::story::Signal;

impl Fleet<'_> {
    pub(super) fn arrive(&mut self, place: usize) -> Result<(), String> {
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

    pub(super) fn leave(&mut self, request: u64) {
        let Some(flight) = self.flights.remove(&request) else {
            return;
        };
        self.note(|| format!("{request} leaves"));
        self.seen.left += 1;
        self.ledger.dropped(&flight.phase);
        self.over(flight, true);
    }

    pub(super) fn reload(&mut self, place: usize) {
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

    pub(super) fn signal(&mut self, port: u16, signal: Signal) {
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

    /// Notes which requests lb has woken. They look for their slots a little later: until then somebody may leave.
    pub(super) fn ring(&mut self) {
        let rung = std::mem::take(&mut *self.rung.lock().unwrap_or_else(PoisonError::into_inner));
        for request in rung {
            let later = Duration::from_micros(self.draws.u64(..3_000));
            let Some(flight) = self.flights.get_mut(&request) else {
                continue;
            };
            flight.way.rung = true;
            self.queue
                .push(self.now + later, Event::Fetch(request, flight.turn));
        }
    }

    /// The queue was too slow, unless the slot is there after all.
    pub(super) fn give_up(&mut self, request: u64, turn: u64) -> Result<(), String> {
        let Some(flight) = self.take(request, turn) else {
            return Ok(());
        };
        if flight.way.rung {
            return self.fetch(request, flight);
        }
        self.note(|| format!("{request} is not queued any longer"));
        self.over(flight, false);
        Ok(())
    }
}

/// Builds the table of a configuration.
pub(super) fn build(
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
