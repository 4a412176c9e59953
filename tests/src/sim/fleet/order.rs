//! Whether what lb chose was the best there was, by a reading of its public state.

use std::sync::Arc;

use lb::policy::health::Standing;
use lb::policy::time::Instant;
use lb::upstream::{Attempt, Chain, Link, ProviderState, State};

use super::flight::Way;
use super::ledger::Ledger;

/// How everything stood before a choice.
pub(super) struct Before {
    pub(super) state: State,
    pub(super) now: Instant,
    /// The endpoints of each link's provider.
    standings: Vec<Vec<Standing>>,
}

/// What a target is good for; a better one comes first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Class {
    Ready,
    /// Ready or cooling: which of the two only lb knows.
    Either,
    Cooling,
    /// Every endpoint is out, and fail-open allowed.
    Out,
    /// Nothing that can be told from outside.
    Unknown,
    /// It cannot be attempted.
    No,
}

impl Before {
    pub(super) fn new(chain: &Chain, state: State, now: Instant) -> Self {
        let endpoints = |link: &Link| {
            let all = link.provider.endpoints.iter();
            all.map(|endpoint| endpoint.standing(now)).collect()
        };
        Self {
            standings: chain.links.iter().map(endpoints).collect(),
            state,
            now,
        }
    }

    pub(super) fn provider(&self, name: &str) -> Option<&ProviderState> {
        self.state.providers.iter().find(|provider| provider.name == name)
    }

    /// Where the endpoint of `attempt` stood.
    pub(super) fn standing(&self, attempt: &Attempt) -> Standing {
        let endpoints = attempt.link().provider.endpoints.iter();
        let standings = &self.standings[attempt.place()];
        let mut both = endpoints.zip(standings);
        both.find(|(endpoint, _)| endpoint.id == attempt.claim().endpoint.id)
            .map_or(Standing::Healthy, |(_, standing)| *standing)
    }

    /// What `link`, in this place of its chain, was good for.
    pub(super) fn class(&self, chain: &Chain, place: usize, way: &Way, ledger: &Ledger) -> Class {
        let link = &chain.links[place];
        let Some(state) = self.provider(&link.provider.name) else {
            return Class::Unknown;
        };
        // A visit to where an earlier pass has been is paid for.
        let is_paid_for = way.passes == 0 || state.retries.allowed;
        if !is_paid_for || self.is_barred(link, state, ledger) {
            return Class::No;
        }
        let places = self.places_in(link, place);
        if places.is_empty() && !link.provider.config.fail_open {
            return Class::No;
        }
        match self.has_room(link, state, way) {
            None => Class::Unknown,
            Some(false) => Class::No,
            Some(true) => {
                let cooling = places.iter().map(|endpoint| self.cooling(chain, link, *endpoint));
                cooling.min().unwrap_or(Class::Out)
            }
        }
    }

    /// Whether a request could wait for a slot of `link`'s provider, and lacks nothing else there.
    pub(super) fn may_queue(&self, chain: &Chain, place: usize, way: &Way, ledger: &Ledger) -> bool {
        let link = &chain.links[place];
        let Some(state) = self.provider(&link.provider.name) else {
            return false;
        };
        let is_usable = !self.places_in(link, place).is_empty() || link.provider.config.fail_open;
        let has_no_slot = state
            .concurrency
            .is_some_and(|limit| state.in_flight >= limit || state.pending > 0);
        let limit = state.rate_limit.as_ref();
        let has_rate = limit
            .is_none_or(|limit| limit.factor.is_none() && limit.tokens.is_none_or(|tokens| tokens >= 1.0));
        let has_queue = state.pending < link.provider.config.pending.max;
        is_usable
            && has_no_slot
            && has_rate
            && has_queue
            && self.model_has_room(link, way)
            && !self.is_barred(link, state, ledger)
    }

    fn is_barred(&self, link: &Link, state: &ProviderState, ledger: &Ledger) -> bool {
        let Some(breaker) = &state.breaker else {
            return false;
        };
        let slots = link
            .provider
            .config
            .breaker
            .as_ref()
            .map_or(0, |params| params.settings().half_open_probes);
        match breaker.state {
            "closed" => false,
            "open" => true,
            _ => ledger
                .breaker_probes
                .get(&link.provider.name)
                .is_some_and(|probes| probes.are_all_taken(self.now, slots)),
        }
    }

