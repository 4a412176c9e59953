//! From the models and presets of a configuration to chains of targets.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::admission::Limits;
use super::adopt::{self, Controllers, Form, Preferred};
use super::build::Context;
use super::chain::{Chain, Fallback, Link, Model, Timers};
use super::cooldowns::{Cooldowns, Entry};
use super::endpoint::Endpoint;
use super::pool::{Controller, Pool};
use super::provider::Provider;
use crate::config::{self, Config, Pattern, Strategy};
use crate::metrics::Role;
use crate::policy::aimd::{self, Share};
use crate::policy::cascade;
use crate::policy::outcome::StatusSet;

/// A model with its pools, shared by every chain that reaches it.
pub(super) struct Built {
    model: Arc<Model>,
    default: BuiltPool,
    named: Vec<BuiltPool>,
}

/// A pool and its targets that can be tried, each with the load counter that all chains share.
struct BuiltPool {
    pool: Arc<Pool>,
    targets: Vec<(config::Target, Arc<AtomicU32>)>,
}

impl BuiltPool {
    /// Builds a pool; with `steered` it may have a controller.
    fn new(
        name: &str,
        (model, targets): (&config::Model, &[config::Target]),
        steered: bool,
        config: &Config,
        context: &mut Context<'_>,
    ) -> Self {
        let before = context.before().pool(&model.name, name).map(Arc::as_ref);
        let one = |target: &config::Target| {
            let provider = &config.providers[target.provider];
            (Preferred::new(target, provider), is_available(target, provider))
        };
        let all: Vec<_> = targets.iter().map(one).collect();
        let loads = adopt::loads(before, &all);
        let form = Form {
            params: model.fallback.aimd.as_ref().filter(|_| steered),
            deadline: model.fallback.explicit_first_token_timeout,
            targets: &all,
        };
        let now = context.now;
        let fresh = |params: &aimd::Params| {
            let overloads = &params.settings().overload_statuses;
            let metrics = context.metrics.pool(&model.name, name, overloads);
            Controller::new(Share::new(params.clone(), (context.draw)()), metrics, now)
        };
        let controllers = Controllers::adopt(before.map(|pool| &pool.controllers), &form, now, fresh);
        let live = targets.iter().zip(&all).zip(&loads);
        let live = live.filter(|((_, (_, available)), _)| *available);
        Self {
            targets: live
                .map(|((target, _), (_, load))| (target.clone(), Arc::clone(load)))
                .collect(),
            pool: Arc::new(Pool {
                model: model.name.as_str().into(),
                name: name.into(),
                controller: controllers
                    .steering
                    .as_ref()
                    .map(|kept| Arc::clone(&kept.controller)),
                controllers,
                loads,
            }),
        }
    }
}

/// Whether a target can be tried at all: it and its provider are enabled, and not all endpoints are drained.
fn is_available(target: &config::Target, provider: &config::Provider) -> bool {
    let mut endpoints = provider.endpoints.iter();
    target.enabled && provider.enabled && endpoints.any(|endpoint| endpoint.weight > 0)
}

impl Built {
    pub(super) fn new(model: &config::Model, config: &Config, context: &mut Context<'_>) -> Self {
        let mut pool = |name: &str, targets: &[config::Target], steered: bool| {
            BuiltPool::new(name, (model, targets), steered, config, context)
        };
        // Only priority order has a preferred target, and continuation pools are not steered.
        let default = pool("default", &model.targets, model.strategy == Strategy::Priority);
        let named = model
            .pools
            .iter()
            .map(|named| pool(named.name.as_str(), &named.targets, false));
        let named = named.collect();
        let metrics = context.metrics.model(&model.name);
        let before = context.before().model(&model.name);
        let limits = before.and_then(|before| before.limits.as_ref());
        Self {
            model: Arc::new(Model {
                config: model.clone(),
                metrics,
                limits: Limits::adopt(limits, model, context.now),
            }),
            default,
            named,
        }
    }

    pub(super) fn model(&self) -> Arc<Model> {
        Arc::clone(&self.model)
    }

    pub(super) fn pools(&self) -> Vec<Arc<Pool>> {
        std::iter::once(&self.default)
            .chain(&self.named)
            .map(|built| Arc::clone(&built.pool))
            .collect()
    }

    /// The chain that the model's own name leads to, with its continuation pools.
    pub(super) fn chain(
        &self,
        model: &config::Model,
        config: &Config,
        providers: &[Arc<Provider>],
        context: &Context<'_>,
        cooldowns: &mut Cooldowns,
    ) -> Chain {
        let part = Part {
            built: self,
            name: None,
            fallback: None,
            read: model.read,
            first_token: model.fallback.first_token_timeout,
            idle: model.stream_idle_timeout,
            cooldown: model.cooldown,
        };
        let mut chain = assemble(
            &model.name,
            &[(&part, &self.default)],
            providers,
            context,
            cooldowns,
        );
        chain.total_deadline = config.failover.total_deadline;
        chain.take_rules(model);
        for (pool, built) in model.pools.iter().zip(&self.named) {
            let mut named = assemble(&model.name, &[(&part, built)], providers, context, cooldowns);
            named.total_deadline = config.failover.total_deadline;
            named.take_rules(model);
            chain.named.push((
                pool.paths.iter().map(|path| path.as_str().into()).collect(),
                Arc::new(named),
            ));
        }
        chain
    }

