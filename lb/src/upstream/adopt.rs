//! What of the table before lives on in the next one.
//!
//! Whatever was learned is about something: a health about an address of a provider, a count of slots about a
//! provider, a share about a preferred target under certain rules. It is kept exactly as long as that stays the same
//! thing, and it is *shared*, never copied: a stream that began under an older table frees the slot, and judges the
//! endpoint, of the newer one. Where the thing is another one, the state starts fresh in an object of its own, which no
//! late result of the older one can reach.
//!
//! | learned | identity | a changed parameter |
//! |---|---|---|
//! | slots, breaker and retry budget of a provider | its name | counts at once |
//! | who waits for a slot, levels of buckets, factors of limits | the provider's or the model's name | counts at once |
//! | health, load and latency of an endpoint | the provider's name, the endpoint's URL and its address | counts at once |
//! | the cooldown of a model | upstream model, the provider's name, the endpoint's name and URL | |
//! | load of a target | model, pool, provider, upstream model | |
//! | a share | [`Preferred`], the controller's parameters, the model's own deadline | another share |
//!
//! An endpoint goes by its URL because the name that it has by default is its place in the list.
//!
//! A share whose preferred target cannot be tried for now, or has nobody to share with, is *parked*: it is not in use,
//! and comes back with the target. One that is about nothing any more is *retired*: it hears no more of its attempts
//! than that they are over.
//!
//! Everything here has effects on what is shared, so it runs when nothing can go wrong any more.

use std::net::SocketAddr;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::chain::Model;
use super::cooldowns::Cooldowns;
use super::endpoint::Endpoint;
use super::gate::Gate;
use super::pool::{Controller, Pool};
use super::provider::Provider;
use super::purse::Purse;
use super::table::Table;
use crate::config::{self, ApiKey, Url};
use crate::policy::health::{self, Health};
use crate::policy::time::Instant;
use crate::policy::{aimd, breaker, budget};

/// The table before, asked by identity; at the start there is none.
#[derive(Clone, Copy)]
pub(super) struct Before<'a>(pub(super) Option<&'a Table>);

impl<'a> Before<'a> {
    /// The provider of this name.
    pub(super) fn provider(self, name: &str) -> Option<&'a Arc<Provider>> {
        let mut all = self.0?.providers.iter();
        all.find(|provider| *provider.name == *name)
    }

    /// The endpoint of that provider under this URL, at this address.
    pub(super) fn endpoint(
        self,
        provider: &str,
        url: &Url,
        address: Option<SocketAddr>,
    ) -> Option<&'a Arc<Endpoint>> {
        let mut all = self.provider(provider)?.endpoints.iter();
        all.find(|endpoint| endpoint.url == *url && endpoint.address == address)
    }

    /// The model of this name.
    pub(super) fn model(self, name: &str) -> Option<&'a Arc<Model>> {
        let mut all = self.0?.models.iter();
        all.find(|model| model.config.name == name)
    }

    /// All cooldowns.
    pub(super) fn cooldowns(self) -> Option<&'a Cooldowns> {
        self.0.map(|table| &table.cooldowns)
    }

    /// The pool of this name of that model.
    pub(super) fn pool(self, model: &str, name: &str) -> Option<&'a Arc<Pool>> {
        let mut all = self.0?.pools.iter();
        all.find(|pool| *pool.model == *model && *pool.name == *name)
    }
}

/// What `before` has, or something new.
pub(super) fn carried<T>(before: Option<&Arc<T>>, fresh: impl FnOnce() -> T) -> Arc<T> {
    before.map_or_else(|| Arc::new(fresh()), Arc::clone)
}

/// The health of an endpoint, by the settings that hold from now on; `None` where it is off.
///
/// `joined` is when it came to be, where that was beside others. One that was off knows nothing, so it starts fresh: permits of the time before must not be mistaken for its own.
pub(super) fn health(
    before: Option<&Endpoint>,
    params: Option<&health::Params>,
    joined: Option<Instant>,
) -> Option<Arc<Mutex<Health>>> {
    let params = params?;
    let Some(shared) = before.and_then(|endpoint| endpoint.health.as_ref()) else {
        let fresh = Health::new(params.clone());
        return Some(Arc::new(Mutex::new(match joined {
            Some(now) => fresh.joined(now),
            None => fresh,
        })));
    };
    let mut health = shared.lock().unwrap_or_else(PoisonError::into_inner);
    if health.params() != params {
        health.set_params(params.clone());
    }
    Some(Arc::clone(shared))
}

/// The breaker of a provider, by the settings that hold from now on; `None` where it is off, which forgets.
pub(super) fn gate(before: Option<&Provider>, params: Option<&breaker::Params>) -> Option<Arc<Gate>> {
    let params = params?;
    let Some(shared) = before.and_then(|provider| provider.gate.as_ref()) else {
        return Some(Arc::new(Gate::new(params.clone())));
    };
    shared.set_params(params);
    Some(Arc::clone(shared))
}

/// The retry budget of a provider, by the settings that hold from now on.
pub(super) fn purse(before: Option<&Provider>, params: budget::Params) -> Arc<Purse> {
    let purse = carried(before.map(|provider| &provider.purse), || Purse::new(params));
    purse.set_params(params);
    purse
}

/// A target as far as a share is about it.
#[derive(Clone, Debug)]
pub(super) struct Preferred {
    provider: Box<str>,
    upstream_model: Option<Box<str>>,
    /// Where the key comes from, and the key itself only if it stands in the configuration: one that is rotated in its
    /// file is the same.
    key: Option<ApiKey>,
    urls: Vec<Url>,
}

