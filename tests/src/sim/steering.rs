//! What decides where a request begins.

use lb::policy::aimd::{Change, Generation, Outcome, Params, Share, Start};
use lb::policy::draw::{Draw, Weyl};
use lb::policy::time::Instant;

use super::breaker::Breaker;

/// The ways to steer that are compared.
#[derive(Clone, Copy, Debug)]
pub enum Strategy {
    /// The binary breaker.
    Breaker,
    /// A split that never moves.
    Fixed(f64),
    /// The share controller.
    Share,
}

pub(super) enum Steering {
    Breaker(Breaker),
    Fixed(f64, Weyl),
    Share(Box<Share>),
}

/// What an attempt on the preferred target gives back with its outcome.
#[derive(Clone, Copy)]
pub(super) enum Token {
    Breaker(u64),
    Fixed,
    Share(Generation),
}

impl Steering {
    pub(super) fn new(strategy: Strategy, params: &Params, origin: Draw) -> Self {
        match strategy {
            Strategy::Breaker => Self::Breaker(Breaker::new(params.settings().clone())),
            Strategy::Fixed(share) => Self::Fixed(share, Weyl::new(origin)),
            Strategy::Share => Self::Share(Box::new(Share::new(params.clone(), origin))),
        }
    }

    pub(super) fn begin(&mut self, now: Instant) -> (Start, Option<Change>) {
        match self {
            Self::Breaker(breaker) => (breaker.begin(now), None),
            Self::Fixed(share, positions) => {
                let below = positions.next().value() < *share;
                (if below { Start::Preferred } else { Start::Alternate }, None)
            }
            Self::Share(share) => share.begin(now),
        }
    }

    pub(super) fn attempt(&mut self) -> Token {
        match self {
            Self::Breaker(breaker) => Token::Breaker(breaker.attempt()),
            Self::Fixed(..) => Token::Fixed,
            Self::Share(share) => Token::Share(share.attempt()),
        }
    }

    pub(super) fn on_outcome(&mut self, now: Instant, token: Token, outcome: Outcome) -> Option<Change> {
        match (self, token) {
            (Self::Breaker(breaker), Token::Breaker(generation)) => {
                breaker.on_outcome(now, generation, outcome);
                None
            }
            (Self::Share(share), Token::Share(generation)) => share.on_outcome(now, generation, outcome).1,
            _ => None,
        }
    }

    /// The part of requests that begins at the preferred target as things stand.
    pub(super) fn share(&self, now: Instant) -> f64 {
        match self {
            Self::Breaker(breaker) => breaker.share(),
            Self::Fixed(share, _) => *share,
            Self::Share(share) => share.snapshot(now).share,
        }
    }
}
