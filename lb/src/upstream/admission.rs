//! A model's own limits, which a request meets before those of any provider.

use std::sync::Arc;
use std::time::Duration;

use super::limit::Limit;
use super::slots::Slots;
use crate::config::{self, RateLimit};
use crate::policy::time::Instant;

/// The limits of one model, shared by all its forms.
#[derive(Debug)]
pub(super) struct Limits {
    slots: Arc<Slots>,
    rate: Option<Arc<Limit>>,
}

/// A request's place in its model, until its body has ended.
#[derive(Debug)]
pub(super) struct Admitted(Arc<Slots>);

impl Limits {
    /// The limits of `model`, where it has any.
    pub(super) fn adopt(before: Option<&Self>, model: &config::Model, now: Instant) -> Option<Self> {
        if model.concurrency == 0 && model.rate.is_none() {
            return None;
        }
        let rate = model.rate.map(|rate| RateLimit {
            rate: Some(rate),
            adaptive: None,
        });
        let slots = before.map_or_else(Arc::default, |before| Arc::clone(&before.slots));
        slots.set_limit(model.concurrency);
        Some(Self {
            slots,
            rate: Limit::adopt(before.and_then(|before| before.rate.as_ref()), rate.as_ref(), now),
        })
    }

    /// Requests in it.
    pub(super) fn in_flight(&self) -> u32 {
        self.slots.taken()
    }

    /// Tokens in its bucket, where it has one.
    pub(super) fn tokens(&self, now: Instant) -> Option<f64> {
        self.rate.as_ref().and_then(|rate| rate.standing(now).tokens)
    }

    pub(super) fn is_full(&self) -> bool {
        self.slots.is_full()
    }

    /// How long until its rate lets another request in; zero if that is now.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.rate.as_ref().map_or(Duration::ZERO, |rate| rate.wait(now))
    }

    /// Whether no request can enter now.
    pub(super) fn keep_out(&self, now: Instant) -> bool {
        self.is_full() || !self.wait(now).is_zero()
    }

    /// Takes a place and counts a request.
    pub(super) fn admit(&self, now: Instant) -> Option<Admitted> {
        let admitted = self.slots.take().then(|| Admitted(Arc::clone(&self.slots)))?;
        let counted = self.rate.as_ref().is_none_or(|rate| rate.take(now));
        counted.then_some(admitted)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.release();
    }
}
