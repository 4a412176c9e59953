//! Which of the live chains a request goes to, before anybody has looked at its model.

use std::sync::Arc;

use super::build::Context;
use super::chain::Chain;
use super::chains::Built;
use super::cooldowns::Cooldowns;
use super::provider::Provider;
use crate::config::{self, Config};

/// A configured route and what it leads to.
#[derive(Debug)]
pub struct Route {
    /// Which requests it takes, and what it changes in them.
    pub config: config::Route,
    /// Where they go.
    pub to: To,
}

/// Where a route leads.
#[derive(Debug)]
pub enum To {
    /// To a provider, as a chain of that one target.
    Provider(Arc<Chain>),
    /// To whatever chain the request's model has.
    Models,
}

/// The routes of `config`, in order. Routes to one provider share a chain.
pub(super) fn routes(
    config: &Config,
    providers: &[Arc<Provider>],
    context: &mut Context<'_>,
    cooldowns: &mut Cooldowns,
) -> Vec<Arc<Route>> {
    let mut chains: Vec<(usize, Arc<Chain>)> = Vec::new();
    let mut chain = |provider: usize| {
        if let Some((_, known)) = chains.iter().find(|(known, _)| *known == provider) {
            return Arc::clone(known);
        }
        let model = config::Model::direct(provider, config.failover.stream_idle_timeout);
        let built = Built::new(&model, config, context);
        let chain = Arc::new(built.chain(&model, config, providers, context, cooldowns));
        chains.push((provider, Arc::clone(&chain)));
        chain
    };
    let route = |route: &config::Route| Route {
        config: route.clone(),
        to: match route.to {
            config::To::Models => To::Models,
            config::To::Provider(provider) => To::Provider(chain(provider)),
        },
    };
    config.routes.iter().map(route).map(Arc::new).collect()
}
