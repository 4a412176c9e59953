//! What a worker thread has at hand.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use http::HeaderValue;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

use super::access::AccessLog;
use super::auth::ClientKeys;
use super::budget::Budget;
use super::spans::Spans;
use super::via::Via;
use crate::clock::Clock;
use crate::config;
use crate::metrics::Metrics;
use crate::net::{Client, Destination};
use crate::policy::draw::Draw;
use crate::policy::time::Instant;
use crate::upstream::Table;

/// What all workers share.
#[derive(Debug)]
pub struct Shared {
    /// What is live; swapped whole.
    pub live: ArcSwap<Live>,
    /// All series.
    pub metrics: Arc<Metrics>,
    /// The shell's clock.
    pub clock: Clock,
    /// Where a line for each request goes.
    pub access: Option<AccessLog>,
    /// Where spans go.
    pub spans: Option<Spans>,
    /// What request bodies may hold.
    pub buffers: Arc<Budget>,
    /// What this process is called on requests that pass.
    pub via: Via,
    /// How far the process is in ending.
    pub drain: watch::Sender<Drain>,
    /// The Unix second in which the process began.
    pub started: u64,
}

/// All of a configuration that requests meet.
#[derive(Debug)]
pub struct Live {
    /// What holds for every request.
    pub server: config::Server,
    /// Who may send.
    pub keys: ClientKeys,
    /// What each model leads to.
    pub table: Table,
    /// By endpoint id.
    pub routes: Vec<Route>,
}

/// How to reach an endpoint.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its addresses and connections.
    pub destination: Arc<Destination>,
    /// What `host` says to it.
    pub host: HeaderValue,
    /// Tells whether the files that its TLS is made of have changed.
    pub files: [u8; 32],
}

/// How far the process is in ending. It only moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Drain {
    /// Serving.
    No,
    /// Not ready any more; connections are still accepted.
    Announced,
    /// Nothing is accepted; what is open may finish.
    Closing,
    /// All is cut.
    Now,
}

/// One worker: the shared state and its own upstream connections.
#[derive(Debug)]
pub struct Worker {
    /// What all workers share.
    pub shared: Arc<Shared>,
    /// Its own connections: a request never changes its core.
    pub(super) client: Client,
}

impl Worker {
    /// The worker that sends with `client`.
    pub fn new(shared: Arc<Shared>, client: Client) -> Self {
        Self { shared, client }
    }

    /// The present instant.
    pub(super) fn now(&self) -> Instant {
        self.shared.clock.now()
    }

    /// A fresh draw.
    pub(super) fn draw() -> Draw {
        Draw::new(fastrand::f64())
    }

    /// Time since the Unix epoch, for ids and logs.
    pub(super) fn unix_now() -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    /// Seconds since the Unix epoch, for dates: by a clock that may be some milliseconds late, and costs a third.
    pub(super) fn unix_second() -> u64 {
        let now = clock_gettime(ClockId::RealtimeCoarse);
        u64::try_from(now.tv_sec).unwrap_or_default()
    }
}
