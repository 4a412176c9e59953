//! How all targets of a chain stand at one instant.

use super::chain::{Chain, Link};
use crate::policy::cascade::Standing;

/// How each target of a chain stands. Chains are short, and those that are need no allocation.
pub(super) enum Standings {
    Few([Standing; FEW], usize),
    Many(Vec<Standing>),
}

impl Standings {
    pub(super) fn of(chain: &Chain, standing: impl Fn(usize, &Link) -> Standing) -> Self {
        let all = chain.links.iter().enumerate();
        let all = all.map(|(place, link)| standing(place, link));
        if chain.links.len() > FEW {
            return Self::Many(all.collect());
        }
        let mut few = [Standing::Closed; FEW];
        for (place, standing) in few.iter_mut().zip(all) {
            *place = standing;
        }
        Self::Few(few, chain.links.len())
    }

    pub(super) fn as_slice(&self) -> &[Standing] {
        match self {
            Self::Few(few, count) => &few[..*count],
            Self::Many(many) => many,
        }
    }
}

/// Chains of up to so many targets take no allocation.
const FEW: usize = 8;
