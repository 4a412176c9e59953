//! What a request does: what lb tells it to, and what becomes of that.

use std::future::Future as _;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use lb::policy::draw::Draw;
use lb::upstream::Step;

use super::engine::{Event, Fleet, ZERO};
use super::flight::{Bell, Fate, Flight, Phase};

impl Fleet<'_> {
    /// Asks lb what a request is to do next, and has it do that.
    pub(super) fn advance(&mut self, request: u64, mut flight: Flight) -> Result<(), String> {
        flight.turn += 1;
        flight.way.hedged = false;
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
                self.fetch(request, flight)
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

    /// Looks whether a queued request has its slot.
    pub(super) fn fetch(&mut self, request: u64, mut flight: Flight) -> Result<(), String> {
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
                flight.way.rung = false;
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
