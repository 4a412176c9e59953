//! A request in the queue of a provider.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use super::claim::Place;
use super::provider::Provider;
use super::slots::Number;

/// A place in the queue of a provider whose slots are all taken. Dropped, it is free for another.
#[derive(Debug)]
pub struct Waiting {
    provider: Arc<Provider>,
    pub(super) link: usize,
    number: Number,
}

/// A slot that was waited for.
#[derive(Debug)]
pub struct Granted {
    pub(super) link: usize,
    pub(super) place: Place,
}

impl Waiting {
    /// Joins the queue of the provider of `link`, if it has room.
    pub(super) fn join(provider: &Arc<Provider>, link: usize) -> Option<Self> {
        let number = provider.slots.join(provider.config.pending.max)?;
        provider.metrics.pending.inc();
        Some(Self {
            provider: Arc::clone(provider),
            link,
            number,
        })
    }

    /// How long it may wait.
    pub fn limit(&self) -> Duration {
        self.provider.config.pending.timeout
    }

    /// Waits for its turn. Cancel-safe: the place in the queue is kept.
    pub async fn granted(&self) -> Granted {
        poll_fn(|cx| self.provider.slots.poll(&self.number, cx)).await;
        Granted {
            link: self.link,
            place: Place::of(&self.provider),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.provider.metrics.pending.dec();
        self.provider.slots.leave(&self.number);
    }
}
