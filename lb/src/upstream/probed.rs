//! What active probes tell endpoint health.

use super::endpoint::announce;
use super::table::Table;
use crate::policy::draw::Draw;
use crate::policy::health::{Ejection, Probed};
use crate::policy::time::Instant;

impl Table {
    /// A probe of the endpoint with this id came to that. One that is no more is told nothing.
    pub fn probed(&self, id: usize, now: Instant, probed: Probed, jitter: Draw) {
        let Some((provider, endpoint)) = self.endpoint(id) else {
            return;
        };
        let was_misconfigured = endpoint.is_misconfigured();
        let ejection = Ejection {
            allowed: provider.has_ejection_room(endpoint, now),
            jitter,
        };
        endpoint.metrics.probed(name(probed));
        if let Some(transition) = endpoint.on_probe(now, probed, ejection) {
            announce(provider, endpoint, &transition);
        }
        if probed == Probed::Misconfigured && !was_misconfigured {
            tracing::warn!(
                provider = %provider.name, endpoint = %endpoint.name, state = "probe_misconfigured",
                "probes are not let in: look at health.active.path and health.active.auth"
            );
        }
    }
}

fn name(probed: Probed) -> &'static str {
    match probed {
        Probed::Bad => "bad",
        Probed::Good => "good",
        Probed::Misconfigured => "misconfigured",
        Probed::TimedOut => "timeout",
    }
}
