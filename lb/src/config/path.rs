//! The way from the top of the file to a key.

use std::fmt;

/// A way such as `providers.gpu.endpoints[0].url`; empty for the file itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Path(String);

/// One step of a way.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Key(String),
    Item(usize),
}

impl Path {
    /// The way to a key at the top.
    pub(super) fn top(key: &str) -> Self {
        Self::default().key(key)
    }

    /// The way to `key` from here, in quotes where it would not be read back as one key.
    pub(super) fn key(&self, key: &str) -> Self {
        let plain = key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'/' | b'*'));
        let dot = if self.0.is_empty() { "" } else { "." };
        Self(if plain && !key.is_empty() {
            format!("{self}{dot}{key}")
        } else {
            format!("{self}{dot}{key:?}")
        })
    }

    /// The way to an item of the list here, counted from 0.
    pub(super) fn item(&self, index: usize) -> Self {
        Self(format!("{self}[{index}]"))
    }

    /// The way one step on.
    pub(super) fn then(&self, step: &Step) -> Self {
        match step {
            Step::Key(key) => self.key(key),
            Step::Item(index) => self.item(*index),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
