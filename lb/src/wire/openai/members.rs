//! Reads a JSON object one level deep.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Calls `on` with each member of the object that `json` is, in order, values unread.
///
/// Stops without a word where the text stops being JSON, or if it is no object: the data of a stream is the provider's
/// affair, and what an event cut short said before the cut still counts.
pub(super) fn members<'a>(json: &'a [u8], on: impl FnMut(&str, &'a RawValue)) {
    let mut reader = serde_json::Deserializer::from_slice(json);
    // Nothing of the error is of use: the members before it have been seen.
    drop(reader.deserialize_map(Members(on)));
}

/// The text of a JSON string; `None` for every other value.
pub(super) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str(value.get()).ok().map(|Text(text)| text)
}

/// Whether a value says anything: not null, not an empty string, object or array.
pub(super) fn has_text(value: &RawValue) -> bool {
    !matches!(value.get(), "null" | "\"\"" | "[]" | "{}" | "false")
}

struct Members<F>(F);

impl<'de, F: FnMut(&str, &'de RawValue)> Visitor<'de> for Members<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((Text(name), value)) = map.next_entry()? {
            (self.0)(&name, value);
        }
        Ok(())
    }
}

/// A string borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
