//! What an attempt does: how it is sent, what becomes of it, and of the one that may run beside it.

use std::time::Duration;

use lb::policy::draw::Draw;
use lb::policy::outcome::Ended;
use lb::upstream::{Attempt, Hedging, Settled};

use super::chance;
use super::engine::{Event, Fleet, ZERO};
use super::flight::{After, Answering, Flight, Held, Phase, Trying};
use super::play::{Clock, course};
use super::server::End;

impl Fleet<'_> {
    /// Sends an attempt to its server; `held` where that is the same attempt once more, on a fresh connection.
    pub(super) fn begin(
        &mut self,
        request: u64,
        mut flight: Flight,
        mut attempt: Attempt,
        held: Option<Held>,
    ) {
        let claim = attempt.claim();
        let (provider, port) = (claim.provider().name.clone(), claim.endpoint.url.port());
        let in_flight = self.ledger.in_flight(port);
        let again = held.is_some();
        let held = held.unwrap_or_else(|| self.ledger.take(&provider, port));
        self.note(|| format!("{request} tries {provider} at {port}"));
        if !again {
            flight.way.count(&provider);
        }
        if let Some(hedging) = attempt.hedging().filter(|_| !flight.way.hedged) {
            self.queue.push(
                hedging.at.since(ZERO),
                Event::Hedge(request, flight.turn, hedging),
            );
        }
        let server = &self.story.servers[&port];
        let subject = request << 16 | u64::from(port);
        let mut random = chance::of(self.story.seed ^ u64::from(flight.way.attempts) << 48, subject);
        let answer = server.answer(self.now, &flight.asked, in_flight, &mut random);
        let clock = Clock {
            story: self.story,
            now: self.now,
            zero: ZERO,
            total: flight.deadline,
        };
        let mut course = course(&attempt, answer, &clock);
        if again
            && matches!(
                course.ends,
                Some((_, Ended::StaleConnection | Ended::Refused { again: true }))
            )
        {
            // A connection that was made for this request can be neither.
            course.ends = course.ends.map(|(at, _)| (at, Ended::Unanswered));
        }
        attempt.asked_for(course.wish);
        flight.way.wish = course.wish;
        if let Some(at) = course.first_data {
            self.queue.push(at, Event::FirstData(request, held.number));
        }
        if let Some((at, ended)) = course.ends {
            self.queue.push(at, Event::Ends(request, held.number, ended));
        }
        let trying = Trying {
            attempt,
            held,
            first_data: None,
            after: course.after,
            is_hedge: flight.way.hedged,
        };
        match &mut flight.phase {
            Phase::Trying(all) => all.push(trying),
            phase => *phase = Phase::Trying(vec![trying]),
        }
        self.flights.insert(request, flight);
    }

    /// The attempt under way has taken long: a second one may begin beside it.
    pub(super) fn hedge(&mut self, request: u64, turn: u64, hedging: Hedging) -> Result<(), String> {
        let Some(mut flight) = self.take(request, turn) else {
            return Ok(());
        };
        let first = match &flight.phase {
            Phase::Trying(all) if !flight.way.hedged => all.first().map(|trying| trying.held.port),
            _ => None,
        };
        let before = self.before(&flight);
        let draw = Draw::new(self.draws.f64());
        let hedge = first.and_then(|first| Some((first, flight.run.hedge(self.instant, hedging, draw)?)));
        flight.way.hedged = true;
        match hedge {
            None => {
                self.flights.insert(request, flight);
            }
            Some((first, hedge)) => {
                self.check_hedge(&mut flight, (first, &hedge), before.as_ref())?;
                self.begin(request, flight, hedge, None);
            }
        }
        Ok(())
    }

    /// The request, with its attempt of that number taken out of it.
    fn attempt(&mut self, request: u64, number: u64) -> Option<(Flight, Trying)> {
        let flight = self.flights.get_mut(&request)?;
        let Phase::Trying(all) = &mut flight.phase else {
            return None;
        };
        let place = all.iter().position(|trying| trying.held.number == number)?;
        let trying = all.remove(place);
        Some((self.flights.remove(&request)?, trying))
    }

    pub(super) fn first_data(&mut self, request: u64, number: u64) {
        let Some(flight) = self.flights.get_mut(&request) else {
            return;
        };
        if let Phase::Trying(all) = &mut flight.phase
            && let Some(trying) = all.iter_mut().find(|trying| trying.held.number == number)
        {
            trying.first_data = Some(trying.attempt.first_data(self.instant));
        }
    }

    /// The attempt has come to its decisive event.
    pub(super) fn ends(&mut self, request: u64, number: u64, ended: Ended) -> Result<(), String> {
        let Some((mut flight, trying)) = self.attempt(request, number) else {
            return Ok(());
        };
        let Trying {
            attempt,
            held,
            first_data,
            after,
            ..
        } = trying;
        let ended = match ended {
            Ended::Committed { .. } => Ended::Committed { first_data },
            Ended::FirstTokenTimeout { .. } => Ended::FirstTokenTimeout {
                after: self.instant.since(attempt.started()),
            },
            ended => ended,
        };
        self.note(|| format!("{request}: {ended:?}"));
        let before = self.before_settling(&flight, &attempt);
        let jitter = Draw::new(self.draws.f64());
        let settled = attempt.settle(&mut flight.run, self.instant, &ended, jitter);
        self.check_settled(&mut flight, (&ended, &settled), before)?;
        if !matches!(settled, Settled::Again(_) | Settled::Yielded) {
            self.outrun(&mut flight)?;
        }
        self.settled(request, flight, (settled, held), (first_data, after))
    }

    /// Cuts the attempt that ran beside the one that decided, if there is one.
    fn outrun(&mut self, flight: &mut Flight) -> Result<(), String> {
        let Phase::Trying(all) = std::mem::replace(&mut flight.phase, Phase::New) else {
            return Ok(());
        };
        for Trying { attempt, held, .. } in all {
            self.seen.outrun += 1;
            let jitter = Draw::new(self.draws.f64());
            let settled = attempt.settle(&mut flight.run, self.instant, &Ended::Outrun, jitter);
            if !matches!(settled, Settled::Fail) {
                return Err(format!("an attempt that was outrun came to {settled:?}"));
            }
            self.ledger.give_back(&held);
        }
        Ok(())
    }

    /// Does what follows from what the attempt that held `held` came to.
    fn settled(
        &mut self,
        request: u64,
        mut flight: Flight,
        (settled, held): (Settled, Held),
        (first_data, after): (Option<Duration>, Option<After>),
    ) -> Result<(), String> {
        match settled {
            Settled::Again(same) => {
                self.seen.agains += 1;
                self.ledger.agains += 1;
                self.begin(request, flight, same, Some(held));
            }
            Settled::Committed(tail) => {
                flight.way.committed = true;
                self.ledger.decided(&held);
                flight.way.answered_by = Some(held.provider.clone());
                flight.way.first_token = first_data.map(|_| self.now.saturating_sub(flight.asked.at));
                let over = after.map_or(self.now, |after| after.over);
                if let Some(first) = after.and_then(|after| after.first) {
                    self.queue.push(first, Event::LateFirst(request, flight.turn));
                }
                let end = after.map(|after| after.rest.end);
                self.answer(request, flight, Answering { tail, held, end }, over);
            }
            Settled::PassOn(tail) => {
                flight.way.committed = true;
                self.ledger.decided(&held);
                let over = self.now + Duration::from_millis(1);
                self.answer(
                    request,
                    flight,
                    Answering {
                        tail,
                        held,
                        end: None,
                    },
                    over,
                );
            }
            Settled::Onward => {
                self.ledger.give_back(&held);
                return self.advance(request, flight);
            }
            Settled::Fail => {
                self.ledger.give_back(&held);
                self.over(flight, false);
            }
            Settled::Yielded => {
                self.ledger.give_back(&held);
                if !matches!(&flight.phase, Phase::Trying(all) if all.len() == 1) {
                    return Err("an attempt yields to one that there is not".to_owned());
                }
                self.flights.insert(request, flight);
            }
        }
        Ok(())
    }

    fn answer(&mut self, request: u64, mut flight: Flight, answering: Answering, over: Duration) {
        self.queue.push(over, Event::Over(request, flight.turn));
        flight.phase = Phase::Answering(Box::new(answering));
        self.flights.insert(request, flight);
    }

    pub(super) fn late_first(&mut self, request: u64, turn: u64) {
        let Some(mut flight) = self.take(request, turn) else {
            return;
        };
        if let Phase::Answering(answering) = &mut flight.phase {
            answering.tail.first_data(self.instant);
            flight.way.first_token = Some(self.now.saturating_sub(flight.asked.at));
        }
        self.flights.insert(request, flight);
    }

    pub(super) fn answer_over(&mut self, request: u64, turn: u64) -> Result<(), String> {
        let Some(mut flight) = self.take(request, turn) else {
            return Ok(());
        };
        let Phase::Answering(answering) = std::mem::replace(&mut flight.phase, Phase::New) else {
            return Err("an end met no answer".to_owned());
        };
        let Answering { mut tail, held, end } = *answering;
        let jitter = Draw::new(self.draws.f64());
        match end {
            Some(End::Breaks) => tail.failed(self.instant, &Ended::Broken, jitter),
            Some(End::Error(code)) => tail.failed(self.instant, &Ended::LateError { code }, jitter),
            Some(End::Clean) | None => tail.clean_end(),
        }
        self.note(|| format!("{request} is answered: {end:?}"));
        self.seen.late_failures += u64::from(matches!(end, Some(End::Breaks | End::Error(_))));
        self.ledger.close(&held);
        self.over(flight, false);
        Ok(())
    }
}
