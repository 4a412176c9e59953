//! Which models are left alone at which endpoints: one registry for the whole process.
//!
//! An entry is about a model as its provider knows it, at one endpoint. Every model and preset that reaches the two, and
//! has cooldowns on, has the same entry. Most are clear at most times, and then asking takes one load.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::endpoint::Endpoint;
use crate::config::Url;
use crate::metrics::{AttemptOutcome, CooldownMetrics, Metrics};
use crate::policy::cooldown::{Cooldown, Probe, Standing};
use crate::policy::time::{Instant, millis};

/// Every entry that a chain of the table has, in order of definition.
#[derive(Debug, Default)]
pub(super) struct Cooldowns(pub(super) Vec<Arc<Entry>>);

/// One model at one endpoint.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) model: Box<str>,
    pub(super) provider: Box<str>,
    pub(super) endpoint: Box<str>,
    url: Url,
    pub(super) address: Option<SocketAddr>,
    state: Mutex<State>,
    /// 0 while clear, else when it has cooled, in nanoseconds.
    until: AtomicU64,
    metrics: CooldownMetrics,
}

#[derive(Debug, Default)]
struct State {
    machine: Cooldown,
    /// What cooled it last, and for which name.
    latest: Option<(AttemptOutcome, Box<str>)>,
}

/// What an entry is, for people.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) standing: Standing,
    pub(super) reason: &'static str,
    pub(super) by: Box<str>,
}

/// The one request that tries an entry which has cooled; dropped, it makes room for another.
#[derive(Debug)]
pub(super) struct Probing {
    entry: Arc<Entry>,
    probe: Probe,
}

impl Cooldowns {
    /// The entry of `model` at `endpoint`: the one that this table has, or that the table before had, or a new one.
    pub(super) fn entry(
        &mut self,
        before: Option<&Self>,
        (model, provider): (&str, &str),
        endpoint: &Endpoint,
        metrics: &Metrics,
    ) -> Arc<Entry> {
        let is_it = |entry: &&Arc<Entry>| {
            *entry.model == *model
                && *entry.provider == *provider
                && entry.url == endpoint.url
                && entry.address == endpoint.address
        };
        if let Some(known) = self.0.iter().find(is_it) {
            return Arc::clone(known);
        }
        let kept = before.and_then(|before| before.0.iter().find(is_it));
        let kept = kept.filter(|kept| kept.endpoint == endpoint.name).cloned();
        let entry = kept.unwrap_or_else(|| {
            Arc::new(Entry {
                model: model.into(),
                provider: provider.into(),
                endpoint: endpoint.name.clone(),
                url: endpoint.url.clone(),
                address: endpoint.address,
                state: Mutex::default(),
                until: AtomicU64::new(0),
                metrics: metrics.cooldown(model, provider, &endpoint.name),
            })
        });
        self.0.push(Arc::clone(&entry));
        entry
    }

    /// Takes leave of the entries that `next` does not have: their series say that it is over.
    pub(super) fn retire(&self, next: &Self) {
        for entry in &self.0 {
            let kept = next.0.iter().any(|other| other.names() == entry.names());
            if !kept {
                entry.metrics.active.set(0);
            }
        }
    }

    /// Sets the gauges to the present: the addresses of one name share a series, which has how many of them cool.
    pub(super) fn publish(&self, now: Instant) {
        let mut cooling = BTreeMap::new();
        for entry in &self.0 {
            let (count, _) = cooling.entry(entry.names()).or_insert((0, &entry.metrics.active));
            *count += i64::from(entry.until.load(Ordering::Relaxed) > now.as_nanos());
        }
        for (count, gauge) in cooling.into_values() {
            gauge.set(count);
        }
    }
}

impl Entry {
    fn names(&self) -> (&str, &str, &str) {
        (&self.model, &self.provider, &self.endpoint)
    }

    /// Whether it is to be passed over at `now`.
    pub(super) fn is_cooling(&self, now: Instant) -> bool {
        match self.until.load(Ordering::Relaxed) {
            0 => false,
            until if now.as_nanos() < until => true,
            _ => self.with(|state| state.machine.standing(now) == Standing::Probing),
        }
    }

    /// The right to be the one that tries it, if it has cooled.
    pub(super) fn acquire(self: &Arc<Self>, now: Instant) -> Option<Probing> {
        if self.until.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let probe = self.with(|state| state.machine.acquire(now))?;
        Some(Probing {
            entry: Arc::clone(self),
            probe,
        })
    }

    /// Leaves it alone for `span`, for what an attempt of `chain` came to.
    pub(super) fn cool(&self, now: Instant, span: Duration, reason: AttemptOutcome, chain: &str) {
        let until = self.with(|state| {
            state.latest = Some((reason, chain.into()));
            state.machine.cool(now, span)
        });
        tracing::info!(
            upstream_model = %self.model, provider = %self.provider, endpoint = %self.endpoint,
            address = self.address.map(tracing::field::display), by = chain, reason = reason.as_str(), for_ms = millis(until.since(now)), "cooling down"
        );
    }

    /// An attempt that was begun at `begun` succeeded.
    pub(super) fn succeed(&self, begun: Instant) {
        if self.until.load(Ordering::Relaxed) == 0 || !self.with(|state| state.machine.succeed(begun)) {
            return;
        }
        tracing::info!(
            upstream_model = %self.model, provider = %self.provider, endpoint = %self.endpoint,
            address = self.address.map(tracing::field::display), "cooldown cleared"
        );
    }

    /// What it is at `now`, unless it is clear.
    pub(super) fn seen(&self, now: Instant) -> Option<Seen> {
        self.with(|state| {
            let (reason, by) = state.latest.clone()?;
            let standing = state.machine.standing(now);
            (standing != Standing::Clear).then(|| Seen {
                standing,
                reason: reason.as_str(),
                by,
            })
        })
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        // A panic in the machine would have been a bug in one request; its state is still the best there is.
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = f(&mut state);
        let until = state.machine.until().map_or(0, Instant::as_nanos);
        self.until.store(until, Ordering::Relaxed);
        answer
    }
}

impl Drop for Probing {
    fn drop(&mut self) {
        self.entry.with(|state| state.machine.give_back(self.probe));
    }
}
