//! A provider's retry budget where retries are paid for.

use std::sync::{Arc, Mutex, PoisonError};

use crate::policy::budget::{self, Budget, Params, Snapshot};
use crate::policy::time::Instant;

/// The budget of one provider, shared by all requests to it.
#[derive(Debug)]
pub(super) struct Purse(Mutex<Budget>);

/// What a retry has cost; it goes back when dropped, unless it was spent.
#[derive(Debug)]
pub(super) struct Charge {
    purse: Arc<Purse>,
    charge: Option<budget::Charge>,
}

impl Purse {
    pub(super) fn new(params: Params) -> Self {
        Self(Mutex::new(Budget::new(params)))
    }

    /// Takes other settings on at once, and keeps what was counted.
    pub(super) fn set_params(&self, params: Params) {
        self.with(|budget| {
            if *budget.params() != params {
                budget.set_params(params);
            }
        });
    }

    /// Counts an original request.
    pub(super) fn on_request(&self, now: Instant) {
        self.with(|budget| budget.on_request(now));
    }

    /// Whether a retry at `now` would be within the budget.
    pub(super) fn allows(&self, now: Instant) -> bool {
        self.with(|budget| budget.allows(now))
    }

    /// Pays for a retry; `None` where the budget is used up.
    pub(super) fn withdraw(self: &Arc<Self>, now: Instant) -> Option<Charge> {
        let charge = self.with(|budget| budget.withdraw(now))?;
        Some(Charge {
            purse: Arc::clone(self),
            charge: Some(charge),
        })
    }

    /// What it looks like at `now`.
    pub(super) fn snapshot(&self, now: Instant) -> Snapshot {
        self.with(|budget| budget.snapshot(now))
    }

    fn with<T>(&self, f: impl FnOnce(&mut Budget) -> T) -> T {
        // A panic in the machine would have been a bug in one request; its state is still the best there is.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Charge {
    /// The retry is made.
    pub(super) fn spend(mut self) {
        self.charge = None;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(charge) = self.charge.take() {
            self.purse.with(|budget| budget.refund(charge));
        }
    }
}
