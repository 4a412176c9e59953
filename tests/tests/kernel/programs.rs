//! The programs on interfaces, run by the kernel on frames of our own making.

#![expect(unsafe_code, reason = "map keys and values are declared to be plain data")]

use std::net::UdpSocket;
use std::time::Duration;

use aya::maps::{Array, HashMap, MapData, PerCpuArray, PerCpuValues, RingBuf};
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
    /// Runs whose socket may not have been the one that was followed.
    pub(crate) taken_back: u32,
}

impl Programs {
    pub(crate) fn load(object: &[u8]) -> Self {
        stay_on_one_cpu();
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
            taken_back: 0,
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

    /// Runs the program for what leaves on the SYN in `frame`, on the connection `on`, from a socket that is followed.
    /// The socket's cookie, or `None` for a frame that the kernel does not take for one.
    ///
    /// The kernel makes a socket for each run, which nobody can get at, and gives it the next cookie of this CPU. Another
    /// process may take that one meanwhile, and every 4,096th time the next one is not the one after it, because another
    /// CPU took the batch that follows. So the cookies around a run are looked at: only if there is exactly one between
    /// them it is the run's. Otherwise the run is taken back, and made again.
    pub(crate) fn open(&mut self, frame: &[u8], on: &Tuple) -> Option<u64> {
        let slot = u32::from(SLOT);
        let flow = self.flow(on);
        let stats = self.stats.get(&slot, 0).expect("a slot");
        loop {
            let cookie = next_cookie() + 1;
            self.watch.insert(cookie, slot, 0).expect("room in the map");
            self.run(OUT, frame, 1)?;
            if next_cookie() == cookie + 1 {
                return Some(cookie);
            }
            self.taken_back += 1;
            self.events();
            let stats = PerCpuValues::try_from(stats.to_vec()).expect("one for each CPU");
            self.stats.set(slot, stats, 0).expect("a slot");
            match flow {
                Some(flow) => self
                    .flows
                    .insert(Plain(*on), Plain(flow), 0)
                    .expect("room in the map"),
                // There is none unless the run made it.
                None => drop(self.flows.remove(&Plain(*on))),
            }
        }
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

/// Keeps this thread where it is: each CPU has its own count of cookies.
pub(crate) fn stay_on_one_cpu() {
    let mut here = CpuSet::new();
    here.set(sched_getcpu());
    sched_setaffinity(None, &here).expect("this CPU is one of ours");
}

/// The cookie of a new socket.
pub(crate) fn next_cookie() -> u64 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket_cookie(&socket).expect("every socket has one")
}

fn classifier<'a>(loaded: &'a mut Ebpf, name: &str) -> &'a mut SchedClassifier {
    let program = loaded.program_mut(name).expect("a program of ours");
    program.try_into().expect("a classifier")
}
