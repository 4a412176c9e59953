//! The same segments through the loaded programs and through the same Rust on the host: what differs is a bug of the
//! compiler's way to the kernel, of a map, or of the glue around the flow machine.

#![expect(unsafe_code, reason = "map keys and values are declared to be plain data")]

use std::net::UdpSocket;

use aya::maps::{Array, HashMap, MapData, RingBuf};
use aya::programs::{SchedClassifier, TestRun as _, TestRunOptions};
use aya::{Ebpf, Pod};
use fastrand::Rng;
use lb_ebpf::flow::{self, Flow};
use lb_ebpf::packet::{self, Parsed, Segment, flags};
use lb_ebpf::view::Packet;
use lb_ebpf::{Config, Tuple};
use rustix::net::sockopt::socket_cookie;

use crate::support;

const STEPS: u32 = 200_000;
const SLOT: u32 = 3;

#[derive(Clone, Copy)]
#[repr(transparent)]
struct Plain<T>(T);
// SAFETY: `repr(C)`, made of integers, without padding: asserted beside the definitions.
unsafe impl Pod for Plain<Tuple> {}
// SAFETY: as above.
unsafe impl Pod for Plain<Flow> {}
// SAFETY: as above.
unsafe impl Pod for Plain<Config> {}

/// No spacing between retransmissions, so that streaks grow although the steps take microseconds.
const CONFIG: Config = Config {
    streak: 2,
    silent: 2,
    spacing_us: 0,
    burst: 1_000_000,
};

/// The programs in the kernel.
struct Kernel {
    loaded: Ebpf,
    flows: HashMap<MapData, Plain<Tuple>, Plain<Flow>>,
    watch: HashMap<MapData, u64, u32>,
    ring: RingBuf<MapData>,
}

impl Kernel {
    fn new(object: &[u8]) -> Self {
        let mut loaded = Ebpf::load(object).expect("loaded a moment ago");
        for name in ["lb_tc_in", "lb_tc_out"] {
            classifier(&mut loaded, name)
                .load()
                .expect("the verifier takes it");
        }
        let mut config =
            Array::try_from(loaded.take_map("CONFIG").expect("a map of ours")).expect("its sizes are ours");
        config.set(0, Plain(CONFIG), 0).expect("an entry of the array");
        let mut take = |name| loaded.take_map(name).expect("a map of ours");
        let flows = HashMap::try_from(take("FLOWS")).expect("its sizes are ours");
        let watch = HashMap::try_from(take("WATCH")).expect("its sizes are ours");
        let ring = RingBuf::try_from(take("EVENTS")).expect("a ring");
        Self {
            loaded,
            flows,
            watch,
            ring,
        }
    }

    fn run(&mut self, name: &str, frame: &[u8]) -> bool {
        let mut out = vec![0; 4096];
        let options = TestRunOptions {
            data_in: Some(frame),
            data_out: Some(&mut out),
            ..TestRunOptions::default()
        };
        let ran = classifier(&mut self.loaded, name).test_run(options);
        // The ring is not what is compared here; it only must not fill.
        while self.ring.next().is_some() {}
        // The kernel refuses frames that are too short to be one.
        ran.is_ok_and(|result| {
            assert_eq!(
                result.return_value.cast_signed(),
                -1,
                "{name} must let every packet go on"
            );
            true
        })
    }

    /// The test run makes a socket of its own each time; its cookie is the next one of this CPU.
    fn watch_next_socket(&mut self) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let cookie = socket_cookie(&socket).expect("every socket has one");
        for next in 1..=2 {
            self.watch
                .insert(cookie + next, SLOT, 0)
                .expect("room in the map");
        }
    }

    fn flow(&self, tuple: &Tuple) -> Option<Flow> {
        self.flows.get(&Plain(*tuple), 0).ok().map(|Plain(flow)| flow)
    }
}

fn classifier<'a>(loaded: &'a mut Ebpf, name: &str) -> &'a mut SchedClassifier {
    let program = loaded.program_mut(name).expect("a program of ours");
    program.try_into().expect("a classifier")
}

const US: [u8; 4] = [10, 0, 0, 1];
const THEM: [u8; 4] = [10, 0, 0, 2];

const PORTS: [u16; 3] = [40_000, 40_001, 40_002];
const SYN_ACK: u8 = flags::SYN | flags::ACK;

fn tuple(port: u16) -> Tuple {
    Tuple {
        local: packet::mapped(u32::from_ne_bytes(US)),
        remote: packet::mapped(u32::from_ne_bytes(THEM)),
        local_port: port,
        remote_port: 8000,
    }
}

