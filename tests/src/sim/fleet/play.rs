//! How one attempt goes: what its server does against the timers that run meanwhile.
//!
//! The timers are those of `proxy`: until the head of a response, the earliest of total deadline, first-token deadline
//! and read timeout; after it, for a stream that is withheld, the deadline or the peek's own patience. What has come by
//! the time a timer is looked at counts, also where the process stood still in between.

use std::time::Duration;

use lb::policy::outcome::Ended;
use lb::policy::time::Instant;
use lb::upstream::Attempt;

use super::flight::After;
use super::server::{Answer, End, Rest, Then};
use super::story::Story;

/// What will be seen of an attempt; times are counted from the start of the run.
#[derive(Debug)]
pub(super) struct Course {
    /// The first data frame, where it comes before the decisive event or is it.
    pub(super) first_data: Option<Duration>,
    /// The decisive event; `None` if none ever comes.
    pub(super) ends: Option<(Duration, Ended)>,
    /// What its response says of how long to leave the provider alone.
    pub(super) wish: Option<Duration>,
    pub(super) after: Option<After>,
}

/// What the attempt's timers are counted by.
pub(super) struct Clock<'a> {
    pub(super) story: &'a Story,
    pub(super) now: Duration,
    /// The instant that is zero in the story.
    pub(super) zero: Instant,
    pub(super) total: Option<Instant>,
}

impl Course {
    /// Nothing is seen before it ends.
    const fn ends(ends: Limit) -> Self {
        Self {
            first_data: None,
            ends,
            wish: None,
            after: None,
        }
    }
}

impl Clock<'_> {
    /// Whether what comes at `at` is there when the timer is looked at.
    fn is_in_time(&self, at: Duration, limit: Limit) -> bool {
        limit.is_none_or(|(limit, _)| at <= self.story.awake(limit))
    }

    /// That ending, or what the timer makes of it.
    fn first(&self, at: Duration, ended: Ended, limit: Limit) -> Limit {
        if self.is_in_time(at, limit) {
            Some((at, ended))
        } else {
            limit
        }
    }

    fn at(&self, instant: Instant) -> Duration {
        instant.since(self.zero)
    }
}

/// Works out the course of `attempt`, to which its server answers like that.
pub(super) fn course(attempt: &Attempt, answer: Answer, clock: &Clock<'_>) -> Course {
    let (before_head, after_head) = deadlines(attempt, clock);
    if let Then::Fails(after, ended) = answer.then {
        return Course::ends(clock.first(clock.now + after, ended, before_head));
    }
    let head = answer.head.map(|head| clock.now + head);
    let Some(head) = head.filter(|head| clock.is_in_time(*head, before_head)) else {
        return Course::ends(before_head);
    };
    let peeked = attempt.is_streaming() && attempt.link().model.is_strict();
    let limit = if peeked {
        after_head(head + attempt.link().model.config.peek.max_wait)
    } else {
        Some((head, COMMITTED))
    };
    match answer.then {
        Then::Fails(..) => Course::ends(None),
        Then::Status(code, headers) => Course {
            wish: lb::wire::retry_after::parse(&headers, clock.story.wall_clock(clock.now)),
            ..Course::ends(Some((head, Ended::Status { code })))
        },
        Then::Unfit(after, ended) => Course::ends(clock.first(clock.now + after, ended, limit)),
        Then::Nothing => Course {
            after: Some(silence(clock, limit)),
            ..Course::ends(limit)
        },
        Then::Speaks(first, rest) => speaks(
            attempt,
            (clock.now + first, rest),
            limit.filter(|_| peeked),
            head,
            clock,
        ),
    }
}

/// The course of an attempt whose server has something to say; without a `limit` the head is decisive.
fn speaks(
    attempt: &Attempt,
    (first, rest): (Duration, Rest),
    limit: Limit,
    head: Duration,
    clock: &Clock<'_>,
) -> Course {
    let after = |first: Option<Duration>, from: Duration| {
        Some(After {
            first,
            over: from + rest.takes,
            rest,
        })
    };
    if limit.is_none() {
        let awaited = attempt.is_streaming().then_some(first);
        return Course {
            after: after(awaited, first),
            ..Course::ends(Some((head, COMMITTED)))
        };
    }
    if !clock.is_in_time(first, limit) {
        return Course {
            after: after(Some(first), first),
            ..Course::ends(limit)
        };
    }
    let decisive = first + rest.preamble;
    Course {
        first_data: Some(first),
        ends: clock.first(decisive, COMMITTED, total(attempt, clock)),
        wish: None,
        after: after(None, decisive),
    }
}

/// A stream that is silent until it is given up, from its commit on.
fn silence(clock: &Clock<'_>, commit: Option<(Duration, Ended)>) -> After {
    let from = commit.map_or(clock.now, |(at, _)| at);
    After {
        first: None,
        over: from + SILENCE,
        rest: Rest {
            preamble: Duration::ZERO,
            takes: SILENCE,
            end: End::Breaks,
        },
    }
}

type Limit = Option<(Duration, Ended)>;

/// The deadline of the cascade, or of the visit to the provider where that comes first.
fn total(attempt: &Attempt, clock: &Clock<'_>) -> Limit {
    let visit = attempt
        .visit_deadline()
        .filter(|visit| clock.total.is_none_or(|total| *visit < total));
    match visit {
        Some(visit) => Some((clock.at(visit), Ended::VisitDeadline)),
        None => clock.total.map(|total| (clock.at(total), Ended::TotalDeadline)),
    }
}

/// The timer before the head, and the one after it, given when the peek runs out of patience.
fn deadlines(attempt: &Attempt, clock: &Clock<'_>) -> (Limit, impl Fn(Duration) -> Limit) {
    let total = total(attempt, clock);
    let first_token = attempt.first_token_deadline().map(|at| {
        // How long that was is known only when it is seen.
        (
            clock.at(at),
            Ended::FirstTokenTimeout {
                after: Duration::ZERO,
            },
        )
    });
    let read = attempt
        .read_deadline(None)
        .map(|at| (clock.at(at), Ended::ReadTimeout));
    // Of two that are due at once the first here counts.
    let earliest = |limits: [Limit; 3]| limits.into_iter().flatten().min_by_key(|(at, _)| *at);
    (earliest([total, first_token, read]), move |patience| {
        earliest([total, first_token.or(Some((patience, COMMITTED))), None])
    })
}

/// When the first data frame came is known where it is seen.
const COMMITTED: Ended = Ended::Committed { first_data: None };

/// `stream_idle_timeout_ms` of every configuration here.
const SILENCE: Duration = Duration::from_secs(20);