impl Preferred {
    pub(super) fn new(target: &config::Target, provider: &config::Provider) -> Self {
        Self {
            provider: provider.name.as_str().into(),
            upstream_model: target.upstream_model.as_deref().map(Into::into),
            key: provider.api_key.clone(),
            urls: provider
                .endpoints
                .iter()
                .map(|endpoint| endpoint.url.clone())
                .collect(),
        }
    }

    /// Whether `other` is the same target in another form: of its endpoints at least one is still there.
    fn is(&self, other: &Self) -> bool {
        self.provider == other.provider
            && self.upstream_model == other.upstream_model
            && self.key == other.key
            && self.urls.iter().any(|url| other.urls.contains(url))
    }

    /// What the load of the target is counted under.
    pub(super) fn key(&self) -> TargetKey {
        (self.provider.clone(), self.upstream_model.clone())
    }
}

/// A target within its pool.
pub(super) type TargetKey = (Box<str>, Option<Box<str>>);

/// A pool in its next form, as far as its share goes.
pub(super) struct Form<'a> {
    /// `None` where the pool can have no controller by its configuration.
    pub(super) params: Option<&'a aimd::Params>,
    /// What the model itself says of the first-token deadline.
    pub(super) deadline: Option<Duration>,
    /// All targets in definition order, and whether each can be tried: it and its provider are enabled, and an endpoint
    /// has a weight.
    pub(super) targets: &'a [(Preferred, bool)],
}

/// A controller and what it has learned about.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    pub(super) controller: Arc<Controller>,
    preferred: Preferred,
    deadline: Option<Duration>,
}

/// The controllers of a pool.
#[derive(Debug, Default)]
pub(super) struct Controllers {
    /// The one in use, if any.
    pub(super) steering: Option<Kept>,
    /// Those whose target may come back.
    pub(super) parked: Vec<Kept>,
}

impl Controllers {
    /// What becomes of these in the pool's next form; `fresh` makes a new controller where one is needed.
    pub(super) fn adopt(
        before: Option<&Self>,
        form: &Form<'_>,
        now: Instant,
        fresh: impl FnOnce(&aimd::Params) -> Controller,
    ) -> Self {
        let first = form.targets.iter().position(|(_, available)| *available);
        let available = form.targets.iter().filter(|(_, available)| *available).count();
        let mut next = Self::default();
        for kept in before.into_iter().flat_map(Self::all) {
            let preferred = |place: &usize| first.is_none_or(|first| *place <= first);
            let Some(place) = form.place_of(kept).filter(preferred) else {
                kept.controller.retire(now);
                continue;
            };
            let kept = Kept {
                // Endpoints come and go one by one; the latest form is what the next one is compared with.
                preferred: form.targets[place].0.clone(),
                ..kept.clone()
            };
            if Some(place) == first && available >= 2 {
                kept.controller.resume(now);
                next.steering = Some(kept);
            } else {
                kept.controller.park(now);
                next.parked.push(kept);
            }
        }
        if let (Some(first), Some(params), None) = (first, form.params, &next.steering)
            && available >= 2
        {
            next.steering = Some(Kept {
                controller: Arc::new(fresh(params)),
                preferred: form.targets[first].0.clone(),
                deadline: form.deadline,
            });
        }
        next
    }

    /// The one that is shown to people: the one in use, else one that waits.
    pub(super) fn shown(&self) -> Option<&Arc<Controller>> {
        self.all().next().map(|kept| &kept.controller)
    }

    /// The one in use first.
    fn all(&self) -> impl Iterator<Item = &Kept> {
        self.steering.iter().chain(&self.parked)
    }
}

impl Form<'_> {
    /// Which of the targets the controller has learned about, if its rules are still in force.
    fn place_of(&self, kept: &Kept) -> Option<usize> {
        let same_rules = self.params == Some(kept.controller.params()) && self.deadline == kept.deadline;
        let place = || {
            self.targets
                .iter()
                .position(|(target, _)| target.is(&kept.preferred))
        };
        same_rules.then(place).flatten()
    }
}

/// Takes leave of what `after` has no place for: its series say that it is over.
pub(super) fn retire(before: Before<'_>, after: &Table, now: Instant) {
    let Some(table) = before.0 else { return };
    let next = Before(Some(after));
    for pool in &table.pools {
        if next.pool(&pool.model, &pool.name).is_none() {
            for kept in pool.controllers.all() {
                kept.controller.retire(now);
            }
        }
    }
    table.cooldowns.retire(&after.cooldowns);
    for provider in &table.providers {
        if next.provider(&provider.name).is_none() {
            provider.metrics.breaker.set(0);
        }
        for endpoint in &provider.endpoints {
            let known = next.provider(&provider.name).is_some_and(|provider| {
                let mut names = provider.endpoints.iter().map(|endpoint| &endpoint.name);
                names.any(|name| *name == endpoint.name)
            });
            if !known {
                endpoint.metrics.clear_state();
            }
        }
    }
}

/// The load of each target of a pool.
pub(super) type Loads = Vec<(TargetKey, Arc<AtomicU32>)>;

/// The load of each of `targets`, which may be held by attempts that began under the form before.
pub(super) fn loads(before: Option<&Pool>, targets: &[(Preferred, bool)]) -> Loads {
    let known = |key: &TargetKey| {
        let mut all = before?.loads.iter();
        all.find(|(known, _)| known == key).map(|(_, load)| load)
    };
    let one = |(target, _): &(Preferred, bool)| {
        let key = target.key();
        let load = carried(known(&key), AtomicU32::default);
        (key, load)
    };
    targets.iter().map(one).collect()
}

#[cfg(test)]
mod tests;
