//! What a name in `model` leads to: targets in the order in which they are tried.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::admission::Limits;
use super::cooldowns::Entry;
use super::pool::Pool;
use super::provider::Provider;
use crate::config;
use crate::metrics::{ConversationMetrics, Gaps, LinkMetrics, ModelMetrics, Role};
use crate::policy::cascade::{self, Standing};
use crate::policy::outcome::StatusSet;
use crate::policy::select::Candidate;
use crate::policy::time::Instant;

/// A model's or a preset's cascade. A preset's is its model's targets followed by those of its fallbacks' models.
#[derive(Debug)]
pub struct Chain {
    /// The name clients send.
    pub name: Box<str>,
    /// All targets, pool after pool.
    pub links: Vec<Link>,
    /// The pools' sizes and strategies, as the cascade wants them.
    pub(super) pools: Arc<[cascade::Pool]>,
    pub(super) on_status: StatusSet,
    pub(super) realtime_on_status: StatusSet,
    pub(super) max_attempts: u32,
    /// Whether a provider is tried again within one visit; a preset only goes on to the next target.
    pub(super) retries: bool,
    /// Longest time from the first attempt's start to the commit.
    pub total_deadline: Option<Duration>,
    /// Counts of requests by this name.
    pub metrics: ModelMetrics,
    /// The same by whether they said which conversation they belong to, where that is asked for.
    pub(super) conversations: Option<ConversationMetrics>,
    /// Continuation pools by the exact paths that use them.
    pub(super) named: Vec<(Vec<Box<str>>, Arc<Self>)>,
}

/// A target in its place: with the timers and the model under which it is tried here.
#[derive(Debug)]
pub struct Link {
    /// The service.
    pub provider: Arc<Provider>,
    /// The name the provider knows the model by; `None` sends the client's own.
    pub upstream_model: Option<Box<str>>,
    /// Its place in its pool.
    pub role: Role,
    /// The pool it belongs to.
    pub pool: Arc<Pool>,
    /// The model whose target it is.
    pub model: Arc<Model>,
    /// The timers of an attempt on it.
    pub timers: Timers,
    /// The preset that answers by this target, where that is a fallback and not the one that was asked for.
    pub fallback: Option<Fallback>,
    pub(super) weight: u32,
    pub(super) in_flight: Arc<AtomicU32>,
    pub(super) metrics: LinkMetrics,
    /// How long its model is left alone at an endpoint where it could not answer.
    pub(super) cooldown: Duration,
    /// The cooldown at each endpoint of the provider, in its order; empty where cooldowns are off.
    pub(super) entries: Vec<Arc<Entry>>,
}

/// A preset that stands in for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// Its name.
    pub preset: Box<str>,
    /// How its answers say so.
    pub notice: config::Notice,
}

/// What holds for all streams of a model.
#[derive(Debug)]
pub struct Model {
    /// Its configuration.
    pub config: config::Model,
    pub(super) metrics: ModelMetrics,
    pub(super) limits: Option<Limits>,
}

impl Model {
    /// For the gaps between one stream's frames.
    pub fn gaps(&self) -> Gaps {
        self.metrics.gaps()
    }

    /// Whether the tokens of its answers are counted.
    pub fn counts_tokens(&self) -> bool {
        self.metrics.counts_tokens()
    }

    /// Counts the tokens of one answer.
    pub fn add_tokens(&self, prompt: u64, completion: u64) {
        self.metrics.add_tokens(prompt, completion);
    }

    /// Whether response heads are withheld until the first decisive event.
    pub fn is_strict(&self) -> bool {
        self.config.stream_mode == config::StreamMode::Strict
    }

    /// Whether event streams are looked into at all: those of an arbitrary service mean nothing to lb.
    pub fn is_observed(&self) -> bool {
        self.config.observed
    }
}

/// The timers of one attempt; `None` is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timers {
    /// Attempt start to response head.
    pub read: Option<Duration>,
    /// Attempt start to the first decisive event of a stream.
    pub first_token: Option<Duration>,
    /// Silence after the commit.
    pub idle: Option<Duration>,
}

/// What a request's keys hash to, link by link; `None` where nobody asks for one.
pub type Points = Option<Box<[Option<u64>]>>;

impl Chain {
    /// What `key` says of a request, for each provider that chooses its endpoints by one.
    pub fn points(&self, key: impl Fn(&config::HashKey) -> Option<u64>) -> Points {
        let mut keys = self.links.iter().map(|link| match &link.provider.config.balance {
            config::Balance::Hash(key) => Some(key),
            _ => None,
        });
        let all = keys.clone();
        keys.any(|key| key.is_some())
            .then(|| all.map(|asked| asked.and_then(&key)).collect())
    }

    /// What `point` says of a request's conversation, where those of the model that was asked for are told apart.
    pub fn conversation(&self, point: impl FnOnce(&config::Affinity) -> Option<u64>) -> Option<u64> {
        let affinity = self.links.first()?.model.config.affinity.as_ref()?;
        let found = point(affinity);
        if let Some(metrics) = &self.conversations {
            let counter = if found.is_some() {
                &metrics.keyed
            } else {
                &metrics.other
            };
            counter.inc();
        }
        found
    }

    /// The chain that a request for `path` uses: a continuation pool that names exactly this path, else this one.
    #[must_use]
    pub fn for_path(self: &Arc<Self>, path: &str) -> Arc<Self> {
        let named = self
            .named
            .iter()
            .find(|(paths, _)| paths.iter().any(|known| &**known == path));
        Arc::clone(named.map_or(self, |(_, chain)| chain))
    }
}

impl Link {
    /// How it stands now.
    pub(super) fn standing(&self, now: Instant) -> Standing {
        self.provider.standing(now, self.load(), &self.entries)
    }

    /// The same for a request that has a slot of the provider.
    pub(super) fn standing_with_slot(&self, now: Instant) -> Standing {
        self.provider.standing_with_slot(now, self.load(), &self.entries)
    }

    fn load(&self) -> Candidate {
        Candidate {
            in_flight: self.in_flight.load(Ordering::Relaxed),
            weight: self.weight,
        }
    }
}
