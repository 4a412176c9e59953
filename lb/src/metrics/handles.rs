//! Handles resolved once, kept beside the thing they count.

use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus::{Gauge, Histogram, IntCounter, IntGauge};

use super::{AttemptOutcome, Gaps, HedgeOutcome, Metrics, RequestOutcome, RetryOutcome, Role};

/// Counts of one name a client can put in `model`.
#[derive(Clone, Debug)]
pub struct ModelMetrics {
    outcomes: [IntCounter; 4],
    /// Clients that left before the end.
    pub cancellations: IntCounter,
    /// Clean ends without a finish event.
    pub incomplete: IntCounter,
    /// Requests whose target of this model is being tried or is streaming.
    pub inflight: IntGauge,
    failovers: [IntCounter; AttemptOutcome::ALL.len()],
    duration: Histogram,
    gaps: Histogram,
    tokens: Option<Tokens>,
}

/// Counts of tokens.
#[derive(Clone, Debug)]
struct Tokens {
    prompt: IntCounter,
    completion: IntCounter,
}

impl ModelMetrics {
    /// The counter of requests that ended so.
    pub fn requests(&self, outcome: RequestOutcome) -> &IntCounter {
        match outcome {
            RequestOutcome::Cancelled => &self.outcomes[0],
            RequestOutcome::Failed => &self.outcomes[1],
            RequestOutcome::Ok => &self.outcomes[2],
            RequestOutcome::Truncated => &self.outcomes[3],
        }
    }

    /// Counts a request that ended so, this long after its head had come.
    pub fn ended(&self, outcome: RequestOutcome, after: Duration) {
        self.requests(outcome).inc();
        self.duration.observe(after.as_secs_f64());
    }

    /// For the gaps between one stream's frames.
    pub fn gaps(&self) -> Gaps {
        Gaps::new(&self.gaps)
    }

    /// Whether tokens are counted.
    pub fn counts_tokens(&self) -> bool {
        self.tokens.is_some()
    }

    /// Counts tokens, where that is wanted.
    pub fn add_tokens(&self, prompt: u64, completion: u64) {
        if let Some(tokens) = &self.tokens {
            tokens.prompt.inc_by(prompt);
            tokens.completion.inc_by(completion);
        }
    }

    /// The counter of switches for this reason.
    pub fn failovers(&self, reason: AttemptOutcome) -> &IntCounter {
        &self.failovers[reason as usize]
    }
}

/// Counts of a model's target.
#[derive(Clone, Debug)]
pub struct LinkMetrics {
    attempts: [IntCounter; AttemptOutcome::ALL.len()],
    /// Streams that failed after commit.
    pub midstream: IntCounter,
    /// Uncensored first-token times.
    pub first_token: Histogram,
    /// Attempts the first-token deadline cut off.
    pub first_token_timeouts: IntCounter,
}

impl LinkMetrics {
    /// The counter of attempts that ended so.
    pub fn attempts(&self, outcome: AttemptOutcome) -> &IntCounter {
        &self.attempts[outcome as usize]
    }
}

/// A controller's series.
#[derive(Clone, Debug)]
pub struct PoolMetrics {
    /// Where the share stands.
    pub share: Gauge,
    /// 1 while it steers.
    pub active: IntGauge,
    /// Outcomes in the window.
    pub window_samples: IntGauge,
    /// Breach rate of the window.
    pub window_breach: Gauge,
    /// Open attempts on the preferred target.
    pub in_flight: IntGauge,
    /// Steps up after a healthy dwell.
    pub up: IntCounter,
    /// Decreases.
    pub down: IntCounter,
    /// Steps of idle recovery.
    pub idle: IntCounter,
    /// Healthy outcomes.
    pub healthy: IntCounter,
    /// Breaches.
    pub breach: IntCounter,
    /// Outcomes that say nothing.
    pub unknown: IntCounter,
    /// Outcomes of an earlier generation.
    pub stale: IntCounter,
    /// Draws that start at the preferred target.
    pub draws_preferred: IntCounter,
    /// Draws that start at an alternate.
    pub draws_alternate: IntCounter,
    /// Breaches by status.
    pub overload: Vec<(u16, IntCounter)>,
}

