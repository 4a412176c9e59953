//! The loop itself: policy on one side, the plant on the other, and the clock between them.

use std::sync::Arc;
use std::time::Duration;

use lb::policy::aimd::{Change, Outcome, Params, Start};
use lb::policy::cascade::{self, Cascade, Plan, Pool, Standing, Step};
use lb::policy::draw::Draw;
use lb::policy::health::{self, Ejection, Health, Verdict};
use lb::policy::outcome::{Ended, Next, Rules, StatusSet, judge};
use lb::policy::select::Candidate;
use lb::policy::time::Instant;

use super::queue::Queue;
use super::run::{Attempt, Event, Flight};
use super::steering::Steering;
use super::trace::{Mishap, Request};
use super::{Record, Scenario};

/// Everything that a run consists of.
pub(super) struct World<'a> {
    scenario: &'a Scenario,
    params: Params,
    pools: Arc<[Pool]>,
    on_status: StatusSet,
    realtime_on_status: StatusSet,
    steering: Steering,
    health: Health,
    now: Duration,
    /// Requests that have come.
    step: u32,
    queue: Queue<Event>,
    /// Requests that the plant is answering.
    in_flight: u32,
    /// Attempts on the preferred target that are undecided.
    undecided: u32,
    record: Record,
    /// The integral of the share over time since warm-up, in share-seconds.
    area: f64,
}

// === impl World ===

