//! The registry and its families.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    CounterVec, Encoder as _, GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Opts, Registry, TextEncoder, process_collector::ProcessCollector,
};

use super::kernel::Kernel;

mod endpoints;

use endpoints::Endpoints;

/// All families, on a registry of their own (a global one would make tests share their counts).
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    pub(super) requests: Requests,
    pub(super) attempts: Attempts,
    pub(super) aimd: Aimd,
    pub(super) endpoints: Endpoints,
    pub(super) kernel: Kernel,
    /// Whether tokens are counted by the `usage` of answers.
    pub(super) counts_usage: AtomicBool,
    /// Access lines that nobody wrote, since the writer was behind.
    pub access_log_dropped: IntCounter,
    /// Spans that no collector got.
    pub spans_dropped: IntCounter,
    /// 1 while the configuration that was read last is in force.
    reload_successful: IntGauge,
    /// Unix seconds of the last that came into force.
    reload_success_timestamp: IntGauge,
    /// Client connections that are open.
    pub connections: IntGauge,
    /// Connections that waited because `max_connections` was reached.
    pub accept_waits: IntCounter,
    /// Connections closed at once for where they came from.
    pub turned_away: IntCounter,
}

/// Of requests, by the model they name.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) conversations: IntCounterVec,
    pub(super) total: IntCounterVec,
    pub(super) inflight: IntGaugeVec,
    pub(super) cancellations: IntCounterVec,
    pub(super) failovers: IntCounterVec,
    pub(super) incomplete: IntCounterVec,
    pub(super) refused: IntCounterVec,
    pub(super) duration: HistogramVec,
    pub(super) gaps: HistogramVec,
    pub(super) tokens: IntCounterVec,
}

/// Of attempts, by model and target.
#[derive(Debug)]
pub(super) struct Attempts {
    pub(super) total: IntCounterVec,
    pub(super) midstream: IntCounterVec,
    pub(super) first_token: HistogramVec,
    pub(super) first_token_timeouts: IntCounterVec,
}

/// Of share controllers, by pool.
#[derive(Debug)]
pub(super) struct Aimd {
    pub(super) share: GaugeVec,
    pub(super) active: IntGaugeVec,
    pub(super) window_samples: IntGaugeVec,
    pub(super) window_breach: GaugeVec,
    pub(super) in_flight: IntGaugeVec,
    pub(super) adjustments: IntCounterVec,
    pub(super) samples: IntCounterVec,
    pub(super) overload_breaches: IntCounterVec,
    pub(super) draws: IntCounterVec,
}

impl Metrics {
    /// Registers every family. `edges` are the first-token buckets in rising order, with every configured budget and
    /// deadline among them, so that the part of samples over a budget can be read exactly.
    pub fn new(edges: &[Duration]) -> Self {
        let make = Maker(Registry::new());
        let build = make.gauges(
            "lb_build_info",
            "Always 1; the version is the label.",
            &["version"],
        );
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        make.collect(ProcessCollector::for_self());
        Self {
            requests: Requests::new(&make),
            attempts: Attempts::new(&make, edges),
            aimd: Aimd::new(&make),
            endpoints: Endpoints::new(&make),
            kernel: Kernel::new(&make),
            counts_usage: AtomicBool::new(false),
            access_log_dropped: make.counter(
                "lb_access_log_dropped_total",
                "Access lines that were not written since the writer was behind.",
            ),
            spans_dropped: make.counter(
                "lb_spans_dropped_total",
                "Spans that no collector got: it did not take them, or those before were not taken in time.",
            ),
            reload_successful: make.gauge(
                "lb_config_last_reload_successful",
                "1 while the configuration that was read last is in force, 0 after one that was refused.",
            ),
            reload_success_timestamp: make.gauge(
                "lb_config_last_reload_success_timestamp_seconds",
                "When a configuration last came into force.",
            ),
            connections: make.gauge("lb_downstream_connections", "Client connections that are open."),
            accept_waits: make.counter(
                "lb_accept_waits_total",
                "Times accepting waited for a connection to close.",
            ),
            turned_away: make.counter(
                "lb_connections_turned_away_total",
                "Connections closed at once for where they came from.",
            ),
            registry: make.0,
        }
    }

    /// Whether models whose series are resolved from now on count tokens by what answers say of them in `usage`.
    pub fn count_usage(&self, counts: bool) {
        self.counts_usage.store(counts, Ordering::Relaxed);
    }

    /// A configuration has been read, and come into force or not.
    pub fn reloaded(&self, successful: bool) {
        self.reload_successful.set(i64::from(successful));
        if successful {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            let seconds = now.map_or(0, |now| now.as_secs());
            self.reload_success_timestamp
                .set(i64::try_from(seconds).unwrap_or(i64::MAX));
        }
    }

