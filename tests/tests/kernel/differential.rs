//! The same segments through the loaded programs and through the same Rust on the host: what differs is a bug of the
//! compiler's way to the kernel, of a map, or of the glue around the flow machine.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fastrand::Rng;
use lb_ebpf::flow::{self, Effects, Evidence, Flow};
use lb_ebpf::packet::{self, Parsed, Quoted, Segment, flags};
use lb_ebpf::view::Packet;
use lb_ebpf::{Counter, Event, Hook, Kind, Stats, Tuple};

use crate::frames::Pair;
use crate::harness::{self, Tests};
use crate::programs::{self, CONFIG, IN, OUT, Programs, SLOT};

const STEPS: u32 = 200_000;

pub(crate) fn tests(tests: &mut Tests) {
    tests.programs(the_programs_and_the_host_agree_about_two_hundred_thousand_segments);
    tests.programs(sockets_of_others_do_not_spoil_the_comparison);
}

const PAIRS: [Pair; 4] = [
    Pair {
        v6: false,
        port: 40_000,
    },
    Pair {
        v6: false,
        port: 40_001,
    },
    Pair {
        v6: true,
        port: 40_000,
    },
    Pair {
        v6: true,
        port: 40_001,
    },
];

/// What the programs should come to, by the host's reckoning.
struct Model {
    flows: [Flow; PAIRS.len()],
    stats: Stats,
    effects: Effects,
}

impl Model {
    fn new() -> Self {
        Self {
            flows: [Flow::UNSEEN; PAIRS.len()],
            stats: Stats::ZERO,
            effects: Effects::default(),
        }
    }

    fn report(&mut self, on: Tuple, flow: &Flow, evidence: Option<Evidence>, now: u64) -> Option<Event> {
        let Evidence { kind, count, since } = evidence?;
        self.stats.add(Counter::Events, 1);
        Some(Event {
            time: now,
            cookie: flow.cookie,
            tuple: on,
            slot: SLOT,
            kind: kind as u8,
            hook: Hook::Tc as u8,
            arg: count,
            age_us: u32::try_from(now.saturating_sub(since) / 1000).expect("minutes at most"),
        })
    }

    fn sent(&mut self, which: usize, segment: &Segment, now: u64) -> Option<Event> {
        let mut flow = self.flows[which];
        let effects = flow::egress(&mut flow, segment, &CONFIG, now);
        self.effects = self.effects.and(effects);
        self.flows[which] = flow;
        self.stats.sent(effects, segment.payload);
        self.report(
            segment.sent(),
            &flow,
            flow::sent_evidence(&flow, effects, &CONFIG),
            now,
        )
    }

    fn received(&mut self, which: usize, segment: &Segment, now: u64) -> Option<Event> {
        let mut flow = self.flows[which];
        let effects = flow::ingress(&mut flow, segment, now);
        self.effects = self.effects.and(effects);
        self.flows[which] = flow;
        self.stats.received(effects, segment.payload, &flow, now);
        self.report(
            segment.received(),
            &flow,
            flow::heard_evidence(&flow, effects),
            now,
        )
    }

    /// The time of the report is the kernel's own: nothing else of it is kept.
    fn unreachable(&mut self, which: usize, quoted: &Quoted, event: Option<&Event>) -> Option<Event> {
        let flow = self.flows[which];
        if !flow::believable(&flow, quoted) {
            self.stats.add(Counter::UnreachableIgnored, 1);
            return None;
        }
        self.stats.add(Counter::Unreachable, 1);
        let (count, since) = (quoted.code.into(), flow.sent.last);
        let evidence = Evidence {
            kind: Kind::Unreachable,
            count,
            since,
        };
        self.report(quoted.tuple, &flow, Some(evidence), event?.time)
    }
}

fn opens(parsed: &Parsed, out: bool) -> bool {
    let syn_ack = flags::SYN | flags::ACK;
    matches!(parsed, Parsed::Tcp(segment) if out && segment.flags & syn_ack == flags::SYN)
}

fn connection(parsed: &Parsed, out: bool) -> Option<Tuple> {
    match parsed {
        Parsed::Tcp(segment) if out => Some(segment.sent()),
        Parsed::Tcp(segment) => Some(segment.received()),
        Parsed::Unreachable(quoted) if !out => Some(quoted.tuple),
        Parsed::Unreachable(_) | Parsed::Other => None,
    }
}

