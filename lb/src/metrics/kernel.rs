//! Series of the kernel plane: what its programs counted on the wire.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus::{Counter, CounterVec, IntCounter, IntCounterVec, IntGaugeVec};

use super::Metrics;
use super::families::Maker;

/// One number that the programs count, and the series that shows it.
struct Row {
    counter: &'static str,
    family: &'static str,
    help: &'static str,
    /// The label beside provider and endpoint, with its value.
    label: Option<(&'static str, &'static str)>,
}

const fn row(counter: &'static str, family: &'static str, help: &'static str) -> Row {
    Row {
        counter,
        family,
        help,
        label: None,
    }
}

impl Row {
    const fn sent(mut self) -> Self {
        self.label = Some(("direction", "sent"));
        self
    }

    const fn received(mut self) -> Self {
        self.label = Some(("direction", "received"));
        self
    }

    const fn kind(mut self, kind: &'static str) -> Self {
        self.label = Some(("kind", kind));
        self
    }
}

const SEGMENTS: &str = "TCP segments as the hook sees them, before segmentation and after receive offload.";
const BYTES: &str = "Payload bytes, retransmissions included.";
const RETRANSMITS: &str = "Segments that carry data for the second time or more.";
const RESETS: &str = "Resets; received ones only where they are believed.";
const FINS: &str = "Ends of a direction.";
const IGNORED: &str =
    "Received resets, segments and ICMP errors that an off-path sender could have made: not believed.";

const ROWS: [Row; 20] = [
    row("syn", "lb_endpoint_syns_total", "Connections begun."),
    row(
        "syn_retransmit",
        "lb_endpoint_syn_retransmits_total",
        "SYNs sent again.",
    ),
    row(
        "handshake",
        "lb_endpoint_handshakes_total",
        "Handshakes that the endpoint completed.",
    ),
    row(
        "refused",
        "lb_endpoint_refusals_total",
        "SYNs answered with a reset.",
    ),
    row("segments_sent", "lb_endpoint_segments_total", SEGMENTS).sent(),
    row("segments_received", "lb_endpoint_segments_total", SEGMENTS).received(),
    row("bytes_sent", "lb_endpoint_bytes_total", BYTES).sent(),
    row("bytes_received", "lb_endpoint_bytes_total", BYTES).received(),
    row("retransmit_sent", "lb_endpoint_retransmits_total", RETRANSMITS).sent(),
    row(
        "retransmit_received",
        "lb_endpoint_retransmits_total",
        RETRANSMITS,
    )
    .received(),
    row("reset_sent", "lb_endpoint_resets_total", RESETS).sent(),
    row("reset_received", "lb_endpoint_resets_total", RESETS).received(),
    row("fin_sent", "lb_endpoint_fins_total", FINS).sent(),
    row("fin_received", "lb_endpoint_fins_total", FINS).received(),
    row(
        "probe_sent",
        "lb_endpoint_probes_total",
        "Keepalive and window probes sent.",
    ),
    row(
        "zero_window",
        "lb_endpoint_zero_windows_total",
        "Times the endpoint closed its window.",
    ),
    row(
        "unreachable",
        "lb_endpoint_unreachables_total",
        "ICMP errors about the endpoint that are believed.",
    ),
    row("reset_ignored", "lb_endpoint_ignored_total", IGNORED).kind("reset"),
    row("segments_ignored", "lb_endpoint_ignored_total", IGNORED).kind("segment"),
    row("unreachable_ignored", "lb_endpoint_ignored_total", IGNORED).kind("unreachable"),
];

/// In the programs' own unit; the series has seconds.
const HANDSHAKE_MICROSECONDS: &str = "handshake_microseconds";

/// Events that did not reach the daemon, by why.
const LOST: [(&str, &str); 2] = [("events_suppressed", "suppressed"), ("events_lost", "ring_full")];

