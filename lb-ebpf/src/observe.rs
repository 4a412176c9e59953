//! What happens to one parsed segment: find its flow, step the machine, count, and report.

use aya_ebpf::bindings::__sk_buff;
use aya_ebpf::helpers::{bpf_get_socket_cookie, bpf_ktime_get_ns};
use lb_ebpf::flow::{self, Effects, Evidence, Flow};
use lb_ebpf::packet::{Quoted, Segment, flags};
use lb_ebpf::{BURST_WINDOW_NS, Config, Counter, Event, Hook, Kind, Pending, Stats, Tuple};

use crate::maps::{BURSTS, CONFIG, EVENTS, FLOWS, PENDING, PORTS, STATS, WATCH};

/// Which program is looking, and at what.
pub(crate) struct Sight {
    pub(crate) skb: *mut __sk_buff,
    pub(crate) hook: Hook,
}

impl Sight {
    /// This hook on this interface, as [`flow::owned`] compares it; never 0.
    #[inline(always)]
    fn owner(&self) -> u32 {
        // SAFETY: the kernel hands the program a valid context.
        let interface = unsafe { (*self.skb).ifindex };
        (self.hook as u32) << 24 | interface & 0x00ff_ffff
    }
}

/// A flow in the map, where its endpoint is counted, and what time it is.
struct Watched<'a> {
    tuple: &'a Tuple,
    flow: &'a mut Flow,
    stats: &'a mut Stats,
    hook: Hook,
    now: u64,
}

impl<'a> Watched<'a> {
    /// The flow of `tuple`, if it is watched.
    #[inline(always)]
    fn find(tuple: &'a Tuple, hook: Hook) -> Option<Self> {
        let flow = FLOWS.get_ptr_mut(tuple)?;
        // SAFETY: the kernel keeps the value until the program ends. Another CPU may be at it at the same time; each
        // direction writes its own half, see `lb_ebpf::flow`.
        let flow = unsafe { &mut *flow };
        let stats = STATS.get_ptr_mut(flow.slot as u32)?;
        // SAFETY: a per-CPU value, so no other CPU is at it. A segment that arrives may interrupt the cgroup's egress
        // program here; at worst one addition of the two is lost.
        let stats = unsafe { &mut *stats };
        // SAFETY: the helper reads the clock and nothing else.
        let now = unsafe { bpf_ktime_get_ns() };
        Some(Self {
            tuple,
            flow,
            stats,
            hook,
            now,
        })
    }

    /// Tells the daemon, unless this CPU has told it enough of the same.
    #[inline(always)]
    fn report(&mut self, config: &Config, evidence: Evidence) {
        let Evidence { kind, count, since } = evidence;
        let slot = self.flow.slot as u32;
        let Some(burst) = BURSTS.get_ptr_mut(slot * Kind::COUNT + kind as u32) else {
            return;
        };
        // SAFETY: a per-CPU value, as the statistics.
        let burst = unsafe { &mut *burst };
        let window = self.now / BURST_WINDOW_NS;
        if burst.window != window {
            burst.window = window;
            burst.sent = 0;
        }
        if burst.sent >= u64::from(config.burst) {
            self.stats.add(Counter::EventsSuppressed, 1);
            return;
        }
        burst.sent += 1;
        let Some(mut record) = EVENTS.reserve::<Event>(0) else {
            self.stats.add(Counter::EventsLost, 1);
            return;
        };
        let age = self.now.saturating_sub(since) / 1000;
        record.write(Event {
            time: self.now,
            cookie: self.flow.cookie,
            tuple: *self.tuple,
            slot: slot as u16,
            kind: kind as u8,
            hook: self.hook as u8,
            arg: count,
            age_us: if age > u64::from(u32::MAX) {
                u32::MAX
            } else {
                age as u32
            },
        });
        record.submit(0);
        self.stats.add(Counter::Events, 1);
    }
}

