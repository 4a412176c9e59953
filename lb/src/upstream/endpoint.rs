//! One address of a provider, with the health that was learned about it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::adopt::{self, carried};
use crate::config;
use crate::metrics::EndpointMetrics;
use crate::policy::balance::Peak;
use crate::policy::health::{
    Cause, Ejection, Health, KernelCause, Permit, Probed, Snapshot, Standing, State, Transition, Verdict,
};
use crate::policy::limiter::Sample;
use crate::policy::select::Candidate;
use crate::policy::time::Instant;

/// An endpoint: where to connect, and whether one should.
#[derive(Debug)]
pub struct Endpoint {
    /// Its place among all endpoints of the table: workers key their connections by it.
    pub id: usize,
    /// Its name in metrics, logs and headers.
    pub name: Box<str>,
    /// Where it is.
    pub url: config::Url,
    /// Which of the addresses of that place it is; `None` where it is not told by one.
    pub address: Option<SocketAddr>,
    pub(super) weight: u32,
    /// Shared, as is health, with the forms that this endpoint had before.
    pub(super) in_flight: Arc<AtomicU32>,
    pub(super) health: Option<Arc<Mutex<Health>>>,
    /// How fast it has been, where endpoints are chosen by that.
    pub(super) peak: Option<Arc<Mutex<Peak>>>,
    slow_start: bool,
    pub(super) metrics: EndpointMetrics,
}

impl Endpoint {
    /// The endpoint in its present form; `before` is the one it had in the table before.
    pub(super) fn new(
        (id, address): (usize, Option<SocketAddr>),
        (provider, config): (&config::Provider, &config::Endpoint),
        metrics: EndpointMetrics,
        before: Option<&Self>,
        joined: Option<Instant>,
    ) -> Self {
        let health = provider.health.as_ref();
        Self {
            id,
            name: config.name.as_str().into(),
            url: config.url.clone(),
            address,
            weight: config.weight,
            in_flight: carried(before.map(|before| &before.in_flight), AtomicU32::default),
            health: adopt::health(before, health, joined),
            peak: (provider.balance == config::Balance::PeakEwma)
                .then(|| carried(before.and_then(|before| before.peak.as_ref()), Mutex::default)),
            slow_start: health.is_some_and(|params| params.settings().slow_start.is_some()),
            metrics,
        }
    }

    /// Where its health stands; an endpoint whose health is off is always in.
    pub fn standing(&self, now: Instant) -> Standing {
        self.health()
            .map_or(Standing::Healthy, |health| health.standing(now))
    }

    /// Whether a new attempt may be sent to it now.
    pub(super) fn is_in(&self, now: Instant) -> bool {
        self.weight > 0 && matches!(self.standing(now), Standing::Healthy | Standing::HalfOpen)
    }

    /// Its weight at `now`, on a scale that is the same for all endpoints of its provider.
    pub(super) fn weight_at(&self, now: Instant) -> u32 {
        if !self.slow_start {
            return self.weight;
        }
        let ramp = self.health().map_or(1.0, |health| health.ramp(now));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a million at most"
        )]
        let grown = (f64::from(self.weight) * ramp * 1000.0) as u32;
        grown
    }

    /// What a request more would cost here, where endpoints are chosen by that.
    pub(super) fn cost(&self, now: Instant, candidate: Candidate) -> f64 {
        let peak = self.peak.as_ref().map(|peak| *locked(peak));
        peak.unwrap_or_default().cost(now, candidate)
    }

    /// Learns how fast it was, where endpoints are chosen by that.
    pub(super) fn learn(&self, now: Instant, sample: Sample) {
        let Some(peak) = &self.peak else { return };
        match sample {
            Sample::Committed(latency) => locked(peak).on_latency(now, latency),
            Sample::Failed => locked(peak).on_failure(now),
        }
    }

    /// A probe came to this.
    pub(super) fn on_probe(&self, now: Instant, probed: Probed, ejection: Ejection) -> Option<Transition> {
        self.health()?.on_probe(now, probed, ejection)
    }

    /// Whether its probes are not let in.
    pub(super) fn is_misconfigured(&self) -> bool {
        self.health().is_some_and(|health| health.is_misconfigured())
    }

    /// Asks health for a permit; `Err` when the last half-open slot was taken meanwhile or the endpoint was ejected.
    pub(super) fn acquire(&self, now: Instant) -> Result<Option<Permit>, Unavailable> {
        match self.health() {
            None => Ok(None),
            Some(mut health) => health.acquire(now).map(Some).ok_or(Unavailable),
        }
    }

    /// A permit for an attempt that is sent although the endpoint is out.
    pub(super) fn acquire_fail_open(&self) -> Option<Permit> {
        self.health().map(|health| health.fail_open())
    }

    /// Whether it was ejected after an attempt under `permit` was sent.
    pub(super) fn was_ejected_since(&self, permit: Option<Permit>) -> bool {
        let known = permit.zip(self.health());
        known.is_some_and(|(permit, health)| health.was_ejected_since(permit))
    }

    /// Reports how an attempt under `permit` ended.
    pub(super) fn report(
        &self,
        now: Instant,
        permit: Permit,
        verdict: Verdict,
        ejection: Ejection,
    ) -> Option<Transition> {
        self.health()?.release(now, permit, verdict, ejection)
    }

    /// Reports that the body of a committed attempt ended as it should.
    pub(super) fn report_clean_end(&self, permit: Permit) {
        if let Some(mut health) = self.health() {
            health.clean_end(permit);
        }
    }

    /// Reports that a committed attempt failed after all.
    pub(super) fn report_late_failure(
        &self,
        now: Instant,
        permit: Permit,
        ejection: Ejection,
    ) -> Option<Transition> {
        self.health()?.late_failure(now, permit, ejection)
    }

    /// Takes it out for `span` on what the kernel saw, where the provider can spare it (`allowed`).
    pub(super) fn eject(
        &self,
        now: Instant,
        cause: KernelCause,
        span: Duration,
        allowed: bool,
    ) -> Option<Transition> {
        self.health()?.eject(now, cause, span, allowed)
    }

    /// Takes such an ejection for loss back.
    pub(super) fn withdraw(&self, now: Instant) -> Option<Transition> {
        self.health()?.withdraw(now)
    }

    /// A connection to it was made, which such an ejection waited for.
    pub(super) fn connected(&self, now: Instant) -> Option<Transition> {
        self.health()?.connected(now)
    }

    /// What its health looks like, where that is judged.
    pub(super) fn snapshot(&self, now: Instant) -> Option<Snapshot> {
        Some(self.health()?.snapshot(now))
    }

    /// Attempts in flight.
    pub fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(super) fn health(&self) -> Option<MutexGuard<'_, Health>> {
        self.health.as_deref().map(locked)
    }
}

