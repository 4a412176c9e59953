//! What befalls the preferred provider.

use std::time::Duration;

use lb::policy::outcome::Ended;
use lb::upstream::Sent;

use super::Way;
use crate::sim::Plant;
use crate::sim::fleet::chance::{self, exponential, normal};
use crate::sim::fleet::{Asked, Server, Story, Weather};

/// One kind of trouble. All last for twenty minutes, and are measured from its beginning on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trouble {
    /// From the fourth minute on the provider can serve about half of the requests in time.
    Saturation,
    /// From the fourth to the tenth minute it has a sixth of its capacity.
    BrownOut,
    /// From the fourth to the tenth minute it refuses connections.
    Outage,
    /// From the fourth to the sixteenth minute one of its four replicas takes requests and says nothing.
    HungReplica,
    /// What a brown-out of ten minutes leaves behind: measured from its end on.
    Recovery,
}

/// Requests a second.
const ARRIVALS: f64 = 4.0;
const REPLICAS: [u16; 4] = [7001, 7002, 7003, 7004];
const ALTERNATE: u16 = 8001;
/// What is there of the preferred provider when it is well, as a multiple of what the requests need.
const WELL: f64 = 1.8;

impl Trouble {
    /// All, in the order of the page.
    pub const ALL: [Self; 5] = [
        Self::Saturation,
        Self::BrownOut,
        Self::Outage,
        Self::HungReplica,
        Self::Recovery,
    ];

    /// What it is called on the page.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Saturation => "saturation",
            Self::BrownOut => "brown-out",
            Self::Outage => "hard outage",
            Self::HungReplica => "hung replica",
            Self::Recovery => "recovery",
        }
    }

    /// From when on it is measured.
    pub const fn from(self) -> Duration {
        match self {
            Self::Recovery => Duration::from_mins(10),
            _ => Duration::from_mins(4),
        }
    }

    /// How long requests come.
    pub const fn length() -> Duration {
        Duration::from_mins(20)
    }

    fn weather(self, replica: usize) -> Vec<(Duration, Weather)> {
        let minute = Duration::from_mins;
        let well = Weather::Fine(WELL);
        match self {
            Self::Saturation => vec![(minute(0), well), (minute(4), Weather::Fine(0.55))],
            Self::BrownOut => vec![
                (minute(0), well),
                (minute(4), Weather::Fine(WELL / 6.0)),
                (minute(10), well),
            ],
            Self::Outage => {
                let out = Weather::Ends(Ended::Connect, 1);
                vec![(minute(0), well), (minute(4), out), (minute(10), well)]
            }
            Self::HungReplica if replica == 0 => {
                vec![(minute(0), well), (minute(4), Weather::Hung), (minute(16), well)]
            }
            Self::HungReplica => vec![(minute(0), well)],
            Self::Recovery => vec![(minute(0), Weather::Fine(WELL / 6.0)), (minute(10), well)],
        }
    }

    /// The story of that seed: the same requests, with the same luck, whatever the way.
    pub(super) fn story(self, way: Way, seed: u64) -> Story {
        let plant = Plant::sustaining(ARRIVALS / 4.0);
        let replica = |(place, port): (usize, &u16)| {
            let server = Server {
                plant: plant.clone(),
                weather: self.weather(place),
                early_head: false,
            };
            (*port, server)
        };
        let alternate = Server {
            plant: Plant::new(0.8, 1e6, 6.0, 1e6),
            weather: Vec::new(),
            early_head: false,
        };
        let servers = REPLICAS
            .iter()
            .enumerate()
            .map(replica)
            .chain([(ALTERNATE, alternate)]);
        Story {
            seed,
            forms: vec![(Duration::ZERO, way.configuration(&REPLICAS, ALTERNATE))],
            requests: requests(seed),
            servers: servers.collect(),
            stalls: Vec::new(),
            jumps: Vec::new(),
            signals: Vec::new(),
            skew: Duration::ZERO,
            checked: false,
        }
    }
}

fn requests(seed: u64) -> Vec<Asked> {
    let mut random = chance::of(seed, 2);
    let mut at = Duration::ZERO;
    let mut requests = Vec::new();
    while at < Trouble::length() {
        requests.push(Asked {
            at,
            model: "chat",
            sent: Sent {
                streaming: true,
                exempt: false,
                replayable: true,
                repeatable: true,
                idempotent: false,
            },
            deviation: normal(&mut random),
            decode: chance::seconds(6.0 * (0.5 + 0.5 * exponential(&mut random))),
            leaves: Some(PATIENCE),
        });
        at += chance::seconds(exponential(&mut random) / ARRIVALS);
    }
    requests
}

/// A client that is not answered by then leaves. An answer takes its time on top, so the whole is given that too.
const PATIENCE: Duration = Duration::from_mins(2);