/// A segment on its way out.
#[inline(always)]
pub(crate) fn sent(sight: &Sight, segment: &Segment) {
    let tuple = segment.sent();
    let open = segment.flags & (flags::SYN | flags::ACK) == flags::SYN;
    if open && !opened(sight, &tuple, segment) || !open && !may_be_watched(&tuple) {
        return;
    }
    let Some(mut watched) = Watched::find(&tuple, sight.hook) else {
        return;
    };
    let Some(config) = CONFIG.get(0) else { return };
    let last = watched.flow.sent.last;
    if !flow::owned(&mut watched.flow.sent.owner, last, sight.owner(), watched.now) {
        return;
    }
    let effects = flow::egress(watched.flow, segment, config, watched.now);
    watched.stats.sent(effects, segment.payload);
    if effects.any(Effects::SYN) {
        let Flow { cookie, slot, .. } = *watched.flow;
        // A full map drops its oldest entry; that SYN then has no timeout, as without this plane.
        let _ = PENDING.insert(
            &tuple,
            Pending {
                since: watched.now,
                cookie,
                slot,
            },
            0,
        );
    }
    if let Some(evidence) = flow::sent_evidence(watched.flow, effects, config) {
        watched.report(config, evidence);
    }
}

/// Whether there can be a flow for it at all.
#[inline(always)]
fn may_be_watched(tuple: &Tuple) -> bool {
    PORTS
        .get(u32::from(tuple.local_port))
        .is_some_and(|&watched| watched != 0)
}

/// Whether a SYN is one that is watched; makes its flow if it has none.
#[inline(always)]
fn opened(sight: &Sight, tuple: &Tuple, segment: &Segment) -> bool {
    // SAFETY: the context is the one that the kernel gave to this program.
    let cookie = unsafe { bpf_get_socket_cookie(sight.skb.cast()) };
    // SAFETY: the number is copied before anything else runs.
    let Some(slot) = unsafe { WATCH.get(cookie) }.copied() else {
        // Somebody else's connection may reuse the ports of one of ours.
        let _ = FLOWS.remove(tuple);
        return false;
    };
    // An array has an entry for every port.
    let _ = PORTS.set(u32::from(tuple.local_port), 1, 0);
    if let Some(flow) = FLOWS.get_ptr_mut(tuple) {
        // SAFETY: as in `Watched::find`.
        let flow = unsafe { &mut *flow };
        if flow.cookie == cookie && flow.sent.isn == segment.seq {
            return true;
        }
        flow::begin(flow, cookie, u64::from(slot), sight.owner());
        return true;
    }
    let mut flow = Flow::UNSEEN;
    flow::begin(&mut flow, cookie, u64::from(slot), sight.owner());
    FLOWS.insert(tuple, flow, 0).is_ok()
}

/// A segment on its way in.
#[inline(always)]
pub(crate) fn received(sight: &Sight, segment: &Segment) {
    let tuple = segment.received();
    if !may_be_watched(&tuple) {
        return;
    }
    let Some(mut watched) = Watched::find(&tuple, sight.hook) else {
        return;
    };
    let Some(config) = CONFIG.get(0) else { return };
    let last = watched.flow.heard.last;
    if !flow::owned(&mut watched.flow.heard.owner, last, sight.owner(), watched.now) {
        return;
    }
    let effects = flow::ingress(watched.flow, segment, watched.now);
    watched
        .stats
        .received(effects, segment.payload, watched.flow, watched.now);
    if effects.any(Effects::HANDSHAKE.and(Effects::REFUSED)) {
        let _ = PENDING.remove(&tuple);
    }
    if let Some(evidence) = flow::heard_evidence(watched.flow, effects) {
        watched.report(config, evidence);
    }
}

/// An ICMP error about a segment of ours.
#[inline(always)]
pub(crate) fn unreachable(sight: &Sight, quoted: &Quoted) {
    let Some(mut watched) = Watched::find(&quoted.tuple, sight.hook) else {
        return;
    };
    let Some(config) = CONFIG.get(0) else { return };
    if !flow::believable(watched.flow, quoted) {
        watched.stats.add(Counter::UnreachableIgnored, 1);
        return;
    }
    watched.stats.add(Counter::Unreachable, 1);
    let _ = PENDING.remove(&quoted.tuple);
    let (count, since) = (u32::from(quoted.code), watched.flow.sent.last);
    watched.report(
        config,
        Evidence {
            kind: Kind::Unreachable,
            count,
            since,
        },
    );
}
