//! What a segment costs in the programs; a measurement, not a test.

use fastrand::Rng;
use lb_ebpf::flow::Flow;
use lb_ebpf::packet::{self, Parsed, flags};
use lb_ebpf::view::Packet;

use crate::frames::Pair;
use crate::programs::{IN, OUT, Programs};
use crate::support;

#[test]
#[ignore = "a measurement"]
fn what_a_segment_costs() {
    const REPEAT: u32 = 1_000_000;
    let Some(granted) = support::object() else { return };
    let mut programs = Programs::load(granted.thing);
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
    let cost = programs.run(OUT, &unwatched, REPEAT);
    support::measured(&format!("sent, not watched: {cost:?}"));
    let syn = find(&Flow::UNSEEN, true, |flags, _| flags == flags::SYN);
    programs.follow_next_socket();
    programs.run(OUT, &syn, 1).expect("a whole frame");
    let flow = programs.flow(&pair.tuple()).expect("it is followed");
    let answer = find(&flow, false, |flags, _| flags == flags::SYN | flags::ACK);
    programs.run(IN, &answer, 1).expect("a whole frame");
    let flow = programs.flow(&pair.tuple()).expect("it is followed");
    for (name, program, out) in [("sent, watched", OUT, true), ("received, watched", IN, false)] {
        let frame = find(&flow, out, |flags, payload| flags == flags::ACK && payload == 0);
        let cost = programs.run(program, &frame, REPEAT);
        support::measured(&format!("{name}: {cost:?}"));
    }
}
