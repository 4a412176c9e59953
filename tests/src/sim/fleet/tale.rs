//! A seed's story: a fleet of its own, and what befalls it.

use std::time::Duration;

use lb::policy::health::{KernelCause, Probed};
use lb::policy::outcome::Ended;
use lb::upstream::Sent;

use super::chance::{self, exponential, normal, pick};
use super::form::Form;
use super::server::{Server, Weather};
use super::story::{Asked, Signal, Story};
use crate::sim::Plant;

impl Story {
    /// The story of that number. Its times are shorter than those of a real fleet, so that a minute and a half holds
    /// ejections, open breakers, cooldowns and dwells by the dozen.
    pub fn numbered(seed: u64) -> Self {
        let mut random = chance::of(seed, 0);
        let mut form = Form::drawn(&mut random);
        let ports = form.ports();
        let servers = ports.iter().map(|port| (*port, server(&mut random))).collect();
        let mut forms = vec![(Duration::ZERO, form.text())];
        // Half of the fleets are never reloaded: more can be said of those.
        for _ in 0..(if random.bool() { random.u32(1..6) } else { 0 }) {
            form.change(&mut random);
            forms.push((moment(&mut random), form.text()));
        }
        forms[1..].sort_by_key(|(at, _)| *at);
        let stalls = (0..random.u32(0..4)).map(|_| {
            let span = pick(&mut random, &[50, 400, 3_000, 12_000]);
            (moment(&mut random), Duration::from_millis(span))
        });
        Self {
            seed,
            forms,
            stalls: stalls.collect(),
            jumps: jumps(&mut random),
            signals: signals(&mut random, &ports),
            requests: requests(&mut random, form.names()),
            servers,
            skew: Duration::from_micros(pick(&mut random, &[0, 0, 50, 2_000])),
            checked: true,
        }
    }
}

/// How long clients come.
const SPAN: Duration = Duration::from_secs(90);

fn moment(random: &mut fastrand::Rng) -> Duration {
    SPAN.mul_f64(random.f64())
}

fn server(random: &mut fastrand::Rng) -> Server {
    let mut weather: Vec<_> = (0..random.u32(0..5))
        .map(|_| (moment(random), drawn(random)))
        .collect();
    weather.sort_by_key(|(at, _)| *at);
    // What ails it now may be over before something else does.
    let fine = weather
        .iter()
        .map(|(at, _)| (*at + SPAN.mul_f64(random.f64() / 3.0), Weather::Fine(1.0)));
    let fine: Vec<_> = fine.collect();
    weather.extend(fine);
    weather.sort_by_key(|(at, _)| *at);
    let base = 0.05 + 0.4 * random.f64();
    Server {
        plant: Plant::new(base, 4.0 + 8.0 * random.f64(), 1.0 + random.f64(), 40.0),
        weather,
        early_head: random.bool(),
    }
}

fn drawn(random: &mut fastrand::Rng) -> Weather {
    let code = pick(random, &[400, 401, 404, 408, 429, 499, 500, 502, 503, 504, 529]);
    let ended = pick(
        random,
        &[
            Ended::BadResponse,
            Ended::Connect,
            Ended::ConnectTimeout,
            Ended::Dns,
            Ended::Embedded { code },
            Ended::Empty,
            Ended::Refused { again: true },
            Ended::Refused { again: false },
            Ended::Signalled,
            Ended::StaleConnection,
            Ended::Status { code },
            Ended::Tls,
            Ended::Unanswered,
        ],
    );
    match random.u8(0..10) {
        0 => Weather::Fine(0.1 + 0.4 * random.f64()),
        1 => Weather::Fading(1.0, random.f64() * 40.0 + 1.0),
        2 => Weather::Flapping(random.u64(1..8)),
        3 | 4 => Weather::Ends(ended, random.u64(1..400)),
        5 => Weather::Some(random.f64(), ended),
        6 => Weather::Hung,
        7 => pick(random, &[Weather::Mute, Weather::Cuts]),
        8 => Weather::Limits(random.u32(0..4), random.u64(0..12)),
        _ => pick(random, &[Weather::LateErrors(code), Weather::Cuts]),
    }
}

fn jumps(random: &mut fastrand::Rng) -> Vec<(Duration, i64)> {
    let mut jumps: Vec<_> = (0..random.u32(0..3))
        .map(|_| (moment(random), random.i64(-7_200..7_200)))
        .collect();
    jumps.sort_unstable();
    jumps
}

fn signals(random: &mut fastrand::Rng, ports: &[u16]) -> Vec<(Duration, u16, Signal)> {
    let causes = [
        KernelCause::Loss,
        KernelCause::Refused,
        KernelCause::Reset,
        KernelCause::Unreachable,
    ];
    let probed = [Probed::Bad, Probed::Good, Probed::Misconfigured, Probed::TimedOut];
    let mut signals = Vec::new();
    for _ in 0..random.u32(0..8) {
        let (at, port) = (moment(random), pick(random, ports));
        signals.push((at, port, Signal::Gone(pick(random, &causes))));
        let later = at + Duration::from_millis(random.u64(100..6_000));
        signals.push((
            later,
            port,
            pick(random, &[Signal::Back, Signal::Back, Signal::Withdrawn]),
        ));
    }
    for _ in 0..random.u32(0..60) {
        signals.push((
            moment(random),
            pick(random, ports),
            Signal::Probed(pick(random, &probed)),
        ));
    }
    signals.sort_by_key(|(at, ..)| *at);
    signals
}

fn requests(random: &mut fastrand::Rng, names: &[&'static str]) -> Vec<Asked> {
    let pace = 2.0 + 4.0 * random.f64();
    let mut at = Duration::ZERO;
    let mut requests = Vec::new();
    loop {
        at += chance::seconds(exponential(random) / pace);
        if at > SPAN {
            return requests;
        }
        requests.push(Asked {
            at,
            model: pick(random, names),
            sent: Sent {
                streaming: random.u8(0..4) > 0,
                exempt: random.u8(0..8) == 0,
                replayable: random.u8(0..16) > 0,
                repeatable: random.u8(0..16) > 0,
                idempotent: random.u8(0..8) == 0,
            },
            deviation: normal(random),
            decode: chance::seconds(2.0 * exponential(random)),
            leaves: (random.u8(0..8) == 0).then(|| chance::seconds(2.0 * exponential(random))),
        });
    }
}
