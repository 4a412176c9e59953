//! Where a request begins.

use std::sync::Arc;

use super::{Run, Sent};
use crate::policy::aimd::Start;
use crate::policy::cascade::{Cascade, Plan};
use crate::policy::time::Instant;
use crate::upstream::chain::{Chain, Link};

impl Run {
    /// Begins a request of no conversation.
    pub fn begin(chain: Arc<Chain>, sent: Sent, now: Instant) -> Self {
        Self::of(chain, sent, now, None)
    }

    /// Begins a request: draws its start where it is eligible for its pool's share, by the point of its `conversation`
    /// where it is of one. One that its model keeps out begins nowhere, so that it is not drawn; should it get in later,
    /// what becomes of its attempts counts all the same.
    pub fn of(chain: Arc<Chain>, sent: Sent, now: Instant, conversation: Option<u64>) -> Self {
        let first = chain.links.first();
        let steered = first.is_some_and(|link| is_eligible(link, sent));
        let divert = steered
            && first
                .is_some_and(|link| !keeps_out(link, now) && starts_at_alternate(link, now, conversation));
        let plan = Plan {
            pools: Arc::clone(&chain.pools),
            max_attempts: chain.max_attempts,
            divert,
        };
        Self {
            cascade: Cascade::new(plan),
            chain,
            sent,
            steered,
            begun: now,
            attempts: 0,
            visit: None,
            charge: None,
            previous: None,
            server_errors: Vec::new(),
            points: None,
            admitted: None,
            place: None,
            racing: false,
        }
    }
}

/// Whether the model of `link` lets nobody in.
fn keeps_out(link: &Link, now: Instant) -> bool {
    let limits = link.model.limits.as_ref();
    limits.is_some_and(|limits| limits.keep_out(now))
}

/// Whether a request takes part in the share of `link`'s pool.
fn is_eligible(link: &Link, sent: Sent) -> bool {
    let Some(controller) = &link.pool.controller else {
        return false;
    };
    controller
        .params()
        .takes_part(sent.streaming, link.model.is_strict(), sent.exempt)
}

fn starts_at_alternate(link: &Link, now: Instant, conversation: Option<u64>) -> bool {
    let controller = link.pool.controller.as_ref();
    controller.is_some_and(|controller| controller.begin(&link.pool, now, conversation) == Start::Alternate)
}
