//! Smooth weighted round robin.

use crate::policy::select::Candidate;

/// Whose turn it is among a fixed list, by weight, and as evenly spread as that allows: of weights 5, 1 and 1 the
/// first does not get its five turns in a row.
///
/// At each turn every candidate gains its weight, and the one that has most gives up what all have gained. One that is
/// out of the question gains nothing meanwhile, so that it does not return with a backlog of turns.
#[derive(Clone, Debug)]
pub struct Turns(Vec<i64>);

impl Turns {
    /// The first turn among `count`.
    pub fn new(count: usize) -> Self {
        Self(vec![0; count])
    }

    /// The position whose turn it is among `candidates`, of which `None` and those of weight 0 have none.
    pub fn next<I>(&mut self, candidates: I) -> Option<usize>
    where
        I: IntoIterator<Item = Option<Candidate>>,
    {
        let mut gained = 0;
        let mut most: Option<(usize, i64)> = None;
        for (at, (candidate, credit)) in candidates.into_iter().zip(&mut self.0).enumerate() {
            let weight = candidate.map_or(0, |it| i64::from(it.weight));
            if weight == 0 {
                continue;
            }
            *credit += weight;
            gained += weight;
            if most.is_none_or(|(_, most)| *credit > most) {
                most = Some((at, *credit));
            }
        }
        let (at, _) = most?;
        self.0[at] -= gained;
        Some(at)
    }
}

#[cfg(test)]
mod tests;
