//! The maps: what the programs remember, and what the daemon reads and writes.

use aya_ebpf::macros::map;
use aya_ebpf::maps::{Array, LruHashMap, PerCpuArray, RingBuf};
use lb_ebpf::flow::Flow;
use lb_ebpf::{Config, Event, Kind, LAYOUT, Pending, SLOTS, Stats, Tuple};

/// Nothing but its number of entries is meant: see [`LAYOUT`].
#[map(name = "LAYOUT")]
static VERSION: Array<u32> = Array::with_max_entries(LAYOUT, 0);

/// Thresholds, written by the daemon.
#[map]
pub(crate) static CONFIG: Array<Config> = Array::with_max_entries(1, 0);

/// Socket cookie → slot; written by the daemon between `socket()` and `connect()`. So no table of addresses has to be
/// kept in step with DNS, NAT is followed, and two providers behind one address are told apart.
#[map]
pub(crate) static WATCH: LruHashMap<u64, u32> = LruHashMap::with_max_entries(65_536, 0);

/// Every watched connection. The least recently used goes first when it is full (2 MB): its connection is then
/// unobserved, which is no verdict.
#[map]
pub(crate) static FLOWS: LruHashMap<Tuple, Flow> = LruHashMap::with_max_entries(16_384, 0);

/// 1 for each of our ports, as it is on the wire, that a watched connection has had. Everything else that passes, such as
/// the segments to and from the daemon's clients, is let go after one read here (512 KB). Nothing is ever taken back: a
/// port that somebody else uses later costs a look into [`FLOWS`].
#[map]
pub(crate) static PORTS: Array<u8> = Array::with_max_entries(1 << 16, 0);

/// SYNs without an answer, swept by the daemon.
#[map]
pub(crate) static PENDING: LruHashMap<Tuple, Pending> = LruHashMap::with_max_entries(8_192, 0);

/// What was counted, by slot. The truth: events may be lost, these are not.
#[map]
pub(crate) static STATS: PerCpuArray<Stats> = PerCpuArray::with_max_entries(SLOTS, 0);

/// Hints for the daemon; 256 KB are 3,600 of them.
#[map]
pub(crate) static EVENTS: RingBuf = RingBuf::with_byte_size(1 << 18, 0);

/// Events sent in the current window, by slot and kind.
#[map]
pub(crate) static BURSTS: PerCpuArray<Burst> = PerCpuArray::with_max_entries(SLOTS * Kind::COUNT, 0);

/// How often this CPU reported one kind about one slot.
#[repr(C)]
pub(crate) struct Burst {
    /// Number of the window.
    pub(crate) window: u64,
    /// Events in it.
    pub(crate) sent: u64,
}

const _: () = assert!(size_of::<Event>() == 64);
