//! Counts a request once, however it ends.

use std::sync::Arc;

use crate::metrics::RequestOutcome;
use crate::upstream::Chain;

/// A request's entry in the books. Dropped without a word, the client left.
#[derive(Debug)]
pub(super) struct Account {
    chain: Arc<Chain>,
    /// What completing it counts as.
    on_complete: RequestOutcome,
    closed: bool,
}

impl Account {
    /// Opens the entry of a request to `chain`.
    pub(super) fn open(chain: Arc<Chain>) -> Self {
        Self {
            chain,
            on_complete: RequestOutcome::Ok,
            closed: false,
        }
    }

    /// The answer is an error; it still has to reach the client.
    pub(super) fn will_fail(&mut self) {
        self.on_complete = RequestOutcome::Failed;
    }

    /// The response ended as it should.
    pub(super) fn complete(&mut self) {
        self.close(self.on_complete);
    }

    /// The response broke off.
    pub(super) fn truncated(&mut self) {
        self.close(RequestOutcome::Truncated);
    }

    fn close(&mut self, outcome: RequestOutcome) {
        if !std::mem::replace(&mut self.closed, true) {
            self.chain.metrics.requests(outcome).inc();
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if !self.closed {
            self.chain.metrics.cancellations.inc();
            self.close(RequestOutcome::Cancelled);
        }
    }
}
