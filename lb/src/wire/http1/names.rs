//! Field names, as they were read before.

use std::cell::RefCell;

use http::HeaderName;

#[cfg(test)]
mod tests;

/// Longer names are made each time, and so is whatever else is rare.
const LONGEST: usize = 32;

/// A power of two, for [`place`].
const PLACES: usize = 128;

thread_local! {
    static NAMES: RefCell<Names> = const { RefCell::new(Names(Vec::new())) };
}

/// The names that a thread has read. Peers say the same few in the same spelling with every message, and to compare a
/// spelling costs a third of making a [`HeaderName`] of it. What is found here is what would be made.
pub(super) struct Names(Vec<Option<Known>>);

struct Known {
    spelling: [u8; LONGEST],
    length: u8,
    name: HeaderName,
}

impl Names {
    /// Lends this thread's.
    pub(super) fn with<T>(read: impl FnOnce(&mut Self) -> T) -> T {
        NAMES.with_borrow_mut(read)
    }

    /// The name that is spelled so; `None` where it is none.
    pub(super) fn get(&mut self, spelling: &[u8]) -> Option<HeaderName> {
        let place = place(spelling);
        if let Some(Some(known)) = self.0.get(place)
            && known.spelling() == spelling
        {
            return Some(known.name.clone());
        }
        let name = HeaderName::from_bytes(spelling).ok()?;
        self.keep(place, spelling, &name);
        Some(name)
    }

    fn keep(&mut self, place: usize, spelling: &[u8], name: &HeaderName) {
        let mut known = Known {
            spelling: [0; LONGEST],
            length: 0,
            name: name.clone(),
        };
        let (Ok(length), Some(room)) = (
            u8::try_from(spelling.len()),
            known.spelling.get_mut(..spelling.len()),
        ) else {
            return;
        };
        room.copy_from_slice(spelling);
        known.length = length;
        if self.0.is_empty() {
            self.0.resize_with(PLACES, || None);
        }
        self.0[place] = Some(known);
    }
}

impl Known {
    fn spelling(&self) -> &[u8] {
        &self.spelling[..usize::from(self.length)]
    }
}

/// Where a name is kept; another one that belongs there takes its place.
fn place(spelling: &[u8]) -> usize {
    let byte = |at: usize| spelling.get(at).copied().map_or(0, usize::from);
    let length = spelling.len();
    (length + byte(0) * 3 + byte(length / 2) * 5 + byte(length.wrapping_sub(1)) * 7) % PLACES
}
