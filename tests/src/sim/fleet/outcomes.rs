//! What is checked where a request waits, ends, or an attempt is settled.

use lb::policy::cascade::Stop;
use lb::policy::outcome::Ended;
use lb::policy::time::Instant;
use lb::upstream::{Attempt, ProviderState, Settled};

use super::engine::{Fleet, ZERO};
use super::flight::Flight;
use super::order::{Before, Class};

impl Fleet<'_> {
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
        let (chain, way) = (&flight.chain, &flight.way);
        for (place, link) in chain.links.iter().enumerate() {
            let name = &link.provider.name;
            if before.class(chain, place, way, &self.ledger) <= Class::Out {
                return Err(format!(
                    "a request is refused ({stop:?}) while {name} could be attempted"
                ));
            }
            if stop == Stop::Full && before.may_queue(chain, place, way, &self.ledger) {
                return Err(format!(
                    "a request is refused ({stop:?}) while it could wait for {name}"
                ));
            }
        }
        Ok(())
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
    pub(super) fn check_in_time(&self, deadline: Option<Instant>, what: &str) -> Result<(), String> {
        let late = deadline.is_some_and(|deadline| {
            let looked_at = self.story.awake(deadline.since(ZERO));
            self.now > looked_at + self.story.skew
        });
        if late { Err(what.to_owned()) } else { Ok(()) }
    }
}
