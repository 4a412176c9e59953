//! The registry and its families.

use std::time::Duration;

use prometheus::{
    Encoder as _, GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec,
    Opts, Registry, TextEncoder,
};

/// All families, on a registry of their own (a global one would make tests share their counts).
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    pub(super) requests: IntCounterVec,
    pub(super) inflight: IntGaugeVec,
    pub(super) cancellations: IntCounterVec,
    pub(super) attempts: IntCounterVec,
    pub(super) failovers: IntCounterVec,
    pub(super) incomplete: IntCounterVec,
    pub(super) midstream: IntCounterVec,
    pub(super) first_token: HistogramVec,
    pub(super) first_token_timeouts: IntCounterVec,
    pub(super) share: GaugeVec,
    pub(super) active: IntGaugeVec,
    pub(super) window_samples: IntGaugeVec,
    pub(super) window_breach: GaugeVec,
    pub(super) aimd_in_flight: IntGaugeVec,
    pub(super) adjustments: IntCounterVec,
    pub(super) samples: IntCounterVec,
    pub(super) overload_breaches: IntCounterVec,
    pub(super) draws: IntCounterVec,
    pub(super) endpoint_state: IntGaugeVec,
    pub(super) endpoint_in_flight: IntGaugeVec,
    pub(super) ejections: IntCounterVec,
    pub(super) fail_open: IntCounterVec,
    /// Client connections that are open.
    pub connections: IntGauge,
    /// Connections that waited because `max_connections` was reached.
    pub accept_waits: IntCounter,
    /// Requests refused before a model was known.
    pub(super) refused: IntCounterVec,
}

impl Metrics {
    /// Registers every family. `edges` are the first-token buckets in rising order, with every configured budget and
    /// deadline among them, so that the part of samples over a budget can be read exactly.
    pub fn new(edges: &[Duration]) -> Self {
        let r = Registry::new();
        let pool = &["model", "pool"];
        let endpoint = &["provider", "endpoint"];
        let metrics = Self {
            requests: counters(
                &r,
                "lb_requests_total",
                "Requests by the model named and how they ended.",
                &["model", "outcome"],
            ),
            inflight: gauges(
                &r,
                "lb_inflight_requests",
                "Requests whose target of this model is being tried or is streaming.",
                &["model"],
            ),
            cancellations: counters(
                &r,
                "lb_client_cancellations_total",
                "Requests whose client left before the end.",
                &["model"],
            ),
            attempts: counters(
                &r,
                "lb_attempts_total",
                "Attempts by provider and how they ended.",
                &["model", "provider", "outcome"],
            ),
            failovers: counters(
                &r,
                "lb_failovers_total",
                "Switches to a next target, by what the attempt before ended in.",
                &["model", "reason"],
            ),
            incomplete: counters(
                &r,
                "lb_stream_incomplete_total",
                "Streams that ended cleanly without a finish event or [DONE].",
                &["model"],
            ),
            midstream: counters(
                &r,
                "lb_stream_failures_total",
                "Streams that failed after they were committed.",
                &["model", "provider"],
            ),
            first_token: first_token(&r, edges),
            first_token_timeouts: counters(
                &r,
                "lb_first_token_timeouts_total",
                "Attempts cut off by the first-token deadline.",
                &["model", "pool", "role"],
            ),
            share: ratios(
                &r,
                "lb_aimd_share_ratio",
                "Part of eligible requests that try the preferred target first.",
                pool,
            ),
            active: gauges(
                &r,
                "lb_aimd_active",
                "1 while the pool's controller steers, 0 when parked or retired.",
                pool,
            ),
            window_samples: gauges(
                &r,
                "lb_aimd_window_samples",
                "Healthy and breach outcomes in the controller's window.",
                pool,
            ),
            window_breach: ratios(
                &r,
                "lb_aimd_window_breach_ratio",
                "Part of the window's outcomes that are breaches.",
                pool,
            ),
            aimd_in_flight: gauges(
                &r,
                "lb_aimd_in_flight",
                "Attempts on the preferred target whose outcome is open.",
                pool,
            ),
            adjustments: counters(
                &r,
                "lb_aimd_adjustments_total",
                "Changes of the share by direction.",
                &["model", "pool", "direction"],
            ),
            samples: counters(
                &r,
                "lb_aimd_samples_total",
                "Outcomes on the preferred target as the controller counted them.",
                &["model", "pool", "outcome"],
            ),
            overload_breaches: counters(
                &r,
                "lb_aimd_overload_breaches_total",
                "Breaches by an overload status.",
                &["model", "pool", "status"],
            ),
            draws: counters(
                &r,
                "lb_aimd_draws_total",
                "Eligible requests by where the draw made them start.",
                &["model", "pool", "start"],
            ),
            endpoint_state: gauges(
                &r,
                "lb_endpoint_state",
                "1 for the state the endpoint is in.",
                &["provider", "endpoint", "state"],
            ),
            endpoint_in_flight: gauges(
                &r,
                "lb_endpoint_in_flight",
                "Attempts in flight at the endpoint, until the body ends.",
                endpoint,
            ),
            ejections: counters(
                &r,
                "lb_ejections_total",
                "Ejections of the endpoint by cause.",
                &["provider", "endpoint", "cause"],
            ),
            fail_open: counters(
                &r,
                "lb_fail_open_picks_total",
                "Attempts sent although every endpoint of the provider was ejected.",
                &["provider"],
            ),
            connections: gauge(
                &r,
                "lb_downstream_connections",
                "Client connections that are open.",
            ),
            accept_waits: counter(
                &r,
                "lb_accept_waits_total",
                "Times accepting waited for a connection to close.",
            ),
            refused: counters(
                &r,
                "lb_refused_total",
                "Requests answered by lb itself before any attempt, by error code.",
                &["code"],
            ),
            registry: r,
        };
        let build = gauges(
            &metrics.registry,
            "lb_build_info",
            "Always 1; the version is the label.",
            &["version"],
        );
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        metrics
    }

    /// The Prometheus text exposition of all series.
    pub fn exposition(&self) -> String {
        let mut text = Vec::new();
        let families = self.registry.gather();
        if let Err(error) = TextEncoder::new().encode(&families, &mut text) {
            // Only a family without a metric can fail to encode, and gather() leaves those out.
            tracing::error!(%error, "metrics could not be encoded");
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

fn first_token(registry: &Registry, edges: &[Duration]) -> HistogramVec {
    let help = "Time to the first data frame of a stream, where it was seen; cut-off attempts are not in it.";
    let opts = HistogramOpts::new("lb_first_token_seconds", help)
        .buckets(edges.iter().map(Duration::as_secs_f64).collect());
    register(registry, HistogramVec::new(opts, &["model", "pool", "role"]))
}

fn counters(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    register(registry, IntCounterVec::new(Opts::new(name, help), labels))
}

fn gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    register(registry, IntGaugeVec::new(Opts::new(name, help), labels))
}

fn ratios(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
    register(registry, GaugeVec::new(Opts::new(name, help), labels))
}

fn gauge(registry: &Registry, name: &str, help: &str) -> IntGauge {
    register(registry, IntGauge::new(name, help))
}

fn counter(registry: &Registry, name: &str, help: &str) -> IntCounter {
    register(registry, IntCounter::new(name, help))
}

fn register<C: prometheus::core::Collector + Clone + 'static>(
    registry: &Registry,
    family: prometheus::Result<C>,
) -> C {
    let family = family.expect("names, labels and buckets are constants of this module or validated edges");
    registry
        .register(Box::new(family.clone()))
        .expect("each family is registered once");
    family
}
