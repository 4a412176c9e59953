//! From a configuration to a table.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};

use super::adopt::{self, Before, carried};
use super::balancer::Balancer;
use super::chain::Chain;
use super::chains::{Built, preset_chain};
use super::cooldowns::Cooldowns;
use super::endpoint::{CAUSES, Endpoint, cause_name};
use super::limit::Limit;
use super::provider::Provider;
use super::route::routes;
use super::site::Site;
use super::slots::Slots;
use super::table::{Exact, Listed, Table};
use crate::config::{self, AuthHeader, Config, Pattern};
use crate::metrics::Metrics;
use crate::policy::draw::Draw;
use crate::policy::time::Instant;

/// What a table is built with besides its configuration.
pub struct Context<'a> {
    /// Where series are resolved.
    pub metrics: &'a Metrics,
    /// The key of each provider, in the configuration's order; `None` sends none.
    pub keys: &'a [Option<HeaderValue>],
    /// Where the endpoints are; they are numbered in this order.
    pub sites: &'a [Site],
    /// The present instant.
    pub now: Instant,
    /// The table that is in force and is to be replaced by this one: what it has learned is kept where it is still about
    /// the same thing.
    pub before: Option<&'a Table>,
    /// Draws the origin of each controller's sequence.
    pub draw: &'a mut dyn FnMut() -> Draw,
}

impl<'a> Context<'a> {
    pub(super) const fn before(&self) -> Before<'a> {
        Before(self.before)
    }
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}

impl Table {
    /// Builds the table of `config`. It cannot fail, because it changes what it shares with the one before.
    pub fn build(config: &Config, context: &mut Context<'_>) -> Self {
        let providers = providers(config, context);
        let models: Vec<Built> = config
            .models
            .iter()
            .map(|model| Built::new(model, config, context))
            .collect();
        let by_conversation = config
            .models
            .iter()
            .filter_map(|model| model.affinity.as_ref())
            .any(config::Affinity::is_of_body);
        let mut table = Self {
            exact: Exact::default(),
            families: Vec::new(),
            any: None,
            providers,
            pools: models.iter().flat_map(Built::pools).collect(),
            models: models.iter().map(Built::model).collect(),
            by_conversation,
            chains: Vec::new(),
            listed: Vec::new(),
            cooldowns: Cooldowns::default(),
            routes: Vec::new(),
        };
        let mut cooldowns = Cooldowns::default();
        table.routes = routes(config, &table.providers, context, &mut cooldowns);
        for (model, built) in config.models.iter().zip(&models) {
            let chain = Arc::new(built.chain(model, config, &table.providers, context, &mut cooldowns));
            table.insert(model.pattern(), chain);
        }
        for preset in &config.presets {
            let chain = Arc::new(preset_chain(
                preset,
                &models,
                config,
                &table.providers,
                context,
                &mut cooldowns,
            ));
            table.insert(Pattern::Exact(&preset.name), chain);
        }
        table.cooldowns = cooldowns;
        table
            .families
            .sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        adopt::retire(context.before(), &table, context.now);
        table.publish(context.now);
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
    let mut built = Vec::with_capacity(config.providers.len());
    for (index, provider) in config.providers.iter().enumerate() {
        let name = provider.name.as_str();
        let beside = context.before().provider(name);
        let sites = context.sites.iter().enumerate();
        let endpoints: Vec<_> = sites
            .filter(|(_, site)| site.provider == index)
            .map(|(id, site)| {
                let endpoint = &provider.endpoints[site.endpoint];
                let metrics = context.metrics.endpoint(name, endpoint.name.as_str(), &causes);
                let before = context.before().endpoint(name, &endpoint.url, site.address);
                let before = before.map(Arc::as_ref);
                // What is new at the start has no siblings that know their weight.
                let joined = beside.filter(|_| before.is_none()).map(|_| context.now);
                Arc::new(Endpoint::new(
                    (id, site.address),
                    (provider, endpoint),
                    metrics,
                    before,
                    joined,
                ))
            })
            .collect();
        let slots = carried(beside.map(|before| &before.slots), Slots::default);
        slots.set_limit(provider.concurrency);
        let limit = beside.and_then(|before| before.limit.as_ref());
        built.push(Arc::new(Provider {
            name: name.into(),
            passthrough_auth: provider.passthrough_auth,
            fields: fields(provider, context.keys[index].clone()),
            connect_timeout: provider.timeouts.connect,
            config: Arc::new(provider.clone()),
            balancer: Balancer::new(&provider.balance, &endpoints),
            endpoints,
            slots,
            limit: Limit::adopt(limit, provider.rate_limit.as_ref(), context.now),
            gate: adopt::gate(beside.map(Arc::as_ref), provider.breaker.as_ref()),
            purse: adopt::purse(beside.map(Arc::as_ref), provider.retries.budget),
            fail_open: provider.fail_open,
            metrics: context.metrics.provider(name),
        }));
    }
    built
}

/// The fields that are the provider's own. Its key stands even where a configured field has the same name.
fn fields(provider: &config::Provider, key: Option<HeaderValue>) -> Vec<(HeaderName, HeaderValue)> {
    let key = key.map(|key| (header_of(provider.auth_header), key));
    let configured = provider.headers.iter();
    configured
        .filter(|(name, _)| key.as_ref().is_none_or(|(key, _)| key != name))
        .cloned()
        .chain(key.clone())
        .collect()
}

fn header_of(header: AuthHeader) -> HeaderName {
    match header {
        AuthHeader::ApiKey => HeaderName::from_static("api-key"),
        AuthHeader::Authorization => AUTHORIZATION,
        AuthHeader::XApiKey => HeaderName::from_static("x-api-key"),
    }
}