/// Plays that many random segments and compares after each one what is known of its connection and what is reported.
/// How many could be compared, and how many reports there were.
fn agree(programs: &mut Programs, model: &mut Model, steps: u32) -> (u32, usize) {
    let mut random = Rng::with_seed(0x00c0_ffee);
    let (mut compared, mut reported) = (0, 0);
    for number in 0..steps {
        let aim = random.usize(..PAIRS.len());
        let out = random.bool();
        let frame = PAIRS[aim].frame(&mut random, &model.flows[aim], out);
        let parsed = packet::ethernet(&Packet::new(&frame));
        // A damaged frame may have become one of another connection, or of none.
        let on = connection(&parsed, out);
        let which = on.and_then(|on| PAIRS.iter().position(|pair| pair.tuple() == on));
        let cookie = match on.filter(|_| which.is_some() && opens(&parsed, out)) {
            Some(on) => programs.open(&frame, &on),
            None => programs.run(if out { OUT } else { IN }, &frame, 1).map(|_| 0),
        };
        let Some(cookie) = cookie else { continue };
        let events = programs.events();
        let (Some(on), Some(which)) = (on, which) else {
            assert_eq!(events, [], "step {number}: about nobody");
            continue;
        };
        let Some(real) = programs.flow(&on) else {
            let unseen = model.flows[which] == Flow::UNSEEN;
            assert!(unseen, "step {number}: the programs do not know {on:?}");
            continue;
        };
        let known = &mut model.flows[which];
        if opens(&parsed, out) {
            (known.cookie, known.slot) = (cookie, SLOT.into());
        }
        (known.sent.owner, known.heard.owner) = (real.sent.owner, real.heard.owner);
        let event = match parsed {
            Parsed::Tcp(segment) if out => model.sent(which, &segment, real.sent.last),
            // A RST that is not believed leaves no time behind, and needs none.
            Parsed::Tcp(segment) => model.received(which, &segment, real.heard.last),
            Parsed::Unreachable(quoted) => model.unreachable(which, &quoted, events.first()),
            Parsed::Other => None,
        };
        assert_eq!(model.flows[which], real, "step {number}: {parsed:?}");
        assert_eq!(events, event.as_slice(), "step {number}: {parsed:?}");
        compared += 1;
        reported += events.len();
    }
    assert!(compared > steps / 10 * 8);
    let Stats { heard, counters } = programs.stats();
    assert_eq!(heard, model.stats.heard);
    for (name, (real, ours)) in Counter::NAMES
        .into_iter()
        .zip(counters.into_iter().zip(model.stats.counters))
    {
        assert_eq!(real, ours, "{name}");
    }
    (compared, reported)
}

// [KERNEL-21]
fn the_programs_and_the_host_agree_about_two_hundred_thousand_segments(object: &'static [u8]) {
    let (mut programs, mut model) = (Programs::load(object), Model::new());
    let (compared, reported) = agree(&mut programs, &mut model, STEPS);
    harness::measured(&format!(
        "{compared} of {STEPS} steps compared, {reported} events, {} runs taken back",
        programs.taken_back
    ));
    assert_eq!(model.effects.0, (1 << 12) - 1, "every effect was met");
    for (name, count) in Counter::NAMES.into_iter().zip(model.stats.counters) {
        let rare = ["events_suppressed", "events_lost"].contains(&name);
        assert!(count > 0 || rare, "{name} was never counted");
    }
}

/// Ends a thread when the test is over, however it ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Somebody makes sockets on the same CPU all the time, and so takes the cookies that ours would have had.
fn sockets_of_others_do_not_spoil_the_comparison(object: &'static [u8]) {
    programs::stay_on_one_cpu();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = Over(&over);
        // A thread may run where the one may that makes it.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                programs::next_cookie();
            }
        });
        let mut taken_back = 0;
        while taken_back == 0 {
            let mut programs = Programs::load(object);
            agree(&mut programs, &mut Model::new(), STEPS / 10);
            taken_back = programs.taken_back;
        }
        harness::measured(&format!("{taken_back} runs taken back, sockets of others beside"));
    });
}