impl<'a> World<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        let params = Params::default();
        let origin = Draw::new(fastrand::Rng::with_seed(scenario.seed ^ 0xD2A3).f64());
        Self {
            scenario,
            steering: Steering::new(scenario.strategy, &params, origin),
            params,
            pools: [Pool {
                targets: 2,
                strategy: cascade::Strategy::Priority,
            }]
            .into(),
            on_status: [429, 499, 500, 502, 503, 504].into_iter().collect(),
            realtime_on_status: [529].into_iter().collect(),
            health: Health::new(health::Params::default()),
            now: Duration::ZERO,
            step: 0,
            queue: Queue::new(),
            in_flight: 0,
            undecided: 0,
            record: Record::default(),
            area: 0.0,
        }
    }

    /// The instant that policy is told.
    fn instant(&self) -> Instant {
        Instant::from_nanos(1) + self.now
    }

    fn is_measured(&self) -> bool {
        self.now >= self.scenario.warm_up
    }

    fn schedule(&mut self, after: Duration, event: Event) {
        self.queue.push(self.now + after, event);
    }

    /// Lets everything happen that is due up to `until`.
    pub(super) fn pass(&mut self, until: Duration) {
        while let Some((at, event)) = self.queue.pop(until) {
            self.move_to(at);
            match event {
                Event::Done(permit) => {
                    self.in_flight -= 1;
                    self.health.clean_end(permit);
                }
                Event::Ends(flight, ended) => {
                    // Only a committed answer keeps its place until it is over.
                    if !matches!(ended, Ended::Committed { .. } | Ended::Connect) {
                        self.in_flight -= 1;
                    }
                    self.conclude(flight, ended);
                }
            }
        }
        if until < Duration::MAX {
            self.move_to(until);
        }
    }

    /// Advances the clock, and with it the integral and the series of the share.
    fn move_to(&mut self, at: Duration) {
        let share = self.steering.share(self.instant());
        if self.is_measured() {
            self.area += share * at.saturating_sub(self.now).as_secs_f64();
        }
        while self.next_point() <= at {
            let point = self.next_point();
            self.record.series.push((point, share, self.in_flight));
        }
        self.now = at;
    }

    fn next_point(&self) -> Duration {
        let points = u32::try_from(self.record.series.len()).expect("a run of some hours");
        Duration::from_secs(15) * points
    }

    /// A request comes.
    pub(super) fn arrive(&mut self, request: Request) {
        self.step += 1;
        self.record.requests[0] += u32::from(self.is_measured());
        let (start, change) = self.steering.begin(self.instant());
        self.note(change);
        let plan = Plan {
            pools: Arc::clone(&self.pools),
            max_attempts: u32::MAX,
            divert: start == Start::Alternate,
        };
        self.advance(Box::new(Flight {
            request,
            cascade: Cascade::new(plan),
            attempt: None,
        }));
    }

    fn note(&mut self, change: Option<Change>) {
        self.record
            .changes
            .extend(change.map(|change| (self.now, change)));
    }

    fn standings(&self) -> [Standing; 2] {
        let ready = Standing::Ready(Candidate {
            in_flight: 0,
            weight: 1,
        });
        let preferred = match self.health.standing(self.instant()) {
            health::Standing::Healthy | health::Standing::HalfOpen => ready,
            health::Standing::Ejected { .. } | health::Standing::Probing | health::Standing::Unproven => {
                Standing::Out
            }
        };
        [preferred, ready]
    }

    /// Takes a request to its next attempt.
    fn advance(&mut self, mut flight: Box<Flight>) {
        match flight.cascade.next(&self.standings(), Draw::default()) {
            Step::Try { target: 0, last, .. } => self.try_preferred(flight, last),
            Step::Try { .. } => {
                let fails = flight.request.mishap == Some(Mishap::AlternateFails);
                let first_data = Some(flight.request.alternate);
                let ended = if fails {
                    Ended::Status { code: 500 }
                } else {
                    Ended::Committed { first_data }
                };
                self.conclude(flight, ended);
            }
            // Nothing here is tried twice, so nothing is waited for.
            Step::Stop(_) | Step::Wait { .. } => self.record.failed += 1,
        }
    }

    fn try_preferred(&mut self, mut flight: Box<Flight>, last: bool) {
        let now = self.instant();
        let permit = self
            .health
            .acquire(now)
            .unwrap_or_else(|| self.health.fail_open());
        let request = flight.request;
        let capacity = self.scenario.capacity.at(self.now);
        let answer = self
            .scenario
            .plant
            .answer(self.in_flight, capacity, request.deviation);
        flight.attempt = Some(Attempt {
            token: self.steering.attempt(),
            permit,
            started: self.now,
            decode: answer.map_or(Duration::ZERO, |answer| request.decode.mul_f64(answer.pace)),
        });
        self.undecided += 1;
        if request.mishap == Some(Mishap::Refused) {
            return self.schedule(Duration::from_millis(1), Event::Ends(flight, Ended::Connect));
        }
        self.in_flight += 1;
        let (after, ended) = match answer.map(|answer| answer.first_token) {
            None => (Duration::from_millis(5), Ended::Status { code: 503 }),
            Some(after) if after > DEADLINE && !last => {
                (DEADLINE, Ended::FirstTokenTimeout { after: DEADLINE })
            }
            Some(after) => (
                after,
                Ended::Committed {
                    first_data: Some(after),
                },
            ),
        };
        let leaves = (request.arrives + PATIENCE).saturating_sub(self.now);
        if request.mishap == Some(Mishap::ClientLeaves) && leaves < after {
            return self.schedule(leaves, Event::Ends(flight, Ended::ClientGone));
        }
        self.schedule(after, Event::Ends(flight, ended));
    }

    /// Judges how an attempt ended and does what follows.
    fn conclude(&mut self, mut flight: Box<Flight>, ended: Ended) {
        let attempt = flight.attempt.take();
        let rules = Rules {
            on_status: &self.on_status,
            realtime_on_status: Some(&self.realtime_on_status),
            retry_on_status: &StatusSet::NONE,
            retry: false,
            elsewhere: false,
            rival: false,
            asks_for_long: false,
            last: !flight.cascade.has_next(&self.standings()),
            replayable: true,
            repeatable: true,
            steered: attempt.map(|_| &self.params),
            another_endpoint_in: false,
            server_error_before: false,
            server_error_here_before: false,
            count_backpressure: false,
        };
        let judgement = judge(&ended, &rules);
        if let Some(attempt) = attempt {
            let outcome = judgement.share.expect("every ending here is decisive");
            self.settle(&flight, attempt, judgement.health, outcome);
        }
        match (judgement.next, ended) {
            (Next::Commit, Ended::Committed { first_data }) => self.commit(&flight, attempt, first_data),
            (Next::Failover, _) => self.advance(flight),
            (_, Ended::ClientGone) => {}
            _ => self.record.failed += 1,
        }
    }

    /// Tells health and steering what became of an attempt on the preferred target.
    fn settle(&mut self, flight: &Flight, attempt: Attempt, verdict: Verdict, outcome: Outcome) {
        let now = self.instant();
        let refused = flight.request.mishap == Some(Mishap::Refused);
        assert!(
            verdict != Verdict::Failure || refused,
            "{}: a breach counted against the endpoint",
            self.place()
        );
        let ejection = Ejection {
            allowed: true,
            jitter: Draw::default(),
        };
        let _transition = self.health.release(now, attempt.permit, verdict, ejection);
        self.undecided -= 1;
        let change = self.steering.on_outcome(now, attempt.token, outcome);
        self.note(change);
        if attempt.started >= self.scenario.warm_up {
            let place = match outcome {
                Outcome::Healthy => 0,
                Outcome::Breach => 1,
                Outcome::Unknown => 2,
            };
            self.record.outcomes[place] += 1;
        }
    }

    /// The client has its first token; what is left of the answer keeps the preferred provider's place.
    fn commit(&mut self, flight: &Flight, attempt: Option<Attempt>, first_data: Option<Duration>) {
        let request = flight.request;
        // At an alternate the whole first-token time still lies ahead, at the preferred target it has passed.
        let ahead = if attempt.is_some() {
            Duration::ZERO
        } else {
            first_data.unwrap_or_default()
        };
        if request.arrives >= self.scenario.warm_up {
            self.record
                .first_tokens
                .push(self.now.saturating_sub(request.arrives) + ahead);
            self.record.requests[1] += u32::from(attempt.is_none());
        }
        if let Some(attempt) = attempt {
            self.schedule(attempt.decode, Event::Done(attempt.permit));
        }
    }

    /// Where the run stands, for a failure to be found again.
    fn place(&self) -> String {
        format!("LB_SIM_SEED={} at step {}", self.scenario.seed, self.step)
    }

    pub(super) fn check_invariants(&self) {
        let (undecided, due) = (self.undecided as usize, self.queue.len());
        assert!(
            undecided <= due,
            "{}: {undecided} undecided attempts, {due} endings ahead",
            self.place()
        );
        if let Steering::Share(controller) = &self.steering {
            let snapshot = controller.snapshot(self.instant());
            let (share, floor) = (snapshot.share, self.params.settings().share_floor);
            assert!(
                share >= floor && share <= 1.0,
                "{}: the share is {share}",
                self.place()
            );
            assert_eq!(
                snapshot.in_flight,
                u64::from(self.undecided),
                "{}: an attempt was lost",
                self.place()
            );
        }
    }

    pub(super) fn finish(mut self) -> Record {
        assert_eq!(
            (self.in_flight, self.undecided),
            (0, 0),
            "all that was taken came back"
        );
        self.check_invariants();
        self.record.end = self.now;
        self.record.mean_share = self.area / (self.now.saturating_sub(self.scenario.warm_up)).as_secs_f64();
        self.record.first_tokens.sort_unstable();
        self.record
    }
}

/// The first-token deadline.
const DEADLINE: Duration = Duration::from_secs(20);
/// How long a client that leaves has waited.
const PATIENCE: Duration = Duration::from_secs(3);