/// A frame near what would come next on `flow`, sometimes damaged.
fn frame(random: &mut Rng, flow: &Flow, port: u16, out: bool) -> Vec<u8> {
    use flags::{ACK, FIN, RST, SYN};
    let kinds = [SYN, ACK, ACK, ACK, ACK, ACK | FIN, RST, RST | ACK, SYN | ACK, ACK];
    let kind = kinds[random.usize(..kinds.len())];
    let (sent, heard) = (&flow.sent, &flow.heard);
    let (near, far) = if out {
        (sent.max, heard.max)
    } else {
        (heard.max, sent.max)
    };
    let jitter = |random: &mut Rng, n: u32| random.u32(..n).wrapping_sub(n / 2);
    let seq = match random.u8(..12) {
        0 | 1 if kind & SYN != 0 && out => sent.isn,
        2 | 3 => near.wrapping_sub(1),
        4 => near.wrapping_sub(300),
        _ => near.wrapping_add(jitter(random, 6)),
    };
    let ack = if random.u8(..3) == 0 {
        sent.isn.wrapping_add(1)
    } else {
        far.wrapping_sub(random.u32(..3))
    };
    let payload = [0_u16, 0, 0, 1, 100, 300][random.usize(..6)];
    let mut bytes = vec![2; 12];
    if random.u8(..4) == 0 {
        bytes.extend([0x81, 0, 0, 5]);
    }
    bytes.extend([8, 0, 0x45, 0]);
    bytes.extend((40 + payload).to_be_bytes());
    bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    let (from, to) = if out { (US, THEM) } else { (THEM, US) };
    let (source, destination) = if out { (port, 8000) } else { (8000, port) };
    bytes.extend(from);
    bytes.extend(to);
    bytes.extend(source.to_be_bytes());
    bytes.extend(destination.to_be_bytes());
    bytes.extend(seq.to_be_bytes());
    bytes.extend(ack.to_be_bytes());
    bytes.extend([0x50, kind]);
    bytes.extend(if random.u8(..10) == 0 { [0, 0] } else { [1, 244] });
    bytes.extend([0; 4]);
    bytes.resize(bytes.len() + usize::from(payload), b'x');
    if random.u8(..20) == 0 {
        let at = random.usize(..bytes.len());
        bytes[at] ^= 1 << random.u8(..8);
    }
    if random.u8(..40) == 0 {
        bytes.truncate(random.usize(14..bytes.len()));
    }
    bytes
}

/// Steps the host's copy as the programs step theirs. The kernel's clock is taken from what it wrote.
fn step(model: &mut Flow, segment: &Segment, out: bool, now: u64) -> flow::Effects {
    if out {
        flow::egress(model, segment, &CONFIG, now)
    } else {
        flow::ingress(model, segment, now)
    }
}

// [KERNEL-21]
#[test]
fn the_programs_and_the_host_agree_about_two_hundred_thousand_segments() {
    let Some(granted) = support::object() else { return };
    // Cookies are dealt to each CPU in batches, so the thread must stay on one.
    let cpu = rustix::thread::sched_getcpu();
    let mut here = rustix::thread::CpuSet::new();
    here.set(cpu);
    rustix::thread::sched_setaffinity(None, &here).expect("this CPU is one of ours");
    let mut kernel = Kernel::new(granted.thing);
    let mut random = Rng::with_seed(0x00c0_ffee);
    let mut seen = flow::Effects::default();
    let (mut compared, mut lost) = (0_u32, 0_u32);
    let mut models = [Flow::UNSEEN; 3];
    for number in 0..STEPS {
        let aim = random.usize(..models.len());
        let out = random.bool();
        let bytes = frame(&mut random, &models[aim], PORTS[aim], out);
        let parsed = packet::ethernet(&Packet::new(&bytes));
        let opens = matches!(parsed, Parsed::Tcp(segment) if out && segment.flags & SYN_ACK == flags::SYN);
        if opens {
            kernel.watch_next_socket();
        }
        if !kernel.run(if out { "lb_tc_out" } else { "lb_tc_in" }, &bytes) {
            continue;
        }
        // A damaged frame may have become one of another connection.
        let Parsed::Tcp(segment) = parsed else { continue };
        let on = if out { segment.sent() } else { segment.received() };
        let Some(which) = PORTS.iter().position(|&port| tuple(port) == on) else {
            continue;
        };
        let model = &mut models[which];
        let Some(real) = kernel.flow(&on) else {
            // The cookie of the test run's socket came from a new batch: the programs took the flow for somebody
            // else's. Begin again on both sides.
            lost += u32::from(opens);
            *model = Flow::UNSEEN;
            continue;
        };
        if opens {
            (model.cookie, model.slot) = (real.cookie, real.slot);
        }
        (model.sent.owner, model.heard.owner) = (real.sent.owner, real.heard.owner);
        let now = if out { real.sent.last } else { real.heard.last };
        seen = seen.and(step(model, &segment, out, now));
        compared += 1;
        assert_eq!(
            *model,
            real,
            "step {number}: {segment:?} {}",
            if out { "sent" } else { "received" }
        );
    }
    support::measured(&format!(
        "{compared} of {STEPS} steps compared, {lost} connections lost to cookie batches"
    ));
    assert!(compared > STEPS / 10 * 9 && lost < 1_000);
    assert_eq!(seen.0, (1 << 12) - 1, "every effect was met");
}
