//! Names that an operator gives to things.

use std::fmt;

/// The name of a listener, provider, endpoint, pool or client key: one to 64 of `a`–`z`, `0`–`9`, `.`, `_` and `-`.
///
/// Such a name stands in metric labels, log lines and paths of the admin API, so it needs no escaping in any of them.
/// Models and presets are named by clients and are plain strings ([`model_name_fault`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// Takes `text` if it is a name.
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=MAX_NAME_BYTES).contains(&text.len());
        let plain = text
            .bytes()
            .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'));
        (fits && plain).then(|| Self(text.to_owned()))
    }

    /// The name as it stands in the file.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Says why `text` cannot be what clients send as `model`, or nothing if it can.
///
/// Clients send names such as `meta-llama/Llama-3.3-70B-Instruct`, so nearly everything goes; case counts.
pub fn model_name_fault(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("is empty");
    }
    if text.len() > MAX_MODEL_NAME_BYTES {
        return Some("is longer than 256 bytes");
    }
    text.chars()
        .any(char::is_control)
        .then_some("holds a control character")
}

const MAX_NAME_BYTES: usize = 64;
const MAX_MODEL_NAME_BYTES: usize = 256;

#[cfg(test)]
mod tests;
