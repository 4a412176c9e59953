//! A provider's circuit breaker where requests pass it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::metrics::ProviderMetrics;
use crate::policy::breaker::{Breaker, Cause, Params, Permit, Snapshot, Standing, Transition};
use crate::policy::time::Instant;

/// The breaker of one provider. While it is closed, which it nearly always is, passing it takes no lock.
#[derive(Debug)]
pub(super) struct Gate {
    breaker: Mutex<Breaker>,
    /// One above the era while it is closed, else 0; a copy for those who only want to pass.
    closed: AtomicU64,
    /// Whether a clean end would change anything.
    run: AtomicBool,
}

impl Gate {
    /// The gate of a provider that nothing is known about: open to all.
    pub(super) fn new(params: Params) -> Self {
        Self {
            breaker: Mutex::new(Breaker::new(params)),
            closed: AtomicU64::new(1),
            run: AtomicBool::new(false),
        }
    }

    /// Takes other settings on at once, and keeps what was learned.
    pub(super) fn set_params(&self, params: &Params) {
        self.with(|breaker| {
            if breaker.params() != params {
                breaker.set_params(params.clone());
            }
        });
    }

    /// When another request may pass, if none may at `now`.
    pub(super) fn refuses(&self, now: Instant) -> Option<Instant> {
        if self.closed.load(Ordering::Relaxed) > 0 {
            return None;
        }
        match self.with(|breaker| breaker.standing(now)) {
            Standing::Closed | Standing::HalfOpen => None,
            Standing::Open { until } => Some(until),
            Standing::Probing => Some(now),
        }
    }

    /// The permit to pass; `None` where it is refused.
    pub(super) fn acquire(&self, now: Instant) -> Option<Permit> {
        // An era that has just ended gives a permit that changes nothing, like one taken a moment earlier.
        match self.closed.load(Ordering::Relaxed).checked_sub(1) {
            Some(era) => Some(Permit::ordinary(era)),
            None => self.with(|breaker| breaker.acquire(now)),
        }
    }

    /// Reports that the body of a committed attempt ended as it should.
    pub(super) fn clean_end(&self, permit: Permit) {
        if self.run.load(Ordering::Relaxed) {
            self.with(|breaker| breaker.clean_end(permit));
        }
    }

    /// What it looks like at `now`.
    pub(super) fn snapshot(&self, now: Instant) -> Snapshot {
        self.with(|breaker| breaker.snapshot(now))
    }

    /// Has the breaker to itself.
    pub(super) fn with<T>(&self, f: impl FnOnce(&mut Breaker) -> T) -> T {
        // A panic in the machine would have been a bug in one request; its state is still the best there is.
        let mut breaker = self.breaker.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = f(&mut breaker);
        let closed = breaker.closed_era().map_or(0, |era| era + 1);
        self.closed.store(closed, Ordering::Relaxed);
        self.run.store(breaker.has_run(), Ordering::Relaxed);
        answer
    }
}

/// Logs a change of a provider's breaker, and shows it.
pub(super) fn announce(provider: &str, metrics: &ProviderMetrics, transition: &Transition, now: Instant) {
    match *transition {
        Transition::Closed => {
            metrics.breaker.set(0);
            tracing::info!(provider, from = "half_open", to = "closed", "breaker changed");
        }
        Transition::Opened { cause, until } => {
            metrics.breaker.set(1);
            let from = if cause == Cause::HalfOpenFailure {
                "half_open"
            } else {
                "closed"
            };
            let for_ms = until.since(now).as_millis();
            tracing::warn!(
                provider,
                from,
                to = "open",
                cause = cause_name(cause),
                for_ms,
                "breaker changed"
            );
        }
    }
}

/// The value of `lb_breaker_state`.
pub(super) fn number(standing: Standing) -> i64 {
    match standing {
        Standing::Closed => 0,
        Standing::Open { .. } => 1,
        Standing::HalfOpen | Standing::Probing => 2,
    }
}

/// A state's name in answers.
pub(super) fn state_name(standing: Standing) -> &'static str {
    match standing {
        Standing::Closed => "closed",
        Standing::Open { .. } => "open",
        Standing::HalfOpen | Standing::Probing => "half_open",
    }
}

/// A cause's name in logs and answers.
pub(super) fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Consecutive => "consecutive_failures",
        Cause::HalfOpenFailure => "half_open_failure",
        Cause::Ratio => "failure_ratio",
    }
}
