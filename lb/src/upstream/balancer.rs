//! How a provider's endpoints are chosen.

use std::sync::{Arc, Mutex, PoisonError};

use super::endpoint::Endpoint;
use crate::config::Balance;
use crate::policy::balance::{Maglev, Turns};
use crate::policy::draw::Draw;
use crate::policy::select::{self, Candidate};
use crate::policy::time::Instant;

/// A provider's way of choosing, with what it remembers of the endpoints together. What is remembered of each is kept
/// with it.
#[derive(Debug)]
pub(super) enum Balancer {
    Hash(Maglev),
    LeastInflight,
    PeakEwma,
    Random,
    RoundRobin(Mutex<Turns>),
}

/// What a choice is made by, besides the candidates.
#[derive(Clone, Copy, Debug)]
pub(super) struct By<'a> {
    pub(super) now: Instant,
    /// The endpoints in the candidates' order.
    pub(super) endpoints: &'a [Arc<Endpoint>],
    /// What the request's key hashes to, if it has one.
    pub(super) point: Option<u64>,
    pub(super) draw: Draw,
}

impl Balancer {
    /// For these endpoints in this order: a name with several addresses is several of them. [NET-36]
    pub(super) fn new(balance: &Balance, endpoints: &[Arc<Endpoint>]) -> Self {
        match balance {
            Balance::Hash(_) => {
                let names: Vec<_> = endpoints.iter().map(|endpoint| identity(endpoint)).collect();
                let weights = endpoints.iter().map(|endpoint| endpoint.weight);
                Self::Hash(Maglev::new(names.iter().map(String::as_str).zip(weights)))
            }
            Balance::LeastInflight => Self::LeastInflight,
            Balance::PeakEwma => Self::PeakEwma,
            Balance::Random => Self::Random,
            Balance::RoundRobin => Self::RoundRobin(Mutex::new(Turns::new(endpoints.len()))),
        }
    }

    /// The position of the one that is chosen; `None` stands for one that is out of the question.
    ///
    /// There is a choice wherever one of them can be chosen: what is remembered of the endpoints decides which, never
    /// whether.
    pub(super) fn choose<I>(&self, candidates: I, by: By<'_>) -> Option<usize>
    where
        I: IntoIterator<Item = Option<Candidate>, IntoIter: Clone>,
    {
        let candidates = candidates.into_iter();
        self.remembered(candidates.clone(), by)
            .or_else(|| select::least_inflight(candidates, by.draw))
    }

    fn remembered<I>(&self, candidates: I, by: By<'_>) -> Option<usize>
    where
        I: Iterator<Item = Option<Candidate>> + Clone,
    {
        match self {
            Self::Hash(table) => table.choose(candidates, by.point.unwrap_or_else(|| anywhere(by.draw))),
            Self::LeastInflight => select::least_inflight(candidates, by.draw),
            Self::PeakEwma => select::cheaper_of_two(candidates, by.draw, |at, candidate| {
                by.endpoints[at].cost(by.now, candidate)
            }),
            Self::Random => select::random(candidates, by.draw),
            Self::RoundRobin(turns) => turns
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .next(candidates),
        }
    }
}

/// What says which keys an endpoint has: its URL, and which of the URL's addresses it is, so that each address of a name
/// has keys of its own and keeps them while it stays.
fn identity(endpoint: &Endpoint) -> String {
    match endpoint.address {
        Some(address) => format!("{} {address}", endpoint.url),
        None => endpoint.url.to_string(),
    }
}

/// Where a request without a key goes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a draw is in [0, 1)"
)]
fn anywhere(draw: Draw) -> u64 {
    (draw.value() * 2f64.powi(64)) as u64
}