/// The state of an endpoint that stands so.
pub(super) const fn state_of(standing: Standing) -> State {
    match standing {
        Standing::Healthy => State::Healthy,
        Standing::Ejected { .. } | Standing::Unproven => State::Ejected,
        Standing::HalfOpen | Standing::Probing => State::HalfOpen,
    }
}

/// Sets the state gauges of a provider's endpoints. The addresses of one name share its series: their number in each
/// state is shown.
pub(super) fn publish(endpoints: &[Arc<Endpoint>], now: Instant) {
    for addresses in endpoints.chunk_by(|one, next| one.name == next.name) {
        let [mut healthy, mut ejected, mut half_open] = [0; 3];
        for address in addresses {
            *match state_of(address.standing(now)) {
                State::Healthy => &mut healthy,
                State::Ejected => &mut ejected,
                State::HalfOpen => &mut half_open,
            } += 1;
        }
        let metrics = &addresses[0].metrics;
        metrics.healthy.set(healthy);
        metrics.ejected.set(ejected);
        metrics.half_open.set(half_open);
    }
}

/// Sets the gauges of connections, which the addresses of one name share as well.
pub(super) fn publish_connections(endpoints: &[Arc<Endpoint>], count: impl Fn(usize) -> (usize, usize)) {
    let gauge = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    for addresses in endpoints.chunk_by(|one, next| one.name == next.name) {
        let (mut open, mut idle) = (0, 0);
        for address in addresses {
            let (all, waiting) = count(address.id);
            // They are counted one after the other, and may change in between.
            idle += waiting.min(all);
            open += all;
        }
        let metrics = &addresses[0].metrics;
        metrics.busy_connections.set(gauge(open - idle));
        metrics.idle_connections.set(gauge(idle));
    }
}

fn locked<T>(machine: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic in the machine would have been a bug in one request; its state is still the best there is.
    machine.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The endpoint may not be attempted now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unavailable;

/// Counts and logs a change of an endpoint's state.
pub(super) fn announce(provider: &super::Provider, endpoint: &Endpoint, transition: &Transition) {
    let cause = match (transition.cause, transition.to) {
        (Some(cause), _) => cause_name(cause),
        (None, State::HalfOpen) => "connected",
        (None, _) => "recovered",
    };
    if matches!(transition.to, State::Ejected) {
        endpoint.metrics.ejected_for(cause);
    }
    tracing::info!(
        provider = %provider.name, endpoint = %endpoint.name,
        address = endpoint.address.map(tracing::field::display), from = state_name(transition.from),
        to = state_name(transition.to), cause, "endpoint health changed"
    );
}

/// A state's name in logs, series and answers.
pub(super) fn state_name(state: State) -> &'static str {
    match state {
        State::Ejected => "ejected",
        State::HalfOpen => "half_open",
        State::Healthy => "healthy",
    }
}

/// A cause's name in logs, series and answers.
pub(super) fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Consecutive => "consecutive_failures",
        Cause::HalfOpenFailure => "half_open_failure",
        Cause::Kernel(KernelCause::Loss) => "kernel_loss",
        Cause::Kernel(KernelCause::Refused) => "kernel_refused",
        Cause::Kernel(KernelCause::Reset) => "kernel_reset",
        Cause::Kernel(KernelCause::Unreachable) => "kernel_unreachable",
        Cause::Probe => "probe",
        Cause::Ratio => "failure_ratio",
    }
}

/// All causes an ejection can have, for the series.
pub(super) const CAUSES: [Cause; 8] = [
    Cause::Consecutive,
    Cause::HalfOpenFailure,
    Cause::Kernel(KernelCause::Loss),
    Cause::Kernel(KernelCause::Refused),
    Cause::Kernel(KernelCause::Reset),
    Cause::Kernel(KernelCause::Unreachable),
    Cause::Probe,
    Cause::Ratio,
];
