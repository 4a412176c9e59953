//! What has to be true when everybody has gone home.

use std::sync::Arc;
use std::time::Duration;

use lb::policy::draw::Draw;
use lb::policy::outcome::Ended;
use lb::upstream::{Run, Sent, Settled, Step};

use super::engine::{Fleet, ZERO};

impl Fleet<'_> {
    /// All that was taken has come back, and everything can be had again.
    pub(super) fn check_end(&mut self) -> Result<(), String> {
        if !self.flights.is_empty() {
            return Err(format!("{} requests never end", self.flights.len()));
        }
        self.check_step()?;
        let (begun, ended, undecided) = (self.ledger.begun, self.ledger.ended, self.ledger.undecided);
        if begun != ended || undecided != 0 {
            return Err(format!(
                "{begun} attempts begun, {ended} ended, {undecided} undecided"
            ));
        }
        self.check_series()?;
        if self.story.checked {
            self.recover()
        } else {
            Ok(())
        }
    }

    /// Every gauge of what is under way is back at zero, and each attempt was counted once.
    fn check_series(&self) -> Result<(), String> {
        let text = self.metrics.exposition();
        let series = text.lines().filter(|line| !line.starts_with('#'));
        let series = series.filter_map(|line| line.rsplit_once(' '));
        let mut attempts = 0.0;
        for (name, value) in series {
            let value: f64 = value.parse().unwrap_or(f64::NAN);
            let family = name.split('{').next().unwrap_or_default();
            if family == "lb_attempts_total" {
                attempts += value;
            }
            let is_gauge = ["inflight", "in_flight", "pending"]
                .iter()
                .any(|part| family.contains(part));
            if is_gauge && value != 0.0 {
                return Err(format!("{name} is {value} at the end"));
            }
        }
        #[expect(clippy::cast_precision_loss, reason = "some hundreds")]
        let own = (self.ledger.begun + self.ledger.agains) as f64;
        if (attempts - own).abs() > 0.5 {
            return Err(format!("{attempts} attempts are counted, there were {own}"));
        }
        Ok(())
    }

    /// With every provider well again, each of their endpoints comes back.
    fn recover(&mut self) -> Result<(), String> {
        let sent = Sent {
            streaming: false,
            exempt: true,
            replayable: true,
            repeatable: true,
            idempotent: false,
        };
        self.now += Duration::from_hours(2);
        for _ in 0..RECOVERY {
            self.now += Duration::from_secs(1);
            self.instant = ZERO + self.now;
            for provider in self.table.providers() {
                for endpoint in &provider.endpoints {
                    self.table.connected(endpoint.id, self.instant);
                }
                let Some(chain) = self.table.find(&provider.name) else {
                    continue;
                };
                let mut run = Run::begin(Arc::clone(chain), sent, self.instant);
                let draws = &mut self.draws;
                let Step::Try(attempt) = run.next(self.instant, &mut || Draw::new(draws.f64())) else {
                    continue;
                };
                let ended = Ended::Committed { first_data: None };
                if let Settled::Committed(tail) =
                    attempt.settle(&mut run, self.instant, &ended, Draw::default())
                {
                    tail.clean_end();
                }
            }
        }
        let state = self.table.state(self.instant);
        for (provider, state) in self.table.providers().iter().zip(&state.providers) {
            let endpoints = &provider.config.endpoints;
            if !provider.config.enabled || endpoints.iter().all(|endpoint| endpoint.weight == 0) {
                continue;
            }
            if let Some(breaker) = state.breaker.as_ref().filter(|breaker| breaker.state != "closed") {
                return Err(format!(
                    "the breaker of {} stays {}",
                    provider.name, breaker.state
                ));
            }
            let weights = provider.config.endpoints.iter().map(|endpoint| endpoint.weight);
            let mut out = state
                .endpoints
                .iter()
                .zip(weights)
                .filter(|(endpoint, weight)| *weight > 0 && endpoint.state != "healthy");
            if let Some((endpoint, _)) = out.next() {
                return Err(format!("{} stays {}", endpoint.name, endpoint.state));
            }
        }
        Ok(())
    }
}

/// Requests to each provider after which it has to be well.
const RECOVERY: u32 = 60;