    /// The endpoints that a request may be sent to, by their place.
    fn places_in(&self, link: &Link, place: usize) -> Vec<usize> {
        let standings = self.standings[place].iter().enumerate();
        let weights = &link.provider.config.endpoints;
        standings
            .filter(|(endpoint, standing)| weights[*endpoint].weight > 0 && is_in(**standing))
            .map(|(endpoint, _)| endpoint)
            .collect()
    }

    /// Whether provider and model take one more; `None` where that follows from what cannot be read.
    fn has_room(&self, link: &Link, state: &ProviderState, way: &Way) -> Option<bool> {
        let limit = state.rate_limit.as_ref();
        if limit.is_some_and(|limit| limit.factor.is_some()) {
            return None;
        }
        let slots = state
            .concurrency
            .is_none_or(|limit| state.in_flight < limit && state.pending == 0);
        let rate = limit.is_none_or(|limit| limit.tokens.is_none_or(|tokens| tokens >= 1.0));
        Some(slots && rate && self.model_has_room(link, way))
    }

    fn model_has_room(&self, link: &Link, way: &Way) -> bool {
        let name = &link.model.config.name;
        if way.model.as_deref() == Some(name) {
            return true;
        }
        let model = self.state.models.iter().find(|model| model.name == *name);
        model
            .and_then(|model| model.limits.as_ref())
            .is_none_or(|limits| {
                let most = link.model.config.concurrency;
                (most == 0 || limits.in_flight < most) && limits.tokens.is_none_or(|tokens| tokens >= 1.0)
            })
    }

    /// Whether the model of `link` cools at that endpoint.
    fn cooling(&self, chain: &Chain, link: &Link, endpoint: usize) -> Class {
        // Presets have cooldowns on in every story, models where they say so.
        let is_preset = *chain.name != *link.model.config.name;
        if !is_preset && link.model.config.cooldown.is_none() {
            return Class::Ready;
        }
        let known_as = link.upstream_model.as_deref().unwrap_or(&link.model.config.name);
        let name = &*link.provider.endpoints[endpoint].name;
        let entry = self.state.cooldowns.iter().find(|entry| {
            entry.upstream_model == *known_as
                && entry.provider == *link.provider.name
                && entry.endpoint == name
        });
        match entry.map(|entry| entry.state) {
            None => Class::Ready,
            Some("cooling") => Class::Cooling,
            Some(_) => Class::Either,
        }
    }

    /// What the choice of `attempt` was worth.
    pub(super) fn chosen(&self, chain: &Chain, attempt: &Attempt) -> Class {
        let link = attempt.link();
        if !is_in(self.standing(attempt)) {
            return Class::Out;
        }
        let mut endpoints = link.provider.endpoints.iter();
        let place = endpoints.position(|endpoint| endpoint.id == attempt.claim().endpoint.id);
        place.map_or(Class::Unknown, |place| self.cooling(chain, link, place))
    }

    /// What of the other targets, or of the same, would have been better than `attempt`.
    pub(super) fn better(
        &self,
        chain: &Arc<Chain>,
        attempt: &Attempt,
        way: &Way,
        ledger: &Ledger,
    ) -> Option<String> {
        let chosen = self.chosen(chain, attempt);
        let beats = |class: Class| match chosen {
            Class::Out => class <= Class::Cooling,
            Class::Cooling => class == Class::Ready,
            _ => false,
        };
        let own = self.class(chain, attempt.place(), way, ledger);
        if beats(own) {
            return Some(format!(
                "an endpoint is {chosen:?} where its provider has one that is {own:?}"
            ));
        }
        let may_go_on = way.visits < most_visits(chain);
        let mut others = (0..chain.links.len()).filter(|place| may_go_on && !way.visited.contains(place));
        let better = others.find(|place| beats(self.class(chain, *place, way, ledger)))?;
        let name = &chain.links[better].provider.name;
        Some(format!(
            "a target is tried that is {chosen:?} while {name} could be attempted"
        ))
    }
}

/// Visits to targets that one request may make.
pub(super) fn most_visits(chain: &Chain) -> u32 {
    let all = u32::try_from(chain.links.len()).unwrap_or(u32::MAX);
    chain.links.first().map_or(0, |first| {
        let fallback = &first.model.config.fallback;
        if fallback.enabled {
            fallback.max_attempts.unwrap_or(all)
        } else {
            1
        }
    })
}

pub(super) fn is_in(standing: Standing) -> bool {
    matches!(standing, Standing::Healthy | Standing::HalfOpen)
}
