//! Which of several equals is next: the endpoints of a provider, the targets of a weighted pool.
//!
//! These choices have no memory; those that have one are in [`super::balance`].

use super::draw::Draw;

/// One that may be chosen.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Candidate {
    /// Requests that it is answering now, in requests.
    pub in_flight: u32,
    /// How much it can take beside its siblings; 0 drains it: it is never chosen.
    pub weight: u32,
}

impl Candidate {
    /// Whether its load for its weight is less than `other`'s.
    fn is_lighter_than(self, other: Self) -> bool {
        // a/b < c/d without dividing, which is exact and cannot overflow in 64 bits.
        u64::from(self.in_flight) * u64::from(other.weight)
            < u64::from(other.in_flight) * u64::from(self.weight)
    }
}

/// The position of the candidate with the least in flight for its weight; `None` if there is nothing to choose from.
///
/// Among equals `draw` decides, in proportion to their weights. `None` stands for one that is out of the question, so
/// that positions stay those of the caller's list.
pub fn least_inflight<I>(candidates: I, draw: Draw) -> Option<usize>
where
    I: IntoIterator<Item = Option<Candidate>, IntoIter: Clone>,
{
    let choices = choices(candidates);
    let lightest = choices
        .clone()
        .map(|(_, it)| it)
        .reduce(|best, it| if it.is_lighter_than(best) { it } else { best })?;
    // None is lighter than the lightest, so what is not heavier is equal to it.
    drawn(choices.filter(|(_, it)| !lightest.is_lighter_than(*it)), draw)
}

/// The position of a candidate by chance alone, in proportion to the weights.
pub fn random<I>(candidates: I, draw: Draw) -> Option<usize>
where
    I: IntoIterator<Item = Option<Candidate>, IntoIter: Clone>,
{
    drawn(choices(candidates), draw)
}

/// The cheaper of two candidates that `draw` chooses; among equals the one that was drawn first.
///
/// Two are nearly as good as all, and what every worker finds cheapest at the same moment is not flooded by all of them.
pub fn cheaper_of_two<I>(candidates: I, draw: Draw, cost: impl Fn(usize, Candidate) -> f64) -> Option<usize>
where
    I: IntoIterator<Item = Option<Candidate>, IntoIter: Clone>,
{
    let choices = choices(candidates);
    let count = choices.clone().count();
    let (first, rest) = split(draw, count);
    let one = choices.clone().nth(first)?;
    if count == 1 {
        return Some(one.0);
    }
    let (second, _) = split(rest, count - 1);
    let other = choices.clone().nth(second + usize::from(second >= first))?;
    let is_cheaper = cost(other.0, other.1) < cost(one.0, one.1);
    Some(if is_cheaper { other.0 } else { one.0 })
}

/// What can be chosen, with its position.
fn choices<I>(candidates: I) -> impl Iterator<Item = (usize, Candidate)> + Clone
where
    I: IntoIterator<Item = Option<Candidate>, IntoIter: Clone>,
{
    candidates
        .into_iter()
        .enumerate()
        .filter_map(|(at, candidate)| Some((at, candidate.filter(|it| it.weight > 0)?)))
}

/// One of `choices` in proportion to their weights.
fn drawn(choices: impl Iterator<Item = (usize, Candidate)> + Clone, draw: Draw) -> Option<usize> {
    let total: u64 = choices.clone().map(|(_, it)| u64::from(it.weight)).sum();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "weights are at most a million each, far below what a float counts exactly"
    )]
    let mut point = (draw.value() * total as f64) as u64;
    choices
        .into_iter()
        .find_map(|(at, it)| match point.checked_sub(u64::from(it.weight)) {
            Some(rest) => {
                point = rest;
                None
            }
            None => Some(at),
        })
}

/// One of `count` by `draw`, and the draw that is left in it: where it lies within its part is as much by chance.
fn split(draw: Draw, count: usize) -> (usize, Draw) {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "there are far fewer candidates than a float counts exactly"
    )]
    let (scaled, whole) = {
        let scaled = draw.value() * count as f64;
        (scaled, scaled as usize)
    };
    let at = whole.min(count.saturating_sub(1));
    (at, Draw::new(scaled.fract()))
}

#[cfg(test)]
mod tests;
