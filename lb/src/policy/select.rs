//! Which of several equals is next: the endpoints of a provider, the targets of a weighted pool.

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
    let choices = candidates
        .into_iter()
        .enumerate()
        .filter_map(|(at, candidate)| Some((at, candidate.filter(|it| it.weight > 0)?)));
    let lightest = choices
        .clone()
        .map(|(_, it)| it)
        .reduce(|best, it| if it.is_lighter_than(best) { it } else { best })?;
    // None is lighter than the lightest, so what is not heavier is equal to it.
    let equals = choices.filter(|(_, it)| !lightest.is_lighter_than(*it));
    let total: u64 = equals.clone().map(|(_, it)| u64::from(it.weight)).sum();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "weights are at most 1000 each, far below what a float counts exactly"
    )]
    let mut point = (draw.value() * total as f64) as u64;
    equals
        .into_iter()
        .find_map(|(at, it)| match point.checked_sub(u64::from(it.weight)) {
            Some(rest) => {
                point = rest;
                None
            }
            None => Some(at),
        })
}

#[cfg(test)]
mod tests;
