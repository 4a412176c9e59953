//! From a configuration to a table.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};

use super::chain::{Chain, Link, Model, Timers};
use super::endpoint::{CAUSES, Endpoint, cause_name};
use super::pool::{Controller, Pool};
use super::provider::Provider;
use super::table::{Exact, Listed, Table};
use crate::config::{self, AuthHeader, Config, Pattern, Strategy};
use crate::metrics::{Metrics, Role};
use crate::policy::aimd::Share;
use crate::policy::cascade;
use crate::policy::draw::Draw;
use crate::policy::outcome::StatusSet;
use crate::policy::time::Instant;

/// What a table is built with besides its configuration.
pub struct Context<'a> {
    /// Where series are resolved.
    pub metrics: &'a Metrics,
    /// The key of each provider, in the configuration's order; `None` sends none.
    pub keys: &'a [Option<HeaderValue>],
    /// The present instant.
    pub now: Instant,
    /// Draws the origin of each controller's sequence.
    pub draw: &'a mut dyn FnMut() -> Draw,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl Table {
    /// Builds a table in which nothing has been learned yet.
    pub fn build(config: &Config, context: &mut Context<'_>) -> Self {
        let providers = providers(config, context);
        let models: Vec<Built> = config
            .models
            .iter()
            .map(|model| Built::new(model, config, context))
            .collect();
        let mut table = Self {
            exact: Exact::default(),
            families: Vec::new(),
            any: None,
            providers,
            pools: models.iter().flat_map(Built::pools).collect(),
            chains: Vec::new(),
            listed: Vec::new(),
        };
        for (model, built) in config.models.iter().zip(&models) {
            let chain = Arc::new(built.chain(model, config, &table.providers, context));
            table.insert(model.pattern(), chain);
        }
        for preset in &config.presets {
            let chain = Arc::new(preset_chain(preset, &models, config, &table.providers, context));
            table.insert(Pattern::Exact(&preset.name), chain);
        }
        table
            .families
            .sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        table
    }

    fn insert(&mut self, pattern: Pattern<'_>, chain: Arc<Chain>) {
        self.chains.push(Arc::clone(&chain));
        match pattern {
            Pattern::Any => self.any = Some(chain),
            Pattern::Exact(name) => {
                self.listed.push(Listed { name: name.into() });
                self.exact.insert(name.into(), chain);
            }
            Pattern::Family(prefix) => self.families.push((prefix.into(), chain)),
        }
    }
}

fn providers(config: &Config, context: &Context<'_>) -> Vec<Arc<Provider>> {
    let causes = CAUSES.map(cause_name);
    let mut id = 0;
    let mut built = Vec::with_capacity(config.providers.len());
    for (index, provider) in config.providers.iter().enumerate() {
        let name = provider.name.as_str();
        let endpoints = provider.endpoints.iter().map(|endpoint| {
            id += 1;
            let metrics = context.metrics.endpoint(name, endpoint.name.as_str(), &causes);
            Arc::new(Endpoint::new(id - 1, endpoint, provider.health.as_ref(), metrics))
        });
        built.push(Arc::new(Provider {
            name: name.into(),
            endpoints: endpoints.collect(),
            credentials: context.keys[index]
                .clone()
                .map(|key| (header_of(provider.auth_header), key)),
            passthrough_auth: provider.passthrough_auth,
            headers: provider.headers.clone(),
            connect_timeout: provider.timeouts.connect,
            config: Arc::new(provider.clone()),
            concurrency: provider.concurrency,
            in_flight: AtomicU32::new(0),
            fail_open: provider.fail_open,
            metrics: context.metrics.provider(name),
        }));
    }
    built
}

fn header_of(header: AuthHeader) -> HeaderName {
    match header {
        AuthHeader::ApiKey => HeaderName::from_static("api-key"),
        AuthHeader::Authorization => AUTHORIZATION,
        AuthHeader::XApiKey => HeaderName::from_static("x-api-key"),
    }
}

/// A model with its pools, shared by every chain that reaches it.
struct Built {
    model: Arc<Model>,
    default: BuiltPool,
    named: Vec<BuiltPool>,
}

/// A pool and its enabled targets, each with the load counter that all chains share.
struct BuiltPool {
    pool: Arc<Pool>,
    targets: Vec<(config::Target, Arc<AtomicU32>)>,
    /// Whether the first enabled target is the first one defined: only then is it the preferred.
    has_preferred: bool,
}

impl BuiltPool {
    fn new(name: &str, model: &config::Model, targets: &[config::Target], config: &Config) -> Self {
        let enabled = |target: &&config::Target| target.enabled && config.providers[target.provider].enabled;
        let live: Vec<_> = targets
            .iter()
            .filter(enabled)
            .map(|target| (target.clone(), Arc::new(AtomicU32::new(0))))
            .collect();
        let pool = Pool {
            model: model.name.as_str().into(),
            name: name.into(),
            controller: None,
        };
        Self {
            pool: Arc::new(pool),
            has_preferred: targets.first().is_some_and(|first| enabled(&first)),
            targets: live,
        }
    }

