//! What the kernel plane tells endpoint health. Endpoints are named by their id; one that is no more is told nothing.

use std::sync::Arc;
use std::time::Duration;

use super::endpoint::{Endpoint, announce};
use super::provider::Provider;
use super::table::Table;
use crate::policy::health::{Cause, KernelCause, Standing};
use crate::policy::time::Instant;

impl Table {
    /// Takes the endpoint out for `span`; whether that changed anything. It stays in where its health is off or its
    /// provider can spare no endpoint.
    pub fn eject(&self, id: usize, now: Instant, cause: KernelCause, span: Duration) -> bool {
        let Some((provider, endpoint)) = self.endpoint(id) else {
            return false;
        };
        let allowed = provider.has_ejection_room(endpoint, now);
        let transition = endpoint.eject(now, cause, span, allowed);
        if let Some(transition) = &transition {
            announce(provider, endpoint, transition);
        }
        transition.is_some()
    }

    /// Takes back an ejection for loss: the fault was our own.
    pub fn withdraw(&self, id: usize, now: Instant) {
        if let Some((provider, endpoint)) = self.endpoint(id)
            && let Some(transition) = endpoint.withdraw(now)
        {
            announce(provider, endpoint, &transition);
        }
    }

    /// Whether the endpoint's ejection waits for a connection to show that somebody is there.
    pub fn is_unproven(&self, id: usize, now: Instant) -> bool {
        let standing = self.endpoint(id).map(|(_, endpoint)| endpoint.standing(now));
        standing == Some(Standing::Unproven)
    }

    /// Until when the endpoint is out for its failures, if it is.
    pub fn failed_until(&self, id: usize, now: Instant) -> Option<Instant> {
        let (_, endpoint) = self.endpoint(id)?;
        let seen = endpoint.snapshot(now)?;
        match (seen.standing, seen.cause?) {
            (_, Cause::Kernel(_)) => None,
            (Standing::Ejected { until }, _) => Some(until),
            _ => None,
        }
    }

    /// That connection was made.
    pub fn connected(&self, id: usize, now: Instant) {
        if let Some((provider, endpoint)) = self.endpoint(id)
            && let Some(transition) = endpoint.connected(now)
        {
            announce(provider, endpoint, &transition);
        }
    }

    pub(super) fn endpoint(&self, id: usize) -> Option<(&Arc<Provider>, &Arc<Endpoint>)> {
        self.providers.iter().find_map(|provider| {
            let endpoint = provider.endpoints.iter().find(|endpoint| endpoint.id == id)?;
            Some((provider, endpoint))
        })
    }
}