/// An endpoint's series.
#[derive(Clone, Debug)]
pub struct EndpointMetrics {
    /// Addresses that are healthy.
    pub healthy: IntGauge,
    /// Addresses that are ejected.
    pub ejected: IntGauge,
    /// Addresses that are half-open.
    pub half_open: IntGauge,
    /// Attempts until their body ends.
    pub in_flight: IntGauge,
    /// Connections with requests on them.
    pub busy_connections: IntGauge,
    /// Connections without.
    pub idle_connections: IntGauge,
    ejections: Vec<(&'static str, IntCounter)>,
    probes: [(&'static str, IntCounter); 4],
}

impl EndpointMetrics {
    /// The endpoint is no more: it is in no state, and has no connections that would take a request.
    pub fn clear_state(&self) {
        let connections = [&self.busy_connections, &self.idle_connections];
        for gauge in [&self.healthy, &self.ejected, &self.half_open]
            .into_iter()
            .chain(connections)
        {
            gauge.set(0);
        }
    }

    /// Counts a probe with this result.
    pub fn probed(&self, result: &str) {
        if let Some((_, counter)) = self.probes.iter().find(|(name, _)| *name == result) {
            counter.inc();
        }
    }

    /// Counts an ejection.
    pub fn ejected_for(&self, cause: &str) {
        if let Some((_, counter)) = self.ejections.iter().find(|(name, _)| *name == cause) {
            counter.inc();
        }
    }
}

/// The series of a name whose conversations are told apart.
#[derive(Clone, Debug)]
pub struct ConversationMetrics {
    /// Requests that said which they belong to.
    pub keyed: IntCounter,
    /// Those that did not.
    pub other: IntCounter,
}

/// A provider's series.
#[derive(Clone, Debug)]
pub struct ProviderMetrics {
    /// Attempts sent although all endpoints were out.
    pub fail_open_picks: IntCounter,
    /// Requests that wait for a slot.
    pub pending: IntGauge,
    /// Part of the configured limit that is in force.
    pub rate_limit_factor: Gauge,
    /// The breaker: 0 closed, 1 open, 2 half-open.
    pub breaker: IntGauge,
    /// Wishes to be left alone that were longer than is believed.
    pub retry_after_capped: IntCounter,
    retries: [IntCounter; RetryOutcome::ALL.len()],
    hedges: [IntCounter; HedgeOutcome::ALL.len()],
}

impl ProviderMetrics {
    /// The counter of retries that came to this.
    pub fn retries(&self, outcome: RetryOutcome) -> &IntCounter {
        &self.retries[outcome as usize]
    }

    /// The counter of second attempts beside a slow one that came to this.
    pub fn hedges(&self, outcome: HedgeOutcome) -> &IntCounter {
        &self.hedges[outcome as usize]
    }
}

/// The series of one model's cooldown at one endpoint.
#[derive(Clone, Debug)]
pub struct CooldownMetrics {
    /// Addresses at which it is left alone.
    pub active: IntGauge,
}

impl Metrics {
    /// Counts a request that lb refused before any attempt.
    pub fn refused(&self, code: &'static str) {
        self.requests.refused.with_label_values(&[code]).inc();
    }

    /// The series of a model or preset name.
    pub fn model(&self, name: &str) -> ModelMetrics {
        let outcome = |value: &str| self.requests.total.with_label_values(&[name, value]);
        let counts_usage = self.counts_usage.load(Ordering::Relaxed);
        let tokens = |kind: &str| self.requests.tokens.with_label_values(&[name, kind]);
        ModelMetrics {
            outcomes: [
                outcome("cancelled"),
                outcome("failed"),
                outcome("ok"),
                outcome("truncated"),
            ],
            cancellations: self.requests.cancellations.with_label_values(&[name]),
            incomplete: self.requests.incomplete.with_label_values(&[name]),
            inflight: self.requests.inflight.with_label_values(&[name]),
            failovers: AttemptOutcome::ALL.map(|reason| {
                self.requests
                    .failovers
                    .with_label_values(&[name, reason.as_str()])
            }),
            duration: self.requests.duration.with_label_values(&[name]),
            gaps: self.requests.gaps.with_label_values(&[name]),
            tokens: counts_usage.then(|| Tokens {
                prompt: tokens("prompt"),
                completion: tokens("completion"),
            }),
        }
    }

    /// The series of a name whose conversations are told apart.
    pub fn conversations(&self, name: &str) -> ConversationMetrics {
        let counter = |keyed: &str| self.requests.conversations.with_label_values(&[name, keyed]);
        ConversationMetrics {
            keyed: counter("yes"),
            other: counter("no"),
        }
    }

    /// The series of one target of a pool.
    pub fn link(&self, model: &str, pool: &str, provider: &str, role: Role) -> LinkMetrics {
        let labels = &[model, pool, role.as_str()];
        LinkMetrics {
            attempts: AttemptOutcome::ALL.map(|o| {
                self.attempts
                    .total
                    .with_label_values(&[model, provider, o.as_str()])
            }),
            midstream: self.attempts.midstream.with_label_values(&[model, provider]),
            first_token: self.attempts.first_token.with_label_values(labels),
            first_token_timeouts: self.attempts.first_token_timeouts.with_label_values(labels),
        }
    }

    /// The series of a pool's controller.
    pub fn pool(&self, model: &str, pool: &str, overload_statuses: &[u16]) -> PoolMetrics {
        let labels = &[model, pool];
        let sample = |outcome: &str| self.aimd.samples.with_label_values(&[model, pool, outcome]);
        let adjustment = |direction: &str| self.aimd.adjustments.with_label_values(&[model, pool, direction]);
        let draw = |start: &str| self.aimd.draws.with_label_values(&[model, pool, start]);
        let overload = |status: &u16| {
            (
                *status,
                self.aimd
                    .overload_breaches
                    .with_label_values(&[model, pool, status.to_string().as_str()]),
            )
        };
        PoolMetrics {
            share: self.aimd.share.with_label_values(labels),
            active: self.aimd.active.with_label_values(labels),
            window_samples: self.aimd.window_samples.with_label_values(labels),
            window_breach: self.aimd.window_breach.with_label_values(labels),
            in_flight: self.aimd.in_flight.with_label_values(labels),
            up: adjustment("up"),
            down: adjustment("down"),
            idle: adjustment("idle"),
            healthy: sample("healthy"),
            breach: sample("breach"),
            unknown: sample("unknown"),
            stale: sample("stale"),
            draws_preferred: draw("preferred"),
            draws_alternate: draw("alternate"),
            overload: overload_statuses.iter().map(overload).collect(),
        }
    }

    /// The series of an endpoint; `causes` are all causes an ejection can have.
    pub fn endpoint(&self, provider: &str, endpoint: &str, causes: &[&'static str]) -> EndpointMetrics {
        let state = |state: &str| {
            self.endpoints
                .state
                .with_label_values(&[provider, endpoint, state])
        };
        let connections = |state: &str| {
            let labels = &[provider, endpoint, state];
            self.endpoints.connections.with_label_values(labels)
        };
        EndpointMetrics {
            busy_connections: connections("busy"),
            idle_connections: connections("idle"),
            healthy: state("healthy"),
            ejected: state("ejected"),
            half_open: state("half_open"),
            in_flight: self.endpoints.in_flight.with_label_values(&[provider, endpoint]),
            probes: ["bad", "good", "misconfigured", "timeout"].map(|result| {
                let labels = &[provider, endpoint, result];
                (result, self.endpoints.probes.with_label_values(labels))
            }),
            ejections: causes
                .iter()
                .map(|cause| {
                    (
                        *cause,
                        self.endpoints
                            .ejections
                            .with_label_values(&[provider, endpoint, cause]),
                    )
                })
                .collect(),
        }
    }

    /// The series of a provider.
    pub fn provider(&self, provider: &str) -> ProviderMetrics {
        ProviderMetrics {
            fail_open_picks: self.endpoints.fail_open.with_label_values(&[provider]),
            pending: self.endpoints.pending.with_label_values(&[provider]),
            rate_limit_factor: self.endpoints.rate_limit_factor.with_label_values(&[provider]),
            breaker: self.endpoints.breaker.with_label_values(&[provider]),
            retry_after_capped: self.endpoints.retry_after_capped.with_label_values(&[provider]),
            hedges: HedgeOutcome::ALL.map(|outcome| {
                self.endpoints
                    .hedges
                    .with_label_values(&[provider, outcome.as_str()])
            }),
            retries: RetryOutcome::ALL.map(|outcome| {
                self.endpoints
                    .retries
                    .with_label_values(&[provider, outcome.as_str()])
            }),
        }
    }

    /// The series of `model`, as `provider` calls it, at one of its endpoints.
    pub fn cooldown(&self, model: &str, provider: &str, endpoint: &str) -> CooldownMetrics {
        CooldownMetrics {
            active: self
                .endpoints
                .cooldown
                .with_label_values(&[model, provider, endpoint]),
        }
    }
}