/// The families.
#[derive(Debug)]
pub(super) struct Kernel {
    mode: IntGaugeVec,
    events: IntCounterVec,
    missed: IntCounterVec,
    counted: Vec<(&'static str, IntCounterVec)>,
    handshake_seconds: CounterVec,
}

impl Kernel {
    pub(super) fn new(make: &Maker) -> Self {
        let mut counted: Vec<(&'static str, IntCounterVec)> = Vec::new();
        for Row {
            family, help, label, ..
        } in &ROWS
        {
            if counted.iter().all(|(known, _)| known != family) {
                let mut labels = vec!["provider", "endpoint"];
                labels.extend(label.map(|(name, _)| name));
                counted.push((family, make.counters(family, help, &labels)));
            }
        }
        Self {
            mode: make.gauges(
                "lb_kernel_mode",
                "1 for how connections are watched in the kernel.",
                &["mode"],
            ),
            events: make.counters(
                "lb_kernel_events_total",
                "What the kernel reported about connections to the endpoint.",
                &["provider", "endpoint", "kind"],
            ),
            missed: make.counters(
                "lb_kernel_events_missed_total",
                "Reports that were held back as too many, or lost.",
                &["provider", "endpoint", "reason"],
            ),
            counted,
            handshake_seconds: make.sums(
                "lb_endpoint_handshake_seconds_total",
                "Time from first SYN to its answer, over all handshakes.",
                &["provider", "endpoint"],
            ),
        }
    }
}

/// An endpoint's series of the kernel plane.
#[derive(Debug)]
pub struct TrafficMetrics {
    events: Vec<(&'static str, IntCounter)>,
    counted: Vec<(&'static str, IntCounter)>,
    handshake_seconds: Counter,
    /// How far each of the programs' counts has been added, the handshakes' time last: the series are shared by all
    /// addresses of a name, and outlive them.
    added: Vec<AtomicU64>,
}

impl TrafficMetrics {
    /// Counts a report of this kind.
    pub fn event(&self, kind: &str) {
        if let Some((_, counter)) = self.events.iter().find(|(name, _)| *name == kind) {
            counter.inc();
        }
    }

    /// Adds what the programs have counted since the endpoint's slot was claimed, by their names, and was not added yet.
    pub fn publish(&self, counted: impl Iterator<Item = (&'static str, u64)>) {
        let grown = |place: usize, value: u64| {
            let added = self.added[place].fetch_max(value, Ordering::Relaxed);
            value.saturating_sub(added)
        };
        for (name, value) in counted {
            if name == HANDSHAKE_MICROSECONDS {
                let more = Duration::from_micros(grown(self.counted.len(), value));
                self.handshake_seconds.inc_by(more.as_secs_f64());
            } else if let Some(place) = self.counted.iter().position(|(known, _)| *known == name) {
                self.counted[place].1.inc_by(grown(place, value));
            }
        }
    }
}

impl Metrics {
    /// Says how connections are watched.
    pub fn kernel_mode(&self, mode: &str) {
        self.kernel.mode.with_label_values(&[mode]).set(1);
    }

    /// The series of an endpoint that is watched; `kinds` are the reports that there can be.
    pub fn traffic(&self, provider: &str, endpoint: &str, kinds: &[&'static str]) -> TrafficMetrics {
        let family = |name: &str| {
            let found = self.kernel.counted.iter().find(|(known, _)| *known == name);
            found.map(|(_, family)| family)
        };
        let rows = ROWS.iter().filter_map(|row| {
            let mut labels = vec![provider, endpoint];
            labels.extend(row.label.map(|(_, value)| value));
            Some((row.counter, family(row.family)?.with_label_values(&labels)))
        });
        let missed = LOST.map(|(counter, reason)| {
            let labels = &[provider, endpoint, reason];
            (counter, self.kernel.missed.with_label_values(labels))
        });
        let event = |kind: &&'static str| {
            let labels = &[provider, endpoint, *kind];
            (*kind, self.kernel.events.with_label_values(labels))
        };
        let counted: Vec<_> = rows.chain(missed).collect();
        TrafficMetrics {
            events: kinds.iter().map(event).collect(),
            added: (0..=counted.len()).map(|_| AtomicU64::new(0)).collect(),
            counted,
            handshake_seconds: self
                .kernel
                .handshake_seconds
                .with_label_values(&[provider, endpoint]),
        }
    }
}
