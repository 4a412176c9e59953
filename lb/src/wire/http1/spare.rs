//! Maps of fields that are used again.

use std::cell::RefCell;

use http::HeaderMap;

#[cfg(test)]
mod tests;

/// As many are kept for a thread.
const KEPT: usize = 64;

/// A map that has room for more fields is not kept.
const MOST_FIELDS: usize = 64;

thread_local! {
    static SPARE: RefCell<Vec<HeaderMap>> = const { RefCell::new(Vec::new()) };
}

/// An empty map: one that was given back, or a new one with room for so many `fields`.
pub(super) fn take_fields(fields: usize) -> HeaderMap {
    let spare = SPARE.with_borrow_mut(Vec::pop);
    spare.unwrap_or_else(|| HeaderMap::with_capacity(fields))
}

/// Takes the fields of a message that is done with. Their room is for the next one's: a map takes two allocations, and
/// each message has a map.
pub fn give_fields(mut fields: HeaderMap) {
    if fields.capacity() == 0 || fields.capacity() > MOST_FIELDS {
        return;
    }
    // What the values are slices of is not kept.
    fields.clear();
    SPARE.with_borrow_mut(|spare| {
        if spare.len() < KEPT {
            spare.push(fields);
        }
    });
}