    /// The model's name, if it is one and no pattern.
    fn exact_name(&self) -> Option<&str> {
        match self.model.config.pattern() {
            Pattern::Exact(name) => Some(name),
            Pattern::Any | Pattern::Family(_) => None,
        }
    }

    fn strategy(&self) -> cascade::Strategy {
        match self.model.config.strategy {
            Strategy::Priority => cascade::Strategy::Priority,
            Strategy::Weighted => cascade::Strategy::Weighted,
        }
    }
}

impl Chain {
    fn take_rules(&mut self, model: &config::Model) {
        self.on_status = model.fallback.on_status;
        self.realtime_on_status = model.fallback.realtime_on_status;
        self.max_attempts = attempts(&model.fallback, self.links.len());
    }
}

/// Visits to targets that one request may make.
fn attempts(fallback: &config::Fallback, targets: usize) -> u32 {
    let all = u32::try_from(targets).unwrap_or(u32::MAX);
    if fallback.enabled {
        fallback.max_attempts.unwrap_or(all)
    } else {
        1
    }
}

/// A model's targets under the timers of the model or preset that names them.
struct Part<'a> {
    built: &'a Built,
    /// What a target without a name of its own is sent: the client's name where that is the model's, the model's where
    /// a preset stands between, since no provider knows a preset.
    name: Option<&'a str>,
    /// The preset whose part this is, where that is a fallback.
    fallback: Option<Fallback>,
    read: config::Read,
    first_token: Option<std::time::Duration>,
    idle: Option<std::time::Duration>,
    cooldown: Option<std::time::Duration>,
}

pub(super) fn preset_chain(
    preset: &config::Preset,
    models: &[Built],
    config: &Config,
    providers: &[Arc<Provider>],
    context: &Context<'_>,
    cooldowns: &mut Cooldowns,
) -> Chain {
    let fallbacks = preset.fallbacks.iter().map(|place| &config.presets[*place]);
    let notice = config.models[preset.model].notice;
    let fallbacks = fallbacks.map(|member| {
        let preset = member.name.as_str().into();
        (member, Some(Fallback { preset, notice }))
    });
    let parts: Vec<Part<'_>> = std::iter::once((preset, None))
        .chain(fallbacks)
        .map(|(member, fallback)| Part {
            built: &models[member.model],
            name: models[member.model].exact_name(),
            fallback,
            read: member.read,
            first_token: member.first_token_timeout,
            idle: member.stream_idle_timeout,
            cooldown: member.cooldown,
        })
        .collect();
    let pools: Vec<_> = parts.iter().map(|part| (part, &part.built.default)).collect();
    let mut chain = assemble(&preset.name, &pools, providers, context, cooldowns);
    let first = &config.models[preset.model].fallback;
    chain.total_deadline = config.failover.total_deadline;
    chain.on_status = preset.on_status;
    chain.realtime_on_status = first.realtime_on_status;
    chain.max_attempts = attempts(first, chain.links.len());
    chain.retries = false;
    chain
}

fn assemble(
    name: &str,
    pools: &[(&Part<'_>, &BuiltPool)],
    providers: &[Arc<Provider>],
    context: &Context<'_>,
    cooldowns: &mut Cooldowns,
) -> Chain {
    let mut links = Vec::new();
    let mut sizes = Vec::with_capacity(pools.len());
    for (part, built) in pools {
        sizes.push(cascade::Pool {
            targets: built.targets.len(),
            strategy: part.built.strategy(),
        });
        for (place, (target, in_flight)) in built.targets.iter().enumerate() {
            let provider = &providers[target.provider];
            let role = if place == 0 {
                Role::Preferred
            } else {
                Role::Alternate
            };
            let model = &part.built.model;
            let upstream_model = target.upstream_model.as_deref().or(part.name);
            let known_as = upstream_model.unwrap_or(&model.config.name);
            let entry = |endpoint: &Arc<Endpoint>| -> Arc<Entry> {
                let before = context.before().cooldowns();
                cooldowns.entry(before, (known_as, &provider.name), endpoint, context.metrics)
            };
            let cooled = part.cooldown.map(|_| provider.endpoints.iter().map(entry));
            links.push(Link {
                provider: Arc::clone(provider),
                entries: cooled.map(Iterator::collect).unwrap_or_default(),
                cooldown: part.cooldown.unwrap_or_default(),
                upstream_model: upstream_model.map(Into::into),
                role,
                pool: Arc::clone(&built.pool),
                model: Arc::clone(model),
                timers: Timers {
                    read: part.read.at(provider.config.timeouts.read),
                    first_token: part.first_token,
                    idle: part.idle,
                },
                fallback: part.fallback.clone(),
                weight: target.weight,
                in_flight: Arc::clone(in_flight),
                metrics: context
                    .metrics
                    .link(&model.config.name, &built.pool.name, &provider.name, role),
            });
        }
    }
    let told = pools
        .first()
        .is_some_and(|(part, _)| part.built.model.config.affinity.is_some());
    Chain {
        name: name.into(),
        links,
        pools: sizes.into(),
        on_status: StatusSet::default(),
        realtime_on_status: StatusSet::default(),
        max_attempts: 1,
        retries: true,
        total_deadline: None,
        metrics: context.metrics.model(name),
        conversations: told.then(|| context.metrics.conversations(name)),
        named: Vec::new(),
    }
}