    /// Gives the pool a controller where it may have one: priority order, a preferred target and an alternate.
    fn steer(mut self, model: &config::Model, context: &mut Context<'_>) -> Self {
        let may = model.strategy == Strategy::Priority && self.has_preferred && self.targets.len() >= 2;
        let Some(params) = model.fallback.aimd.as_ref().filter(|_| may) else {
            return self;
        };
        let metrics =
            context
                .metrics
                .pool(&model.name, &self.pool.name, &params.settings().overload_statuses);
        let share = Share::new(params.clone(), (context.draw)());
        let controller = Some(Controller::new(share, metrics, context.now));
        self.pool = Arc::new(Pool {
            model: self.pool.model.clone(),
            name: self.pool.name.clone(),
            controller,
        });
        self
    }
}

impl Built {
    fn new(model: &config::Model, config: &Config, context: &mut Context<'_>) -> Self {
        let named =
            |pool: &config::NamedPool| BuiltPool::new(pool.name.as_str(), model, &pool.targets, config);
        let metrics = context.metrics.model(&model.name);
        Self {
            model: Arc::new(Model {
                config: model.clone(),
                metrics,
            }),
            default: BuiltPool::new("default", model, &model.targets, config).steer(model, context),
            named: model.pools.iter().map(named).collect(),
        }
    }

    fn pools(&self) -> Vec<Arc<Pool>> {
        std::iter::once(&self.default)
            .chain(&self.named)
            .map(|built| Arc::clone(&built.pool))
            .collect()
    }

    /// The chain that the model's own name leads to, with its continuation pools.
    fn chain(
        &self,
        model: &config::Model,
        config: &Config,
        providers: &[Arc<Provider>],
        context: &Context<'_>,
    ) -> Chain {
        let part = Part {
            built: self,
            read: model.read,
            first_token: model.fallback.first_token_timeout,
            idle: model.stream_idle_timeout,
        };
        let mut chain = assemble(&model.name, &[(&part, &self.default)], providers, context);
        chain.total_deadline = config.failover.total_deadline;
        chain.take_rules(model);
        for (pool, built) in model.pools.iter().zip(&self.named) {
            let mut named = assemble(&model.name, &[(&part, built)], providers, context);
            named.total_deadline = config.failover.total_deadline;
            named.take_rules(model);
            chain.named.push((
                pool.paths.iter().map(|path| path.as_str().into()).collect(),
                Arc::new(named),
            ));
        }
        chain
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
    read: config::Read,
    first_token: Option<std::time::Duration>,
    idle: Option<std::time::Duration>,
}

fn preset_chain(
    preset: &config::Preset,
    models: &[Built],
    config: &Config,
    providers: &[Arc<Provider>],
    context: &Context<'_>,
) -> Chain {
    let members = std::iter::once(preset).chain(preset.fallbacks.iter().map(|place| &config.presets[*place]));
    let parts: Vec<Part<'_>> = members
        .map(|member| Part {
            built: &models[member.model],
            read: member.read,
            first_token: member.first_token_timeout,
            idle: member.stream_idle_timeout,
        })
        .collect();
    let pools: Vec<_> = parts.iter().map(|part| (part, &part.built.default)).collect();
    let mut chain = assemble(&preset.name, &pools, providers, context);
    let first = &config.models[preset.model].fallback;
    chain.total_deadline = config.failover.total_deadline;
    chain.on_status = preset.on_status;
    chain.realtime_on_status = first.realtime_on_status;
    chain.max_attempts = attempts(first, chain.links.len());
    chain
}

fn assemble(
    name: &str,
    pools: &[(&Part<'_>, &BuiltPool)],
    providers: &[Arc<Provider>],
    context: &Context<'_>,
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
            let role = if place == 0 && built.has_preferred {
                Role::Preferred
            } else {
                Role::Alternate
            };
            let model = &part.built.model;
            links.push(Link {
                provider: Arc::clone(provider),
                upstream_model: target.upstream_model.as_deref().map(Into::into),
                role,
                pool: Arc::clone(&built.pool),
                model: Arc::clone(model),
                timers: Timers {
                    read: part.read.at(provider.config.timeouts.read),
                    first_token: part.first_token,
                    idle: part.idle,
                },
                weight: target.weight,
                in_flight: Arc::clone(in_flight),
                metrics: context
                    .metrics
                    .link(&model.config.name, &built.pool.name, &provider.name, role),
            });
        }
    }
    Chain {
        name: name.into(),
        links,
        pools: sizes.into(),
        on_status: StatusSet::default(),
        realtime_on_status: StatusSet::default(),
        max_attempts: 1,
        total_deadline: None,
        metrics: context.metrics.model(name),
        named: Vec::new(),
    }
}
