//! A simulated endpoint: how fast it is, and what ails it.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use lb::policy::outcome::Ended;

use super::chance;
use super::story::{Asked, EPOCH};
use crate::sim::Plant;

/// An endpoint's server.
#[derive(Clone, Debug)]
pub struct Server {
    /// How its first-token time grows with its load.
    pub plant: Plant,
    /// What ails it from when on, in order of time; before the first it is well.
    pub weather: Vec<(Duration, Weather)>,
    /// Whether it sends the head of a stream at once, before it has anything to say.
    pub early_head: bool,
}

/// What ails a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weather {
    /// Nothing but its load: this part of its capacity is there.
    Fine(f64),
    /// It fades: this part of its capacity is left, which falls to a twentieth within this many seconds.
    Fading(f64, f64),
    /// It takes turns of so many seconds between being well and refusing connections.
    Flapping(u64),
    /// Every attempt ends like this, after so many milliseconds.
    Ends(Ended, u64),
    /// This part of the attempts, drawn for each, ends like this.
    Some(f64, Ended),
    /// It takes requests and never says a word.
    Hung,
    /// It sends heads of streams and nothing after them.
    Mute,
    /// It answers 429 to more than so many requests at a time, and asks to be left alone for so many seconds.
    Limits(u32, u64),
    /// Its streams break off after their first token.
    Cuts,
    /// Its streams carry an error event after their first token, with this status.
    LateErrors(u16),
}

/// What a server does with one request.
#[derive(Debug)]
pub(super) struct Answer {
    /// When the head of a response comes, if one does.
    pub(super) head: Option<Duration>,
    pub(super) then: Then,
}

#[derive(Debug)]
pub(super) enum Then {
    /// This, at that time, without a response.
    Fails(Duration, Ended),
    /// Nothing more, ever.
    Nothing,
    /// An error status, perhaps with how long to leave the server alone.
    Status(u16, HeaderMap),
    /// The first event of a stream or the body of an answer, at that time, and the rest of it.
    Speaks(Duration, Rest),
    /// The first event, at that time, is an error or the end.
    Unfit(Duration, Ended),
}

/// What comes after the first event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// How long the first event stays alone, where it only announces the answer.
    pub(super) preamble: Duration,
    pub(super) takes: Duration,
    pub(super) end: End,
}

/// How a response ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Breaks,
    Clean,
    Error(u16),
}

impl Server {
    fn weather(&self, at: Duration) -> (Duration, Weather) {
        let now = self.weather.iter().rev().find(|(from, _)| *from <= at);
        now.copied().unwrap_or((Duration::ZERO, Weather::Fine(1.0)))
    }

    /// What it does with a request that comes at `at` and finds `in_flight` others; times are counted from then.
    pub(super) fn answer(
        &self,
        at: Duration,
        asked: &Asked,
        in_flight: u32,
        random: &mut fastrand::Rng,
    ) -> Answer {
        let (from, weather) = self.weather(at);
        let since = at.saturating_sub(from);
        let announces = random.bool();
        let well = |capacity: f64, end: End| self.speak(asked, in_flight, capacity, end, announces);
        match weather {
            Weather::Fine(capacity) => well(capacity, End::Clean),
            Weather::Fading(capacity, seconds) => {
                let left = 1.0 - (since.as_secs_f64() / seconds).min(0.95);
                well(capacity * left, End::Clean)
            }
            Weather::Flapping(turn) if flaps_well(since, turn) => well(1.0, End::Clean),
            Weather::Flapping(_) => ends(Ended::Connect, Duration::from_millis(1)),
            Weather::Ends(ended, after) => ends(ended, Duration::from_millis(after)),
            Weather::Some(part, ended) => {
                if random.f64() < part {
                    ends(ended, Duration::from_millis(random.u64(1..40)))
                } else {
                    well(1.0, End::Clean)
                }
            }
            Weather::Hung => Answer {
                head: None,
                then: Then::Nothing,
            },
            Weather::Mute => Answer {
                head: Some(Duration::from_millis(10)),
                then: Then::Nothing,
            },
            Weather::Limits(most, seconds) if in_flight >= most => limited(at, seconds, random),
            Weather::Limits(..) => well(1.0, End::Clean),
            Weather::Cuts => well(1.0, End::Breaks),
            Weather::LateErrors(code) => well(1.0, End::Error(code)),
        }
    }

    fn speak(&self, asked: &Asked, in_flight: u32, capacity: f64, end: End, announces: bool) -> Answer {
        let Some(answer) = self.plant.answer(in_flight, capacity, asked.deviation) else {
            return ends(Ended::Status { code: 503 }, Duration::from_millis(5));
        };
        let takes = asked.decode.mul_f64(answer.pace);
        let mut first = chance::seconds(answer.first_token.as_secs_f64());
        if !asked.sent.streaming {
            first += takes;
        }
        let early = self.early_head && asked.sent.streaming;
        let preamble = Duration::from_millis(if announces && self.early_head { 150 } else { 0 });
        Answer {
            head: Some(if early {
                Duration::from_millis(10).min(first)
            } else {
                first
            }),
            then: Then::Speaks(first, Rest { preamble, takes, end }),
        }
    }
}

fn flaps_well(since: Duration, turn: u64) -> bool {
    (since.as_secs() / turn).is_multiple_of(2)
}

fn ends(ended: Ended, after: Duration) -> Answer {
    match ended {
        Ended::Status { code } => Answer {
            head: Some(after),
            then: Then::Status(code, HeaderMap::new()),
        },
        Ended::Embedded { .. } | Ended::Empty => Answer {
            head: Some(after),
            then: Then::Unfit(after, ended),
        },
        _ => Answer {
            head: None,
            then: Then::Fails(after, ended),
        },
    }
}

/// 429, with the wish in one of the forms that are seen in the field; a date is by the server's own clock.
fn limited(at: Duration, seconds: u64, random: &mut fastrand::Rng) -> Answer {
    let date = std::time::UNIX_EPOCH + EPOCH + at + Duration::from_secs(seconds);
    let (name, value) = match random.u8(0..5) {
        0 => ("retry-after", seconds.to_string()),
        1 => ("retry-after", httpdate::fmt_http_date(date)),
        2 => ("retry-after-ms", (seconds * 1000).to_string()),
        3 => ("x-ratelimit-reset-requests", format!("{seconds}.5s")),
        _ => ("retry-after", "soon".to_owned()),
    };
    let mut headers = HeaderMap::new();
    headers.insert(name, HeaderValue::from_str(&value).expect("digits and letters"));
    Answer {
        head: Some(Duration::from_millis(3)),
        then: Then::Status(429, headers),
    }
}
