//! What is checked where lb decides something.

use lb::policy::cascade::Stop;
use lb::policy::health::Standing;
use lb::policy::outcome::Ended;
use lb::policy::time::Instant;
use lb::upstream::{Attempt, ProviderState, Settled};

use super::engine::{Fleet, ZERO};
use super::flight::Flight;
use super::order::{Before, Class, most_visits};

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

    /// A request is to wait.
    pub(super) fn check_wait(&mut self, flight: &mut Flight, until: Instant) -> Result<(), String> {
        let way = &mut flight.way;
        // The first wait after a charge is the retry's; one after that means that its provider was not to be had.
        if way.pauses
            && let Some(charge) = way.charged.take()
        {
            self.seen.refunds += 1;
            self.ledger.refund(charge);
        }
        way.pauses = way.charged.is_some();
        if way.charged.is_none() {
            way.passes += 1;
            way.visited.clear();
        }
        if !self.story.checked {
            return Ok(());
        }
        let visit = way.visit_deadline.filter(|_| way.charged.is_some());
        let deadline = flight.deadline.into_iter().chain(visit).min();
        if deadline.is_some_and(|deadline| until >= deadline) {
            return Err("a request waits past its deadline".to_owned());
        }
        let caps = flight
            .chain
            .links
            .iter()
            .map(|link| link.provider.config.retries.cap);
        let longest = caps.max().max(flight.way.wish);
        let wait = until.since(self.instant);
        if longest.is_some_and(|longest| wait > longest) {
            return Err(format!("a request waits for {wait:?}, {longest:?} at most"));
        }
        Ok(())
    }

    /// A request gets no other attempt.
    pub(super) fn check_stop(
        &mut self,
        flight: &Flight,
        stop: Stop,
        before: Option<&Before>,
    ) -> Result<(), String> {
        self.seen.refused += u64::from(flight.way.attempts == 0);
        let Some(before) = before.filter(|_| stop != Stop::Exhausted && !flight.way.granted) else {
            return Ok(());
        };
        let mut places = 0..flight.chain.links.len();
        let possible =
            places.find(|place| before.class(&flight.chain, *place, &flight.way, &self.ledger) <= Class::Out);
        possible.map_or(Ok(()), |place| {
            let name = &flight.chain.links[place].provider.name;
            Err(format!(
                "a request is refused ({stop:?}) while {name} could be attempted {:?}",
                before.provider(name)
            ))
        })
    }

    /// What the retry budget of the attempt's provider is before it is settled.
    pub(super) fn before_settling(&self, flight: &Flight, attempt: &Attempt) -> Option<ProviderState> {
        let state = self.story.checked.then(|| flight.table.state(self.instant))?;
        let name = &attempt.claim().provider().name;
        state
            .providers
            .into_iter()
            .find(|provider| provider.name == **name)
    }

    /// An attempt was settled.
    pub(super) fn check_settled(
        &mut self,
        flight: &mut Flight,
        (ended, settled): (&Ended, &Settled),
        before: Option<ProviderState>,
    ) -> Result<(), String> {
        self.seen.deadlines += u64::from(matches!(ended, Ended::TotalDeadline | Ended::VisitDeadline));
        let committed = matches!(ended, Ended::Committed { .. });
        if committed != matches!(settled, Settled::Committed(_)) {
            return Err(format!("{ended:?} came to {settled:?}"));
        }
        let Some(before) = before else { return Ok(()) };
        self.check_in_time(flight.deadline, "an attempt outlives the cascade's deadline")?;
        self.check_in_time(
            flight.way.visit_deadline,
            "an attempt outlives its visit's deadline",
        )?;
        let state = flight.table.state(self.instant);
        self.observe_breakers(&state);
        let after = state
            .providers
            .iter()
            .find(|provider| provider.name == before.name);
        if after.is_some_and(|after| after.retries.window_retries > before.retries.window_retries) {
            if !matches!(settled, Settled::Onward) {
                return Err(format!("a retry is paid for that will not be made: {ended:?}"));
            }
            self.check_budget(&before)?;
            flight.way.pauses = false;
            flight.way.charged = Some(self.ledger.charge(&before.name, self.instant));
        }
        Ok(())
    }

    /// Whether the deadline has just passed, if it has.
    fn check_in_time(&self, deadline: Option<Instant>, what: &str) -> Result<(), String> {
        let late = deadline.is_some_and(|deadline| {
            let looked_at = self.story.awake(deadline.since(ZERO));
            self.now > looked_at + self.story.skew
        });
        if late { Err(what.to_owned()) } else { Ok(()) }
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
