//! How many requests a second a provider or a model is sent, and how that follows the provider's state.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::config::RateLimit;
use crate::policy::bucket::Bucket;
use crate::policy::limiter::{Limiter, Sample, Snapshot};
use crate::policy::time::Instant;

/// A limit with what is in its bucket and what it has learned, shared by all forms of what it is about.
#[derive(Debug)]
pub(super) struct Limit(Mutex<Machines>);

#[derive(Debug)]
struct Machines {
    bucket: Option<Bucket>,
    limiter: Option<Limiter>,
}

/// How a limit stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    /// Tokens in the bucket, where there is one.
    pub(super) tokens: Option<f64>,
    /// What is known of the provider, where the limit follows it.
    pub(super) adaptive: Option<Snapshot>,
}

impl Limit {
    /// The limit in its next form: settings change at once, levels and averages stay.
    pub(super) fn adopt(
        before: Option<&Arc<Self>>,
        config: Option<&RateLimit>,
        now: Instant,
    ) -> Option<Arc<Self>> {
        let config = config?;
        let Some(shared) = before else {
            return Some(Arc::new(Self(Mutex::new(Machines {
                bucket: config.rate.map(|params| Bucket::new(params, now)),
                limiter: config.adaptive.map(|params| Limiter::new(params, now)),
            }))));
        };
        let mut machines = shared.machines();
        let factor = machines.factor(now);
        machines.bucket = config.rate.map(|params| match machines.bucket.take() {
            None => Bucket::new(params, now),
            Some(mut bucket) => {
                bucket.set_params(params, now, factor);
                bucket
            }
        });
        machines.limiter = config.adaptive.map(|params| match machines.limiter.take() {
            None => Limiter::new(params, now),
            Some(mut limiter) => {
                limiter.set_params(params, now);
                limiter
            }
        });
        Some(Arc::clone(shared))
    }

    /// How long until another request may be sent; zero if that is now.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        let machines = self.machines();
        let factor = machines.factor(now);
        machines
            .bucket
            .map_or(Duration::ZERO, |bucket| bucket.wait(now, factor))
    }

    /// Counts a request; false where it may not be sent.
    pub(super) fn take(&self, now: Instant) -> bool {
        let mut machines = self.machines();
        let factor = machines.factor(now);
        machines
            .bucket
            .as_mut()
            .is_none_or(|bucket| bucket.take(now, factor))
    }

    /// A counted request was not sent after all.
    pub(super) fn give_back(&self) {
        if let Some(bucket) = &mut self.machines().bucket {
            bucket.give_back();
        }
    }

    /// Learns from an attempt; `asked` is how long a 429 asked to be left alone.
    pub(super) fn learn(&self, now: Instant, sample: Sample, asked: Option<Duration>) {
        let mut machines = self.machines();
        let factor = machines.factor(now);
        if let Some(bucket) = &mut machines.bucket {
            bucket.fill(now, factor);
        }
        if let Some(limiter) = &mut machines.limiter {
            limiter.on_sample(now, sample);
            if let Some(span) = asked {
                limiter.on_retry_after(now, span);
            }
        }
    }

    /// What `concurrency` comes to, where it is what this steers.
    pub(super) fn steered(&self, now: Instant, concurrency: u32) -> Option<u32> {
        let machines = self.machines();
        machines.limiter.as_ref().filter(|_| machines.bucket.is_none())?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part of a 32-bit number, and not a negative one"
        )]
        let part = (f64::from(concurrency) * machines.factor(now)).ceil() as u32;
        Some(part.max(1))
    }

    pub(super) fn standing(&self, now: Instant) -> Standing {
        let machines = self.machines();
        let factor = machines.factor(now);
        Standing {
            tokens: machines.bucket.map(|bucket| bucket.level(now, factor)),
            adaptive: machines.limiter.as_ref().map(|limiter| limiter.snapshot(now)),
        }
    }

    fn machines(&self) -> MutexGuard<'_, Machines> {
        // A panic in a machine would have been a bug in one request; its state is still the best there is.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Machines {
    fn factor(&self, now: Instant) -> f64 {
        self.limiter.as_ref().map_or(1.0, |limiter| limiter.factor(now))
    }
}
