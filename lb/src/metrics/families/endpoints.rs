//! What is counted of endpoints and providers.

use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec};

use super::Maker;

/// Of endpoints and providers.
#[derive(Debug)]
pub(in crate::metrics) struct Endpoints {
    pub(in crate::metrics) state: IntGaugeVec,
    pub(in crate::metrics) in_flight: IntGaugeVec,
    pub(in crate::metrics) connections: IntGaugeVec,
    pub(in crate::metrics) ejections: IntCounterVec,
    pub(in crate::metrics) fail_open: IntCounterVec,
    pub(in crate::metrics) pending: IntGaugeVec,
    pub(in crate::metrics) rate_limit_factor: GaugeVec,
    pub(in crate::metrics) probes: IntCounterVec,
    pub(in crate::metrics) breaker: IntGaugeVec,
    pub(in crate::metrics) retries: IntCounterVec,
    pub(in crate::metrics) hedges: IntCounterVec,
    pub(in crate::metrics) retry_after_capped: IntCounterVec,
    pub(in crate::metrics) cooldown: IntGaugeVec,
}

impl Endpoints {
    pub(super) fn new(make: &Maker) -> Self {
        let endpoint = &["provider", "endpoint"];
        Self {
            state: make.gauges(
                "lb_endpoint_state",
                "Addresses of the endpoint that are in the state.",
                &["provider", "endpoint", "state"],
            ),
            in_flight: make.gauges(
                "lb_endpoint_in_flight",
                "Attempts in flight at the endpoint, until the body ends.",
                endpoint,
            ),
            connections: make.gauges(
                "lb_upstream_connections",
                "Connections to the endpoint, by whether requests are on them.",
                &["provider", "endpoint", "state"],
            ),
            ejections: make.counters(
                "lb_ejections_total",
                "Ejections of the endpoint by cause.",
                &["provider", "endpoint", "cause"],
            ),
            fail_open: make.counters(
                "lb_fail_open_picks_total",
                "Attempts sent although every endpoint of the provider was ejected.",
                &["provider"],
            ),
            pending: make.gauges(
                "lb_pending_requests",
                "Requests that wait for a slot of the provider.",
                &["provider"],
            ),
            rate_limit_factor: make.ratios(
                "lb_rate_limit_factor_ratio",
                "Part of the provider's configured limit that is in force; 1 where it is not adaptive.",
                &["provider"],
            ),
            probes: make.counters(
                "lb_probes_total",
                "Active probes of the endpoint by what they came to.",
                &["provider", "endpoint", "result"],
            ),
            breaker: make.gauges(
                "lb_breaker_state",
                "The provider's circuit breaker: 0 closed, 1 open, 2 half-open.",
                &["provider"],
            ),
            retries: make.counters(
                "lb_retries_total",
                "Retries in the provider: sent, or not made for want of budget or of time.",
                &["provider", "outcome"],
            ),
            hedges: make.counters(
                "lb_hedges_total",
                "Second attempts beside a slow one, by what they came to; or not made for want of budget or of room.",
                &["provider", "outcome"],
            ),
            retry_after_capped: make.counters(
                "lb_retry_after_capped_total",
                "Answers that asked to be left alone for longer than the provider is believed.",
                &["provider"],
            ),
            cooldown: make.gauges(
                "lb_cooldown_active",
                "Addresses of the endpoint at which the upstream model is left alone.",
                &["model", "provider", "endpoint"],
            ),
        }
    }
}
