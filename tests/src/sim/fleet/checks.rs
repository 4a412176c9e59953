//! What is checked where lb decides something.

use lb::policy::health::Standing;
use lb::upstream::Attempt;

use super::engine::Fleet;
use super::flight::Flight;
use super::order::{Before, Class, is_in, most_visits};

impl Fleet<'_> {
    /// How everything stands, where that is to be compared with what comes next.
    pub(super) fn before(&mut self, flight: &Flight) -> Option<Before> {
        self.story.checked.then(|| {
            let state = flight.table.state(self.instant);
            self.observe_breakers(&state);
            Before::new(&flight.chain, state, self.instant)
        })
    }

    /// A request is tried at a target.
    pub(super) fn check_choice(
        &mut self,
        flight: &mut Flight,
        attempt: &Attempt,
        before: Option<&Before>,
    ) -> Result<(), String> {
        self.seen.attempts += 1;
        let Some(before) = before else { return Ok(()) };
        if flight.way.committed {
            return Err("a committed request is tried again".to_owned());
        }
        self.check_in_time(
            flight.deadline,
            "an attempt is begun after the cascade's deadline",
        )?;
        let granted = std::mem::take(&mut flight.way.granted);
        let better = before.better(&flight.chain, attempt, &flight.way, &self.ledger);
        if let Some(better) = better.filter(|_| !granted) {
            return Err(better);
        }
        let chosen = before.chosen(&flight.chain, attempt);
        self.seen.fail_open += u64::from(chosen == Class::Out);
        self.seen.cooling += u64::from(chosen == Class::Cooling);
        if chosen == Class::Out && !attempt.link().provider.config.fail_open {
            return Err("an endpoint that is out is tried where fail-open is off".to_owned());
        }
        self.check_visit(flight, attempt, before)?;
        check_slots(attempt, before)?;
        self.check_probes(attempt, before)?;
        flight.way.model = Some(attempt.link().model.config.name.clone());
        flight.way.visit_deadline = attempt.visit_deadline();
        Ok(())
    }

    /// Where the attempt stands in the order of the request, and whether it was paid for.
    fn check_visit(&mut self, flight: &mut Flight, attempt: &Attempt, before: &Before) -> Result<(), String> {
        let (place, provider) = (attempt.place(), &attempt.claim().provider().name);
        let way = &mut flight.way;
        let charged = way.charged.take();
        if charged.is_some() && way.at == Some(place) {
            self.seen.retries += 1;
            way.tries += 1;
            let most = attempt.link().provider.config.retries.max_attempts;
            if way.tries > most {
                return Err(format!("{provider} is tried {} times, {most} allowed", way.tries));
            }
            return Ok(());
        }
        if let Some(charge) = charged {
            self.seen.refunds += 1;
            self.ledger.refund(charge);
        }
        if !way.visited.insert(place) {
            return Err(format!("target {place} is visited twice in one pass"));
        }
        (way.visits, way.tries, way.at) = (way.visits + 1, 1, Some(place));
        if way.visits > most_visits(&flight.chain) {
            return Err(format!("{} visits to targets", way.visits));
        }
        if way.passes == 0 {
            self.ledger.original(provider, self.instant);
            return Ok(());
        }
        self.seen.second_passes += 1;
        if let Some(state) = before.provider(provider) {
            self.check_budget(state)?;
        }
        self.ledger.charge(provider, self.instant);
        Ok(())
    }

    /// Whether there was room for one more half-open probe, where the attempt is one.
    fn check_probes(&mut self, attempt: &Attempt, before: &Before) -> Result<(), String> {
        let (claim, number) = (attempt.claim(), self.ledger.next_number());
        let provider = claim.provider();
        let params = self
            .current(&provider.name)
            .and_then(|provider| provider.config.health.clone());
        if let (Standing::HalfOpen, Some(params)) = (before.standing(attempt), params) {
            let (slots, term) = (params.settings().half_open_probes, params.settings().ejection);
            let probes = self
                .ledger
                .endpoint_probes
                .entry(claim.endpoint.url.port())
                .or_default();
            if probes.are_all_taken(self.instant, slots) {
                return Err(format!(
                    "more than {slots} half-open probes of {}",
                    claim.endpoint.name
                ));
            }
            probes.begin(self.instant, slots, term, number);
            self.seen.probes += 1;
        }
        let breaker = before
            .provider(&provider.name)
            .and_then(|state| state.breaker.as_ref());
        let params = self
            .current(&provider.name)
            .and_then(|provider| provider.config.breaker.clone());
        if let (Some("half_open"), Some(params)) = (breaker.map(|breaker| breaker.state), params) {
            let (slots, term) = (params.settings().half_open_probes, params.settings().open);
            let probes = self
                .ledger
                .breaker_probes
                .entry(provider.name.clone())
                .or_default();
            if probes.are_all_taken(self.instant, slots) {
                return Err(format!("more than {slots} half-open probes of {}", provider.name));
            }
            probes.begin(self.instant, slots, term, number);
            self.seen.breaker_probes += 1;
        }
        if breaker.is_some_and(|breaker| breaker.state == "open") {
            return Err(format!("{} is tried while its breaker is open", provider.name));
        }
        Ok(())
    }

    /// A second attempt is begun beside the one under way.
    pub(super) fn check_hedge(
        &mut self,
        flight: &mut Flight,
        (first, hedge): (u16, &Attempt),
        before: Option<&Before>,
    ) -> Result<(), String> {
        self.seen.attempts += 1;
        self.seen.hedges += 1;
        let Some(before) = before else { return Ok(()) };
        let claim = hedge.claim();
        if claim.endpoint.url.port() == first || !is_in(before.standing(hedge)) {
            return Err(format!("a hedge is sent to {}", claim.endpoint.name));
        }
        flight.way.tries += 1;
        let most = hedge.link().provider.config.retries.max_attempts;
        if flight.way.tries > most || flight.way.at != Some(hedge.place()) {
            return Err(format!("a hedge is try {} of {most}", flight.way.tries));
        }
        let provider = &claim.provider().name;
        if let Some(state) = before.provider(provider) {
            self.check_budget(state)?;
        }
        self.ledger.charge(provider, self.instant);
        check_slots(hedge, before)?;
        self.check_probes(hedge, before)
    }
}

/// Whether the attempt found a slot free.
fn check_slots(attempt: &Attempt, before: &Before) -> Result<(), String> {
    let provider = attempt.claim().provider();
    let Some(state) = before
        .provider(&provider.name)
        .filter(|state| state.rate_limit.is_none())
    else {
        return Ok(());
    };
    // A reload may have left more in flight than there are slots now.
    let most = state.concurrency.map(|limit| limit.max(state.in_flight));
    match most {
        Some(most) if provider.in_flight() > most => Err(format!(
            "{} in flight at {}, {most} allowed",
            provider.in_flight(),
            provider.name
        )),
        _ => Ok(()),
    }
}
