//! All that is live at an instant.

use std::sync::Arc;

use super::chain::{Chain, Model};
use super::cooldowns::Cooldowns;
use super::endpoint;
use super::pool::Pool;
use super::provider::Provider;
use super::route::Route;
use crate::policy::time::Instant;

/// The routing table: what each name in `model` leads to.
#[derive(Debug)]
pub struct Table {
    pub(super) exact: Exact,
    /// Families by prefix, longest first.
    pub(super) families: Vec<(Box<str>, Arc<Chain>)>,
    pub(super) any: Option<Arc<Chain>>,
    pub(super) providers: Vec<Arc<Provider>>,
    pub(super) models: Vec<Arc<Model>>,
    pub(super) pools: Vec<Arc<Pool>>,
    pub(super) chains: Vec<Arc<Chain>>,
    pub(super) listed: Vec<Listed>,
    pub(super) cooldowns: Cooldowns,
    pub(super) routes: Vec<Arc<Route>>,
    /// Whether any model tells conversations apart by what bodies say.
    pub(super) by_conversation: bool,
}

/// Chains by exact name.
#[expect(
    clippy::disallowed_types,
    reason = "looked up by name on every request and never walked"
)]
pub(super) type Exact = std::collections::HashMap<Box<str>, Arc<Chain>>;

/// A name that `/v1/models` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name clients send.
    pub name: Box<str>,
}

impl Table {
    /// The chain that `name` leads to: an exact name, else the longest family, else the catch-all.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<Chain>> {
        let family = || {
            self.families
                .iter()
                .find(|(prefix, _)| name.starts_with(&**prefix))
                .map(|(_, chain)| chain)
        };
        self.exact.get(name).or_else(family).or(self.any.as_ref())
    }

    /// Whether bodies have to be asked which conversation they belong to.
    pub fn asks_for_conversations(&self) -> bool {
        self.by_conversation
    }

    /// The names that clients can be told, in definition order. Patterns are no names.
    pub fn listed(&self) -> &[Listed] {
        &self.listed
    }

    /// The routes, in the order in which they are tried.
    pub fn routes(&self) -> &[Arc<Route>] {
        &self.routes
    }

    /// All providers, in definition order.
    pub fn providers(&self) -> &[Arc<Provider>] {
        &self.providers
    }

    /// Sets the gauges of connections: `count` has those of an endpoint, by its id, and how many of them are idle.
    pub fn publish_connections(&self, count: impl Fn(usize) -> (usize, usize)) {
        for provider in &self.providers {
            endpoint::publish_connections(&provider.endpoints, &count);
        }
    }

    /// Sets every gauge that only time has changed, so that a scrape never reads a stale one.
    pub fn publish(&self, now: Instant) {
        for pool in &self.pools {
            if let Some(controller) = pool.controllers.shown() {
                controller.publish(now);
            }
        }
        for provider in &self.providers {
            provider.publish(now);
            endpoint::publish(&provider.endpoints, now);
        }
        self.cooldowns.publish(now);
    }
}
