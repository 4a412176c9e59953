//! Which endpoint has which keys, so that most keys stay where they are when an endpoint comes or goes.

use crate::policy::select::Candidate;

/// A look-up table in the manner of Maglev (Eisenbud et al., NSDI 2016): every endpoint has an order of preference of
/// its own over all places, by its name alone, and they take turns by weight.
///
/// No endpoint may have more than [`SLACK`] times its part of what is in flight (Mirrokni et al., "Consistent Hashing
/// with Bounded Loads"): keys that it has no room for go on to the next place of the table, always in the same order.
#[derive(Clone, Debug)]
pub struct Maglev(Vec<u16>);

/// Places; a prime, so that every step goes through all of them. A hundred for each of fifty endpoints: parts are then
/// within a hundredth of what the weights say.
const SMALL: usize = 5003;

/// For more endpoints than that.
const LARGE: usize = 65537;

/// By how much an endpoint may have more than its part: a quarter.
const SLACK: (u64, u64) = (5, 4);

impl Maglev {
    /// The table of endpoints with these names and weights. Names say who has which keys, so they should be those that
    /// stay; of the order nothing depends but ties.
    pub fn new<'a>(endpoints: impl IntoIterator<Item = (&'a str, u32)>) -> Self {
        let endpoints: Vec<_> = endpoints.into_iter().take(usize::from(u16::MAX)).collect();
        let size = if endpoints.len() <= 50 { SMALL } else { LARGE };
        let heaviest = endpoints.iter().map(|(_, weight)| *weight).max().unwrap_or(0);
        let mut orders: Vec<_> = endpoints
            .iter()
            .map(|(name, weight)| Order {
                // Its first turn is in the first round, or the lightest might have no place, and no request with the
                // heavy ones out.
                credit: heaviest - weight,
                ..Order::new(name, *weight, size)
            })
            .collect();
        let mut table = vec![FREE; if heaviest == 0 { 0 } else { size }];
        let mut free = table.len();
        while free > 0 {
            for (at, order) in (0u16..).zip(&mut orders) {
                order.credit += order.weight;
                if order.weight == 0 || order.credit < heaviest || free == 0 {
                    continue;
                }
                order.credit -= heaviest;
                let place = order.next_free(&table);
                table[place] = at;
                free -= 1;
            }
        }
        Self(table)
    }

    /// The position of the endpoint that has the key of this [`hash`], among those that `candidates` lets be chosen.
    /// They stand in the order in which the table was made.
    pub fn choose<I>(&self, candidates: I, key: u64) -> Option<usize>
    where
        I: IntoIterator<Item = Option<Candidate>, IntoIter: Clone>,
    {
        let candidates = candidates.into_iter();
        let choices = || candidates.clone().flatten().filter(|it| it.weight > 0);
        let weights: u64 = choices().map(|it| u64::from(it.weight)).sum();
        let load: u64 = choices().map(|it| u64::from(it.in_flight)).sum::<u64>() + 1;
        let has_room = |it: Candidate| {
            // in_flight + 1 <= ceil(slack · load · weight / weights), multiplied out.
            let part = (SLACK.0 * load * u64::from(it.weight)).div_ceil(SLACK.1 * weights);
            u64::from(it.in_flight) < part
        };
        if weights == 0 || self.0.is_empty() {
            return None;
        }
        let (before, from) = self.0.split_at(place(key, self.0.len()));
        let mut order = from.iter().chain(before).map(|at| usize::from(*at));
        order.find(|at| {
            let candidate = candidates.clone().nth(*at).flatten();
            candidate.is_some_and(|it| it.weight > 0 && has_room(it))
        })
    }
}

/// The order in which one endpoint wants the places.
struct Order {
    at: usize,
    step: usize,
    weight: u32,
    credit: u32,
}

impl Order {
    fn new(name: &str, weight: u32, size: usize) -> Self {
        let seed = hash(name.as_bytes());
        Self {
            at: place(seed, size),
            step: place(mixed(seed ^ STEP), size - 1) + 1,
            weight,
            credit: 0,
        }
    }

    /// The next place that it wants and nobody has; there must be one.
    fn next_free(&mut self, table: &[u16]) -> usize {
        loop {
            let place = self.at;
            self.at = (self.at + self.step) % table.len();
            if table[place] == FREE {
                return place;
            }
        }
    }
}

/// A number for a key: the same in every process and version, so that instances agree. Not for secrets, nor against
/// clients who want to meet: who has too many keys in one place is bounded anyway.
pub fn hash(key: &[u8]) -> u64 {
    // FNV-1a, whose low bits are good and whose high bits are not, then mixed.
    let fnv = key.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mixed(fnv)
}

/// The same of a long text, eight bytes at a time.
pub fn hash_long(text: &[u8]) -> u64 {
    let (words, rest) = text.as_chunks();
    let words = words.iter().fold(hash(rest), |hash, word| {
        (hash.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(STEP)
    });
    mixed(words)
}

/// Spreads every bit over all (the finaliser of `SplitMix64`).
const fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[expect(clippy::cast_possible_truncation, reason = "a remainder of a table's size")]
const fn place(hash: u64, size: usize) -> usize {
    (hash % size as u64) as usize
}

/// A place that nobody has.
const FREE: u16 = u16::MAX;

/// Makes an endpoint's step another number than its start.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

#[cfg(test)]
mod tests;
