//! What a segment costs in the programs.

use std::time::Duration;

use fastrand::Rng;
use lb_ebpf::flow::Flow;
use lb_ebpf::packet::{self, Parsed, flags};
use lb_ebpf::view::Packet;

use crate::frames::Pair;
use crate::harness::{self, Tests};
use crate::programs::{IN, OUT, Programs};

/// Far above the 30 to 80 ns that were measured: a machine may be slow and busy, and a bound that is lost in a program
/// costs an order of magnitude.
const MOST: Duration = Duration::from_micros(2);

pub(crate) fn tests(tests: &mut Tests) {
    tests.programs(a_segment_costs_less_than_two_microseconds);
}

fn a_segment_costs_less_than_two_microseconds(object: &'static [u8]) {
    const REPEAT: u32 = 200_000;
    let mut programs = Programs::load(object);
    let mut random = Rng::with_seed(7);
    let pair = Pair {
        v6: false,
        port: 40_000,
    };
    let mut find = |flow: &Flow, out, wanted: fn(u8, u32) -> bool| loop {
        let frame = pair.frame(&mut random, flow, out);
        let Parsed::Tcp(segment) = packet::ethernet(&Packet::new(&frame)) else {
            continue;
        };
        if wanted(segment.flags, segment.payload) {
            return frame;
        }
    };
    let unwatched = find(&Flow::UNSEEN, true, |flags, payload| {
        flags == flags::ACK && payload == 0
    });
    let cheap = |name: &str, cost: Option<Duration>| {
        let cost = cost.expect("a whole frame");
        harness::measured(&format!("{name}: {cost:?}"));
        assert!(cost < MOST, "{name}: {cost:?}");
    };
    cheap("sent, not watched", programs.run(OUT, &unwatched, REPEAT));
    let syn = find(&Flow::UNSEEN, true, |flags, _| flags == flags::SYN);
    programs.open(&syn, &pair.tuple()).expect("a whole frame");
    let flow = programs.flow(&pair.tuple()).expect("it is followed");
    let answer = find(&flow, false, |flags, _| flags == flags::SYN | flags::ACK);
    programs.run(IN, &answer, 1).expect("a whole frame");
    let flow = programs.flow(&pair.tuple()).expect("it is followed");
    for (name, program, out) in [("sent, watched", OUT, true), ("received, watched", IN, false)] {
        let frame = find(&flow, out, |flags, payload| flags == flags::ACK && payload == 0);
        cheap(name, programs.run(program, &frame, REPEAT));
    }
}
