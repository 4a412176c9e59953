//! How a provider's endpoints are chosen.

use std::sync::{Arc, Mutex, PoisonError};

use super::endpoint::Endpoint;
use crate::config::{self, Balance};
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
    pub(super) fn new(provider: &config::Provider) -> Self {
        match provider.balance {
            Balance::Hash(_) => {
                let urls: Vec<_> = provider
                    .endpoints
                    .iter()
                    .map(|endpoint| endpoint.url.to_string())
                    .collect();
                let weights = provider.endpoints.iter().map(|endpoint| endpoint.weight);
                Self::Hash(Maglev::new(urls.iter().map(String::as_str).zip(weights)))
            }
            Balance::LeastInflight => Self::LeastInflight,
            Balance::PeakEwma => Self::PeakEwma,
            Balance::Random => Self::Random,
            Balance::RoundRobin => Self::RoundRobin(Mutex::new(Turns::new(provider.endpoints.len()))),
        }
    }

    /// The position of the one that is chosen; `None` stands for one that is out of the question.
    pub(super) fn choose<I>(&self, candidates: I, by: By<'_>) -> Option<usize>
    where
        I: IntoIterator<Item = Option<Candidate>, IntoIter: Clone>,
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

/// Where a request without a key goes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a draw is in [0, 1)"
)]
fn anywhere(draw: Draw) -> u64 {
    (draw.value() * 2f64.powi(64)) as u64
}
