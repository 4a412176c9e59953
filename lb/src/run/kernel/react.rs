//! Carries out what the plane has judged.

use std::sync::Arc;
use std::time::Duration;

use super::readmit::readmit;
use super::{Kernel, id_of};
use crate::kernel::signal::{Cause, Evidence, Loss, Reaction, Remedy, Sighting, Verdict};
use crate::net::SocketHook;
use crate::policy::time::millis;
use crate::proxy::Shared;

/// Kinds of reports, as the series name them.
pub(super) const KINDS: [&str; 7] = [
    "finished",
    "refused",
    "reset",
    "silent",
    "streak",
    "syn_timeout",
    "unreachable",
];

fn kind(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Finished => KINDS[0],
        Evidence::Refused => KINDS[1],
        Evidence::Reset => KINDS[2],
        Evidence::Loss(Loss::Silent(_)) => KINDS[3],
        Evidence::Loss(Loss::Streak(_)) => KINDS[4],
        Evidence::Loss(Loss::SynTimeout) => KINDS[5],
        Evidence::Unreachable => KINDS[6],
    }
}

/// What reactions are carried out on.
pub(super) struct React {
    kernel: Arc<Kernel>,
    shared: Arc<Shared>,
    /// For the connections that end an ejection: they are watched as any other.
    hook: Option<SocketHook>,
}

impl React {
    pub(super) fn new(kernel: Arc<Kernel>, shared: Arc<Shared>) -> Self {
        let hook = kernel.hook();
        Self { kernel, shared, hook }
    }

    /// To be called within a runtime; does not block.
    ///
    /// The endpoint comes before the connection: the attempt that this ends reports its own failure, and by then that
    /// failure is part of what has been judged already.
    pub(super) fn to(&self, sighting: &Sighting, reaction: Reaction) {
        let Some(watched) = self.kernel.in_slot(sighting.slot) else {
            return;
        };
        watched.metrics.event(kind(sighting.evidence));
        if !watched.acts {
            return;
        }
        match reaction.verdict {
            Verdict::Eject { cause, span } => self.eject(sighting, cause, span),
            Verdict::OwnLink { withdraw, first } => self.own_link(&withdraw, first),
            // The attempt under the reset knows of it by its socket, and reports the failure.
            Verdict::Failure | Verdict::None => {}
        }
        if let Some(remedy) = reaction
            .remedy
            .filter(|remedy| needed(sighting.evidence, *remedy))
        {
            self.kernel.fates.apply(sighting.cookie, remedy);
        }
    }

    fn eject(&self, sighting: &Sighting, cause: Cause, span: Duration) {
        let live = self.shared.live.load();
        let Some(id) = id_of(&live, sighting.slot) else {
            return;
        };
        let now = self.shared.clock.now();
        if !live.table.eject(id, now, cause, span) {
            return;
        }
        tracing::info!(
            endpoint = id,
            evidence = kind(sighting.evidence),
            unanswered_ms = millis(sighting.at.since(sighting.since)),
            reported_ms = millis(now.since(sighting.at)),
            ejected_ms = millis(span),
            "the kernel saw an endpoint go"
        );
        live.routes[id].destination.purge();
        let shared = Arc::clone(&self.shared);
        tokio::spawn(readmit(shared, sighting.slot, span, self.hook.clone()));
    }

    fn own_link(&self, withdraw: &[u16], first: bool) {
        let live = self.shared.live.load();
        for slot in withdraw {
            if let Some(id) = id_of(&live, *slot) {
                live.table.withdraw(id, self.shared.clock.now());
            }
        }
        if first {
            tracing::warn!("several providers are lost at once: our own link; no endpoint is ejected for it");
        }
    }
}

/// A reset reaches the attempt through its socket just as fast, and there it is told apart from the stale connection
/// that may be tried anew.
fn needed(evidence: Evidence, remedy: Remedy) -> bool {
    !matches!((evidence, remedy), (Evidence::Reset, Remedy::FailOver))
}
