//! The load generator: clients that come when they come, whatever became of those before them.
//!
//! Open loop, since a closed one would slow down together with the providers and hide the very overload that the demo
//! is about. Gaps are exponential and seeded, so that every demo meets the same arrivals.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::client::{Ending, Sample, chat};

/// Clients arriving at a rate that can be changed; dropped, they and their requests are gone.
#[derive(Debug)]
pub(super) struct Load {
    rate: watch::Sender<f64>,
    clients: JoinHandle<()>,
}

impl Load {
    /// Begins without arrivals; each finished request becomes a sample.
    pub(super) fn start(lb: SocketAddr, samples: mpsc::UnboundedSender<Sample>) -> Self {
        let (rate, changes) = watch::channel(0.0);
        Self {
            rate,
            clients: tokio::spawn(arrive(lb, changes, samples)),
        }
    }

    /// Sets the rate of arrivals, in requests per second.
    pub(super) fn set(&self, rate: f64) {
        self.rate.send_replace(rate);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.clients.abort();
    }
}

async fn arrive(lb: SocketAddr, mut rate: watch::Receiver<f64>, samples: mpsc::UnboundedSender<Sample>) {
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut clients = JoinSet::new();
    let mut next = Instant::now();
    loop {
        let now = *rate.borrow_and_update();
        if now <= 0.0 {
            // The sender lives as long as this task, which it aborts.
            if rate.changed().await.is_err() {
                return;
            }
            next = Instant::now();
            continue;
        }
        next += Duration::from_secs_f64(-(1.0 - random.f64()).ln() / now);
        sleep_until(next).await;
        while clients.try_join_next().is_some() {}
        let samples = samples.clone();
        if clients.len() >= MAX_CLIENTS {
            let refused = Sample {
                provider: String::new(),
                first_token: None,
                ending: Ending::Failed,
            };
            // Nobody listens only when the demo is over.
            drop(samples.send(refused));
            continue;
        }
        clients.spawn(async move { drop(samples.send(chat(lb).await)) });
    }
}

/// Any fixed number: all demos meet the same arrivals.
const SEED: u64 = 1;
/// More clients than this at a time mean that nothing is answered any more; the machine is spared the rest.
const MAX_CLIENTS: usize = 512;