    /// The Prometheus text exposition of all series.
    pub fn exposition(&self) -> String {
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            // Only a family without a metric can fail to encode, and gather() leaves those out.
            tracing::error!(%error, "metrics could not be encoded");
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Requests {
    fn new(make: &Maker) -> Self {
        Self {
            conversations: make.counters(
                "lb_affinity_requests_total",
                "Requests to models that tell conversations apart, by whether they said which they belong to.",
                &["model", "keyed"],
            ),
            total: make.counters(
                "lb_requests_total",
                "Requests by the model named and how they ended.",
                &["model", "outcome"],
            ),
            inflight: make.gauges(
                "lb_inflight_requests",
                "Requests whose target of this model is being tried or is streaming.",
                &["model"],
            ),
            cancellations: make.counters(
                "lb_client_cancellations_total",
                "Requests whose client left before the end.",
                &["model"],
            ),
            failovers: make.counters(
                "lb_failovers_total",
                "Switches to a next target, by how the attempt before ended.",
                &["model", "reason"],
            ),
            incomplete: make.counters(
                "lb_stream_incomplete_total",
                "Streams that ended cleanly without a finish event or [DONE].",
                &["model"],
            ),
            refused: make.counters(
                "lb_refused_total",
                "Requests that lb answered itself before any attempt, by error code.",
                &["code"],
            ),
            duration: make.seconds(
                "lb_request_duration_seconds",
                "Time from a request's head to the end of its answer, however it ended.",
                &DURATIONS,
            ),
            gaps: make.seconds(
                "lb_inter_frame_gap_seconds",
                "Time between two arrivals of event-stream bytes from the provider, after the commit; what arrives \
                 together counts once.",
                &GAPS,
            ),
            tokens: make.counters(
                "lb_tokens_total",
                "Tokens by what providers say in the usage of their answers (metrics.usage).",
                &["model", "kind"],
            ),
        }
    }
}

impl Attempts {
    fn new(make: &Maker, edges: &[Duration]) -> Self {
        let labels = &["model", "pool", "role"];
        let help =
            "Time to the first data frame of a stream, where it was seen; cut-off attempts are not in it.";
        let buckets = edges.iter().map(Duration::as_secs_f64).collect();
        let opts = HistogramOpts::new("lb_first_token_seconds", help).buckets(buckets);
        Self {
            total: make.counters(
                "lb_attempts_total",
                "Attempts by provider and how they ended.",
                &["model", "provider", "outcome"],
            ),
            midstream: make.counters(
                "lb_stream_failures_total",
                "Streams that failed after they were committed.",
                &["model", "provider"],
            ),
            first_token: make.register(HistogramVec::new(opts, labels)),
            first_token_timeouts: make.counters(
                "lb_first_token_timeouts_total",
                "Attempts cut off by the first-token deadline.",
                labels,
            ),
        }
    }
}

impl Aimd {
    fn new(make: &Maker) -> Self {
        let pool = &["model", "pool"];
        let counters = |name, help, label| make.counters(name, help, &["model", "pool", label]);
        Self {
            share: make.ratios(
                "lb_aimd_share_ratio",
                "Part of eligible requests that try the preferred target first.",
                pool,
            ),
            active: make.gauges(
                "lb_aimd_active",
                "1 while the pool's controller steers, 0 when parked or retired.",
                pool,
            ),
            window_samples: make.gauges(
                "lb_aimd_window_samples",
                "Healthy and breach outcomes in the window.",
                pool,
            ),
            window_breach: make.ratios(
                "lb_aimd_window_breach_ratio",
                "Part of the window's outcomes that are breaches.",
                pool,
            ),
            in_flight: make.gauges(
                "lb_aimd_in_flight",
                "Attempts on the preferred target whose outcome is open.",
                pool,
            ),
            adjustments: counters(
                "lb_aimd_adjustments_total",
                "Changes of the share by direction.",
                "direction",
            ),
            samples: counters(
                "lb_aimd_samples_total",
                "Outcomes on the preferred target as they were counted.",
                "outcome",
            ),
            overload_breaches: counters(
                "lb_aimd_overload_breaches_total",
                "Breaches by an overload status.",
                "status",
            ),
            draws: counters(
                "lb_aimd_draws_total",
                "Eligible requests by where the draw made them start.",
                "start",
            ),
        }
    }
}

/// Upper edges of request durations in seconds: from a cached embedding to a long answer.
const DURATIONS: [f64; 13] = [
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0,
];

/// Upper edges of gaps in seconds: from batched tokens to a stream about to be given up.
const GAPS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Makes families and registers them.
pub(super) struct Maker(Registry);

impl Maker {
    pub(super) fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.register(IntCounterVec::new(Opts::new(name, help), labels))
    }

    pub(super) fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.register(IntGaugeVec::new(Opts::new(name, help), labels))
    }

    pub(super) fn sums(&self, name: &str, help: &str, labels: &[&str]) -> CounterVec {
        self.register(CounterVec::new(Opts::new(name, help), labels))
    }

    /// Histograms of seconds by model.
    fn seconds(&self, name: &str, help: &str, edges: &[f64]) -> HistogramVec {
        let opts = HistogramOpts::new(name, help).buckets(edges.to_vec());
        self.register(HistogramVec::new(opts, &["model"]))
    }

    fn ratios(&self, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
        self.register(GaugeVec::new(Opts::new(name, help), labels))
    }

    fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.register(IntGauge::new(name, help))
    }

    fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.register(IntCounter::new(name, help))
    }

    fn register<C: Collector + Clone + 'static>(&self, family: prometheus::Result<C>) -> C {
        let family =
            family.expect("names, labels and buckets are constants of this module or validated edges");
        self.collect(family.clone());
        family
    }

    fn collect(&self, collector: impl Collector + 'static) {
        self.0
            .register(Box::new(collector))
            .expect("each family is registered once");
    }
}
