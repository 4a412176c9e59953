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

impl Clock<'_> {
    fn at(&self, instant: Instant) -> Duration {
        instant.since(self.zero)
    }
}

/// Works out the course of `attempt`, to which its server answers like that.
pub(super) fn course(attempt: &Attempt, answer: Answer, clock: &Clock<'_>) -> Course {
    let (before_head, after_head) = deadlines(attempt, clock);
    let head = answer.head.map(|head| clock.now + head);
    let in_time = |at: Duration, limit: Option<(Duration, Ended)>| {
        limit.is_none_or(|(limit, _)| at <= clock.story.awake(limit))
    };
    let cut = |limit: Option<(Duration, Ended)>| Course {
        first_data: None,
        ends: limit,
        wish: None,
        after: None,
    };
    if let Then::Fails(after, ended) = answer.then {
        let at = clock.now + after;
        return cut(if in_time(at, before_head) {
            Some((at, ended))
        } else {
            before_head
        });
    }
    let Some(head) = head.filter(|head| in_time(*head, before_head)) else {
        return cut(before_head);
    };
    let committed = |first: Option<Duration>| Ended::Committed { first_data: first };
    let peeked = attempt.is_streaming() && attempt.link().model.is_strict();
    let patience = head + attempt.link().model.config.peek.max_wait;
    let limit = after_head(patience);
    match answer.then {
        Then::Fails(..) => cut(None),
        Then::Status(code, headers) => Course {
            wish: lb::wire::retry_after::parse(&headers, clock.story.wall_clock(clock.now)),
            ..cut(Some((head, Ended::Status { code })))
        },
        Then::Unfit(after, ended) => {
            let at = clock.now + after;
            cut(if in_time(at, limit) {
                Some((at, ended))
            } else {
                limit
            })
        }
        Then::Nothing if peeked => Course {
            after: Some(silence(clock, limit)),
            ..cut(limit)
        },
        Then::Nothing => Course {
            after: Some(silence(clock, Some((head, committed(None))))),
            ..cut(Some((head, committed(None))))
        },
        Then::Speaks(first, rest) => {
            let first = clock.now + first;
            let after = |first: Option<Duration>, from: Duration| {
                Some(After {
                    first,
                    over: from + rest.takes,
                    rest,
                })
            };
            if !peeked {
                let awaited = attempt.is_streaming().then_some(first);
                return Course {
                    after: after(awaited, first),
                    ..cut(Some((head, committed(None))))
                };
            }
            if !in_time(first, limit) {
                return Course {
                    after: after(Some(first), first),
                    ..cut(limit)
                };
            }
            let decisive = first + rest.preamble;
            let end = match total(attempt, clock) {
                Some((total, ended)) if decisive > clock.story.awake(total) => (total, ended),
                _ => (decisive, committed(Some(first))),
            };
            Course {
                first_data: Some(first),
                ends: Some(end),
                wish: None,
                after: after(None, decisive),
            }
        }
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
        .read_deadline()
        .map(|at| (clock.at(at), Ended::ReadTimeout));
    // Of two that are due at once the first here counts.
    let earliest = |limits: [Limit; 3]| limits.into_iter().flatten().min_by_key(|(at, _)| *at);
    let committed = Ended::Committed { first_data: None };
    (earliest([total, first_token, read]), move |patience| {
        earliest([total, first_token.or(Some((patience, committed))), None])
    })
}

/// `stream_idle_timeout_ms` of every configuration here.
const SILENCE: Duration = Duration::from_secs(20);
