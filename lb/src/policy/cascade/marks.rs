//! Which targets a request has been to.

/// One mark for each target. Up to 64 of them, which is more than chains have, need no allocation.
#[derive(Clone, Debug, Default)]
pub(super) struct Marks {
    first: u64,
    more: Vec<u64>,
}

impl Marks {
    pub(super) fn set(&mut self, place: usize) {
        let bit = 1 << (place % 64);
        let Some(word) = (place / 64).checked_sub(1) else {
            self.first |= bit;
            return;
        };
        if word >= self.more.len() {
            self.more.resize(word + 1, 0);
        }
        self.more[word] |= bit;
    }

    pub(super) fn clear(&mut self, place: usize) {
        let bit = 1 << (place % 64);
        let word = match (place / 64).checked_sub(1) {
            None => Some(&mut self.first),
            Some(word) => self.more.get_mut(word),
        };
        if let Some(word) = word {
            *word &= !bit;
        }
    }

    pub(super) fn contains(&self, place: usize) -> bool {
        let word = match (place / 64).checked_sub(1) {
            None => self.first,
            Some(word) => self.more.get(word).copied().unwrap_or(0),
        };
        word >> (place % 64) & 1 == 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first == 0 && self.more.iter().all(|word| *word == 0)
    }
}
