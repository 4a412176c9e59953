//! Whether lb's books and the ledger's agree, after each step.

use lb::policy::health::Standing;
use lb::upstream::{PoolState, Provider, ProviderState, State};

use super::engine::Fleet;
use super::flight::{Flight, Phase};

/// Only every so many steps is what costs more to look at compared.
const SELDOM: u64 = 8;

impl Fleet<'_> {
    /// The provider of that name as it is now.
    pub(super) fn current(&self, name: &str) -> Option<&Provider> {
        let mut all = self.table.providers().iter();
        all.find(|provider| *provider.name == *name).map(AsRef::as_ref)
    }

    /// Forgets the probes of breakers that are not half-open.
    pub(super) fn observe_breakers(&mut self, state: &State) {
        for provider in &state.providers {
            let half_open = provider
                .breaker
                .as_ref()
                .is_some_and(|breaker| breaker.state == "half_open");
            if let Some(probes) = self
                .ledger
                .breaker_probes
                .get_mut(&*provider.name)
                .filter(|_| !half_open)
            {
                probes.reset();
            }
        }
    }

    pub(super) fn check_step(&mut self) -> Result<(), String> {
        let mut in_flight = 0;
        let mut pending = 0;
        for provider in self.table.providers() {
            let (own, theirs) = (self.ledger.open_at(&provider.name), provider.in_flight());
            if own > theirs {
                return Err(format!(
                    "{theirs} in flight at {}, {own} attempts are open",
                    provider.name
                ));
            }
            in_flight += u64::from(theirs);
            pending += provider.pending();
            for endpoint in &provider.endpoints {
                let port = endpoint.url.port();
                let own = self.ledger.open_at_endpoint(&provider.name, port);
                if own != endpoint.in_flight() {
                    let theirs = endpoint.in_flight();
                    return Err(format!(
                        "{theirs} in flight at {}, {own} attempts are open",
                        endpoint.name
                    ));
                }
                let probes = self.ledger.endpoint_probes.entry(port).or_default();
                match endpoint.standing(self.instant) {
                    Standing::HalfOpen => {}
                    Standing::Probing if probes.any() => {}
                    Standing::Probing => {
                        return Err(format!("{} waits for a probe that nobody makes", endpoint.name));
                    }
                    _ => probes.reset(),
                }
            }
        }
        let (begun, ended) = (self.ledger.begun, self.ledger.ended);
        let waiting = self.flights.values().filter(|flight| is_queued(flight));
        // Who has been woken has a slot that is still to be fetched.
        let (granted, queued): (Vec<_>, Vec<_>) = waiting.partition(|flight| flight.way.rung);
        let (granted, queued) = (granted.len() as u64, queued.len());
        if begun + granted != ended + in_flight {
            return Err(format!(
                "{begun} attempts begun, {ended} ended, {in_flight} in flight, {granted} of them slots that wait"
            ));
        }
        if queued != pending as usize {
            return Err(format!("{queued} requests are queued, lb says {pending}"));
        }
        self.steps += 1;
        if self.steps.is_multiple_of(SELDOM) {
            self.check_state(&self.table.state(self.instant))?;
        }
        Ok(())
    }

    fn check_state(&self, state: &State) -> Result<(), String> {
        for model in &state.models {
            for pool in &model.pools {
                self.check_pool(&model.name, pool)?;
            }
        }
        for provider in &state.providers {
            self.check_account(provider)?;
        }
        Ok(())
    }

    fn check_pool(&self, model: &str, pool: &PoolState) -> Result<(), String> {
        if pool.share.is_some_and(|share| !(0.05..=1.0).contains(&share)) {
            return Err(format!("the share of {model} is {:?}", pool.share));
        }
        // A reload may leave attempts to a controller that is not shown any more.
        let Some(theirs) = pool.in_flight.filter(|_| self.story.forms.len() == 1) else {
            return Ok(());
        };
        let awaited = self.flights.values().filter(|flight| match &flight.phase {
            Phase::Trying(all) => all.iter().any(|trying| {
                let counted = flight.way.steered && trying.attempt.place() == 0 && !trying.is_hedge;
                counted && trying.first_data.is_none() && *trying.attempt.link().pool.model == *model
            }),
            Phase::Answering(answering) => {
                answering.tail.is_awaited() && *answering.tail.link().pool.model == *model
            }
            _ => false,
        });
        let own = awaited.count() as u64;
        if own != theirs {
            return Err(format!(
                "the share of {model} awaits {theirs} outcomes, {own} are open"
            ));
        }
        Ok(())
    }

    /// Whether what was counted of requests and retries is what happened.
    fn check_account(&self, state: &ProviderState) -> Result<(), String> {
        let Some(account) = self.ledger.accounts.get(&*state.name) else {
            return Ok(());
        };
        let Some(provider) = self.current(&state.name) else {
            return Ok(());
        };
        let window = provider.config.retries.budget.settings().window;
        // It ends with the tenth in progress. A reading that was held up may be counted in the tenth after its own.
        let (least, most) = (
            account.within(
                self.instant,
                (window * 9 / 10).saturating_sub(self.story.skew * 2),
            ),
            account.within(self.instant, window + self.story.skew * 2),
        );
        let (requests, retries) = (state.retries.window_requests, state.retries.window_retries);
        if !(least.0..=most.0).contains(&requests) || !(least.1..=most.1).contains(&retries) {
            let name = &state.name;
            return Err(format!(
                "{name} counts {requests} requests and {retries} retries, of {least:?} to {most:?} there were"
            ));
        }
        Ok(())
    }

    /// Whether a provider that stood like that could pay for one more retry.
    pub(super) fn check_budget(&self, before: &ProviderState) -> Result<(), String> {
        self.check_account(before)?;
        let Some(provider) = self.current(&before.name) else {
            return Ok(());
        };
        let budget = provider.config.retries.budget.settings();
        let (requests, retries) = (before.retries.window_requests, before.retries.window_retries);
        let within = (retries + 1) * 100 <= budget.percent * requests;
        if within || retries < budget.min_per_window {
            return Ok(());
        }
        let name = &before.name;
        Err(format!(
            "{name} is tried again beyond its budget: {retries} retries for {requests} requests"
        ))
    }
}

fn is_queued(flight: &Flight) -> bool {
    matches!(flight.phase, Phase::Queued(_))
}
