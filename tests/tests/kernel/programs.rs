//! The programs on interfaces, run by the kernel on frames of our own making.

#![expect(unsafe_code, reason = "map keys and values are declared to be plain data")]

use std::net::UdpSocket;
use std::time::Duration;

use aya::maps::{Array, HashMap, MapData, PerCpuArray, RingBuf};
use aya::programs::{SchedClassifier, TestRun as _, TestRunOptions};
use aya::{Ebpf, Pod};
use lb_ebpf::flow::Flow;
use lb_ebpf::{Config, Event, Stats, Tuple};
use rustix::net::sockopt::socket_cookie;
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

#[derive(Clone, Copy)]
#[repr(transparent)]
struct Plain<T>(T);
// SAFETY: `repr(C)`, made of integers, without padding: asserted beside the definitions.
unsafe impl Pod for Plain<Tuple> {}
// SAFETY: as above.
unsafe impl Pod for Plain<Flow> {}
// SAFETY: as above.
unsafe impl Pod for Plain<Config> {}
// SAFETY: as above.
unsafe impl Pod for Plain<Stats> {}

/// No spacing between retransmissions, so that streaks grow although the steps take microseconds, and no end of events.
pub(crate) const CONFIG: Config = Config {
    streak: 2,
    silent: 1,
    spacing_us: 0,
    burst: 1_000_000,
};

/// The slot of every socket that is followed.
pub(crate) const SLOT: u16 = 3;

/// Sees what leaves.
pub(crate) const OUT: &str = "lb_tc_out";
/// Sees what arrives.
pub(crate) const IN: &str = "lb_tc_in";

/// The loaded programs and their maps.
pub(crate) struct Programs {
    loaded: Ebpf,
    flows: HashMap<MapData, Plain<Tuple>, Plain<Flow>>,
    stats: PerCpuArray<MapData, Plain<Stats>>,
    watch: HashMap<MapData, u64, u32>,
    ring: RingBuf<MapData>,
}

impl Programs {
    pub(crate) fn load(object: &[u8]) -> Self {
        // Cookies are dealt to each CPU in batches, so the thread must stay on one to know the next.
        let mut here = CpuSet::new();
        here.set(sched_getcpu());
        sched_setaffinity(None, &here).expect("this CPU is one of ours");
        let mut loaded = Ebpf::load(object).expect("loaded a moment ago");
        for name in [IN, OUT] {
            classifier(&mut loaded, name)
                .load()
                .expect("the verifier takes it");
        }
        let mut take = |name| loaded.take_map(name).expect("a map of ours");
        let mut config = Array::try_from(take("CONFIG")).expect("its sizes are ours");
        config.set(0, Plain(CONFIG), 0).expect("an entry of the array");
        Self {
            flows: HashMap::try_from(take("FLOWS")).expect("its sizes are ours"),
            stats: PerCpuArray::try_from(take("STATS")).expect("its sizes are ours"),
            watch: HashMap::try_from(take("WATCH")).expect("its sizes are ours"),
            ring: RingBuf::try_from(take("EVENTS")).expect("a ring"),
            loaded,
        }
    }

    /// Runs a program on `frame` that many times. The average time of one; `None` for a frame that the kernel does not
    /// take for one.
    pub(crate) fn run(&mut self, name: &str, frame: &[u8], repeat: u32) -> Option<Duration> {
        let mut out = vec![0; 4096];
        let (data_in, data_out) = (Some(frame), Some(&mut out[..]));
        let options = TestRunOptions {
            data_in,
            data_out,
            repeat,
            ..TestRunOptions::default()
        };
        let ran = classifier(&mut self.loaded, name).test_run(options).ok()?;
        assert_eq!(
            ran.return_value.cast_signed(),
            -1,
            "{name} must let every packet go on"
        );
        Some(ran.duration)
    }

    /// What was reported since the last call.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(record) = self.ring.next() {
            events.extend(Event::read(&record));
        }
        events
    }

    /// Follows the socket that the next run makes for itself: its cookie is the next one of this CPU.
    pub(crate) fn follow_next_socket(&mut self) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let cookie = socket_cookie(&socket).expect("every socket has one");
        self.watch
            .insert(cookie + 1, u32::from(SLOT), 0)
            .expect("room in the map");
    }

    pub(crate) fn flow(&self, tuple: &Tuple) -> Option<Flow> {
        self.flows.get(&Plain(*tuple), 0).ok().map(|Plain(flow)| flow)
    }

    pub(crate) fn stats(&self) -> Stats {
        let cpus = self.stats.get(&u32::from(SLOT), 0).expect("a slot");
        let mut sum = Stats::ZERO;
        for Plain(stats) in cpus.iter() {
            sum.merge(stats);
        }
        sum
    }
}

fn classifier<'a>(loaded: &'a mut Ebpf, name: &str) -> &'a mut SchedClassifier {
    let program = loaded.program_mut(name).expect("a program of ours");
    program.try_into().expect("a classifier")
}
