//! What a request does: what lb tells it to, and what becomes of that.

use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lb::policy::draw::Draw;
use lb::policy::outcome::Ended;
use lb::upstream::{Attempt, Settled, Step};

use super::chance;
use super::engine::{Event, Fleet, ZERO};
use super::flight::{After, Answering, Bell, Fate, Flight, Held, Phase, Trying};
use super::play::{Clock, course};
use super::server::End;

impl Fleet<'_> {
    /// Asks lb what a request is to do next, and has it do that.
    pub(super) fn advance(&mut self, request: u64, mut flight: Flight) -> Result<(), String> {
        flight.turn += 1;
        let before = self.before(&flight);
        let draws = &mut self.draws;
        match flight.run.next(self.instant, &mut || Draw::new(draws.f64())) {
            Step::Try(attempt) => {
                self.check_choice(&mut flight, &attempt, before.as_ref())?;
                self.begin(request, flight, attempt, None);
                Ok(())
            }
            Step::Queue(waiting) => {
                let patience = self.instant + waiting.limit();
                let end = flight
                    .deadline
                    .map_or(patience, |deadline| deadline.min(patience));
                self.note(|| format!("{request} is queued"));
                self.queue
                    .push(end.since(ZERO), Event::GiveUp(request, flight.turn));
                flight.phase = Phase::Queued(waiting);
                self.flights.insert(request, flight);
                self.woken(request)
            }
            Step::Wait(until) => {
                self.check_wait(&mut flight, until)?;
                self.note(|| format!("{request} waits until {:.3}", until.since(ZERO).as_secs_f64()));
                self.queue
                    .push(until.since(ZERO), Event::Wake(request, flight.turn));
                flight.phase = Phase::Pausing;
                self.flights.insert(request, flight);
                Ok(())
            }
            Step::Stop(stop) => {
                self.note(|| format!("{request} is refused or has its last answer: {stop:?}"));
                self.check_stop(&flight, stop, before.as_ref())?;
                self.over(flight, false);
                Ok(())
            }
        }
    }

    /// Sends an attempt to its server; `held` where that is the same attempt once more, on a fresh connection.
    fn begin(&mut self, request: u64, mut flight: Flight, mut attempt: Attempt, held: Option<Held>) {
        let claim = attempt.claim();
        let (provider, port) = (claim.provider().name.clone(), claim.endpoint.url.port());
        let in_flight = self.ledger.in_flight(port);
        let again = held.is_some();
        let held = held.unwrap_or_else(|| self.ledger.take(&provider, port));
        self.note(|| format!("{request} tries {provider} at {port}"));
        if !again {
            flight.way.count(&provider);
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
            self.queue.push(at, Event::FirstData(request, flight.turn));
        }
        if let Some((at, ended)) = course.ends {
            self.queue.push(at, Event::Ends(request, flight.turn, ended));
        }
        flight.phase = Phase::Trying(Box::new(Trying {
            attempt,
            held,
            first_data: None,
            after: course.after,
        }));
        self.flights.insert(request, flight);
    }

    pub(super) fn first_data(&mut self, request: u64, turn: u64) {
        let Some(mut flight) = self.take(request, turn) else {
            return;
        };
        if let Phase::Trying(trying) = &mut flight.phase {
            trying.first_data = Some(trying.attempt.first_data(self.instant));
        }
        self.flights.insert(request, flight);
    }

    /// The attempt has come to its decisive event.
    pub(super) fn ends(&mut self, request: u64, turn: u64, ended: Ended) -> Result<(), String> {
        let Some(mut flight) = self.take(request, turn) else {
            return Ok(());
        };
        let Phase::Trying(trying) = std::mem::replace(&mut flight.phase, Phase::New) else {
            return Err("an ending met no attempt".to_owned());
        };
        let Trying {
            attempt,
            held,
            first_data,
            after,
        } = *trying;
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
        self.settled(request, flight, (settled, held), (first_data, after))
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
                flight.turn += 1;
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
            Settled::Yielded => return Err("an attempt yielded to one that there was not".to_owned()),
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

    /// Looks whether a queued request has its slot.
    pub(super) fn woken(&mut self, request: u64) -> Result<(), String> {
        let Some(mut flight) = self.flights.remove(&request) else {
            return Ok(());
        };
        let Phase::Queued(waiting) = &flight.phase else {
            self.flights.insert(request, flight);
            return Ok(());
        };
        let rung = Arc::clone(&self.rung);
        let waker = Waker::from(Arc::new(Bell { request, rung }));
        let granted = pin!(waiting.granted()).poll(&mut Context::from_waker(&waker));
        match granted {
            Poll::Pending => {
                self.flights.insert(request, flight);
                Ok(())
            }
            Poll::Ready(granted) => {
                self.note(|| format!("{request} has its slot"));
                self.seen.grants += 1;
                flight.phase = Phase::New;
                flight.run.granted(granted);
                flight.way.granted = true;
                self.advance(request, flight)
            }
        }
    }

    /// Writes down what became of a request.
    pub(super) fn over(&mut self, flight: Flight, left: bool) {
        if let Some(charge) = flight.way.charged {
            self.ledger.refund(charge);
        }
        let way = flight.way;
        self.fates.push(Fate {
            at: flight.asked.at,
            began_at: way.began_at,
            answered_by: way.answered_by,
            first_token: way.first_token,
            attempts: way.attempts,
            switches: way.switches,
            left: left && way.first_token.is_none(),
        });
    }
}
