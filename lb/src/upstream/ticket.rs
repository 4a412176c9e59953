//! An attempt's outcome at the controller of its pool.

use std::sync::Arc;

use super::pool::Pool;
use crate::policy::aimd::{Generation, Outcome};
use crate::policy::time::Instant;

/// An open outcome at the controller; dropped, it is *unknown*.
#[derive(Debug)]
pub(super) struct Ticket {
    pool: Arc<Pool>,
    generation: Generation,
    opened: Instant,
    open: bool,
}

impl Ticket {
    /// Opens an outcome, where the pool has a controller.
    pub(super) fn open(pool: &Arc<Pool>, now: Instant) -> Option<Self> {
        let generation = pool.controller.as_ref()?.attempt();
        Some(Self {
            pool: Arc::clone(pool),
            generation,
            opened: now,
            open: true,
        })
    }

    pub(super) fn close(mut self, now: Instant, outcome: Outcome, overload: Option<u16>) {
        self.end(now, outcome, overload);
    }

    fn end(&mut self, now: Instant, outcome: Outcome, overload: Option<u16>) {
        if let Some(controller) = self.pool.controller.as_ref().filter(|_| self.open) {
            self.open = false;
            controller.settle(&self.pool, now, self.generation, outcome, overload);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Unknown is in no window, so when it is said does not matter.
        self.end(self.opened, Outcome::Unknown, None);
    }
}
